"""A two-way session on standard input and output: lines in, lines out, until both have ended."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import quote

from bot.cli.input_lines import input_lines
from bot.control.client import HostClient, HostGone, HostRefused
from bot.control.wire import line
from bot.conversations.sessions.inputs import InputEnded, SessionInput, UserSaid, read_input, read_object
from bot.conversations.sessions.protocol import LINE_LIMIT_BYTES, OutputType, SessionState
from core.contracts.errors import InvalidInput
from core.turns.outcomes import EXIT_CANCELLED, EXIT_ERROR, EXIT_LIMIT, EXIT_NOBODY_CAN_APPROVE, EXIT_OK

_LOOK_AGAIN_SECONDS = 1.0
"""How long after the last line a session whose input has ended looks again whether all is done."""


async def converse(client: HostClient, options: argparse.Namespace, *, agent: str) -> int:
    """Hold a session until its input has ended and nothing runs any more; return the exit code."""
    opened = await client.post("/sessions", {"agent": agent, "conversation": options.conversation})
    _print(opened)
    after = opened["last_seq"] if options.after is None else options.after
    session = _Session(client, opened["conversation_id"], after=after, most=options.max_turns)
    try:
        code = await session.hold()
    except asyncio.CancelledError:
        _print({"type": OutputType.END, "exit_code": EXIT_CANCELLED})
        raise
    _print({"type": OutputType.END, "exit_code": code})
    return code


class _Session:
    """One client's connection. `most` is how many messages it may send, None for any number."""

    def __init__(self, client: HostClient, conversation_id: str, *, after: int, most: int | None) -> None:
        self._client = client
        self._path = f"/sessions/{quote(conversation_id, safe='')}"
        self._seq = after
        self._most = most
        self._said: set[str] = set()
        self._is_over_limit = False
        self._last_exit_code = EXIT_OK
        self._stirred = asyncio.Event()
        self._interrupted = asyncio.Event()

    async def hold(self) -> int:
        """Run both directions. The first Ctrl-C stops the turn, the second leaves, SIGTERM leaves at once.

        Raises:
            asyncio.CancelledError: The session was left; its turn goes on where the host does.
        """
        self._listen_to_signals()
        speaking = asyncio.create_task(self._speak(), name="input")
        following = asyncio.create_task(self._follow(), name="output")
        stopping = asyncio.create_task(self._stop_when_interrupted(), name="interrupt")
        try:
            await asyncio.wait([speaking, following], return_when=asyncio.FIRST_COMPLETED)
            return (speaking if speaking.done() else following).result()
        finally:
            for task in (speaking, following, stopping):
                task.cancel()
            await asyncio.gather(speaking, following, stopping, return_exceptions=True)

    def _listen_to_signals(self) -> None:
        loop, held = asyncio.get_running_loop(), asyncio.current_task()

        def leave() -> None:
            if held is not None:
                held.cancel()

        def interrupt() -> None:
            if self._interrupted.is_set():
                leave()
            self._interrupted.set()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, leave)

    async def _follow(self) -> int:
        """Print the conversation's lines; returns when the host is gone."""
        try:
            with suppress(HostGone):  # told below
                async with aclosing(self._client.stream(f"{self._path}/lines?after={self._seq}")) as lines:
                    async for told in lines:
                        self._note(told)
        except HostRefused as error:
            return _failed(str(error))
        return _failed(f"the host stopped; go on with --conversation and --after {self._seq} when it runs again")

    def _note(self, told: Mapping[str, Any]) -> None:
        _print(told)
        self._seq = told["seq"]
        if told["type"] == OutputType.RESULT:
            self._last_exit_code = int(told["exit_code"])
        self._stirred.set()

    async def _speak(self) -> int:
        """Hand in what comes on standard input; returns when that has ended and all of it is answered."""
        number = 0
        try:
            async with aclosing(input_lines(LINE_LIMIT_BYTES)) as typed:
                async for text in typed:
                    number += 1
                    if text.strip() and not await self._hand_in(number, text):
                        break
            return await self._settled()
        except HostGone as error:
            return _failed(str(error))

    async def _hand_in(self, number: int, text: bytes) -> bool:
        """Hand in one line, or tell what is wrong with it; False when nothing more is wanted."""
        try:
            data = read_object(text)
            said = read_input(data)
            if isinstance(said, InputEnded):
                return False
            name = self._counted(said, number)
            answer = await self._client.post(f"{self._path}/input", data)
        except (InvalidInput, HostRefused) as error:
            _print({"type": OutputType.ERROR, "line": number, "reason": str(error)})
            return not self._is_over_limit
        if name:
            self._said.add(name)
        for told in answer["lines"]:
            _print(told)
        return True

    def _counted(self, said: SessionInput, number: int) -> str:
        """Return the name under which a message counts, once however often it is sent; other inputs have none.

        Raises:
            InvalidInput: It is one more than there may be.
        """
        if not isinstance(said, UserSaid):
            return ""
        name = said.id or f"line {number}"
        if self._most is not None and name not in self._said and len(self._said) >= self._most:
            self._is_over_limit = True
            raise InvalidInput(f"the limit of {self._most} messages is reached")
        return name

    async def _settled(self) -> int:
        """Wait until nothing runs, or only what nobody can answer any more; return the exit code."""
        while True:
            self._stirred.clear()
            session = await self._client.get(self._path)
            if self._seq >= session["last_seq"]:
                if session["state"] == SessionState.IDLE:
                    return EXIT_LIMIT if self._is_over_limit else self._last_exit_code
                asks = session["state"] == SessionState.PARKED and session["approvals"]
                if asks or session["tool_requests"]:
                    return EXIT_NOBODY_CAN_APPROVE
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                    await self._stirred.wait()

    async def _stop_when_interrupted(self) -> None:
        await self._interrupted.wait()
        try:
            await self._client.post(f"{self._path}/input", {"type": "cancel"})
        except (HostGone, HostRefused) as error:
            _print({"type": OutputType.ERROR, "line": 0, "reason": str(error)})


def _failed(reason: str) -> int:
    print(f"lodger: {reason}", file=sys.stderr)
    return EXIT_ERROR


def _print(told: Mapping[str, Any]) -> None:
    sys.stdout.write(line(told).decode("ascii"))
    sys.stdout.flush()
