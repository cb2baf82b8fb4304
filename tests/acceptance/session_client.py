"""A program that holds a two-way session with the real `lodger run`: what it sends, and what it was told."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.acceptance.processes import Place
from tests.bot.conversations.sessions.document import require_described

BOUND_SECONDS = 60
Line = dict
Condition = Callable[[Line], bool]


class SessionClient:
    """One connection. `lines` is everything it was told, `numbered` what belongs to the conversation."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[Line] = []
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for line in self.process.stdout:
            assert line.isascii()
            self.lines.append(json.loads(line))
            self._changed.set()
        self._changed.set()

    @property
    def numbered(self) -> list[Line]:
        return [line for line in self.lines if "seq" in line]

    @property
    def session(self) -> Line:
        return self.lines[0]

    @property
    def last_seq(self) -> int:
        return self.numbered[-1]["seq"]

    def kinds(self) -> list[str]:
        return [line["type"] for line in self.lines]

    def all(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["type"] == kind]

    async def send(self, kind: str, **fields) -> None:
        await self.send_raw(json.dumps({"type": kind, **fields}).encode())

    async def send_raw(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def wait(self, kind: str, condition: Condition = lambda line: True) -> Line:
        """Return the first line of that type that meets the condition."""
        async with asyncio.timeout(BOUND_SECONDS):
            while True:
                for line in self.lines:
                    if line["type"] == kind and condition(line):
                        return line
                assert not self._reader.done(), f"the session ended: {self.lines[-3:]}"
                self._changed.clear()
                await self._changed.wait()

    async def answer_to(self, input_id: str) -> Line:
        """Return the result of the turn that a message opened or entered."""

        def holds(line: Line) -> bool:
            return input_id in line["inputs"]

        async with asyncio.timeout(BOUND_SECONDS):
            while not any(holds(line) for line in self.lines if "inputs" in line):
                self._changed.clear()
                await self._changed.wait()
        (turn,) = {line["turn_id"] for line in self.lines if "inputs" in line and holds(line)}
        return await self.wait("result", lambda line: line["turn_id"] == turn)

    async def end(self) -> int:
        """Say that nothing more comes, and return the exit code."""
        await self.send("end")
        return await self.left()

    async def left(self) -> int:
        """Return the exit code when it has ended by itself."""
        async with asyncio.timeout(BOUND_SECONDS):
            await self._reader
            return await self.process.wait()

    async def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def errors(self) -> str:
        return (await self.process.stderr.read()).decode()


@asynccontextmanager
async def session(place: Place, *words: str) -> AsyncIterator[SessionClient]:
    """Start `lodger run` with both formats stream-json, and wait for its first line."""
    process = await asyncio.create_subprocess_exec(
        *place.command("run", "--input-format", "stream-json", "--output-format", "stream-json", *words),
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    client = SessionClient(process)
    try:
        await client.wait("session")
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await client.left()


def resumed(client: SessionClient) -> tuple[str, ...]:
    """Return the options that go on where a client was."""
    return ("--conversation", client.session["conversation_id"], "--after", str(client.last_seq))


def require_whole(*clients: SessionClient) -> list[Line]:
    """Return what clients of one conversation were told in turn: every line once, in order, and as described."""
    for client in clients:
        for line in client.lines:
            require_described(line)
    lines = [line for client in clients for line in client.numbered]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    messages = [line["message"]["seq"] for line in lines if line["type"] == "message"]
    assert messages == list(range(1, len(messages) + 1))
    for kind in ("turn_started", "result"):
        turns = [line["turn_id"] for line in lines if line["type"] == kind]
        assert len(set(turns)) == len(turns)
    return lines
