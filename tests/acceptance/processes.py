"""The real host as a process of its own, configured by a file, talking to fake platforms and models."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWNER = 111
STRANGER = 222


@dataclass
class Place:
    """A directory with a configuration: what survives a host."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def environment(self) -> dict[str, str]:
        """A clean environment: no configuration of the machine the tests run on."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        coverage = {name: value for name, value in os.environ.items() if name.startswith("COV")}
        return {**kept, **coverage, "HOME": str(self.root), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "bot.cli.main", "--config", str(self.config), *words]


def make_place(
    root: Path, *, telegram_base: str = "", token: str = "", model: str = 'model = "scripted/demo"', more: str = ""
) -> Place:
    """Write a configuration under `root`; the owner is Telegram user 111."""
    place = Place(root=root)
    place.workspace.mkdir(exist_ok=True)
    telegram = f'[channels.telegram]\ntoken = "{token}"\napi_base = "{telegram_base}"\n' if telegram_base else ""
    place.config.write_text(
        f"""
[host]
data_dir = "{place.data}"
time_zone = "Europe/Berlin"
[console]
listen = "127.0.0.1:0"
[models.main]
{model}
[agents.lodger]
workspace = "{place.workspace}"
{telegram}
[access]
owners = ["telegram:{OWNER}"]
{more}
""",
        encoding="utf-8",
    )
    return place


class HostProcess:
    """A running `lodger up`; `lines` is everything it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace").rstrip())
            self._changed.set()
        self._changed.set()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    async def wait_line(self, text: str, seconds: float = 60.0) -> str:
        """Return the first line that holds `text`."""
        async with asyncio.timeout(seconds):
            while True:
                for line in self.lines:
                    if text in line:
                        return line
                assert not self._reader.done(), f"the host ended: {self.output}"
                self._changed.clear()
                await self._changed.wait()

    async def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60.0) -> int:
        """Send a signal and return the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(seconds):
            code = await self.process.wait()
            await self._reader
        return code

    async def kill(self) -> None:
        """End it as a power cut would."""
        await self.stop(signal.SIGKILL)


async def start_host(place: Place) -> HostProcess:
    """Start `lodger up`, and do not wait until it serves."""
    process = await asyncio.create_subprocess_exec(
        *place.command("up"),
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return HostProcess(process)


@asynccontextmanager
async def running_host(place: Place) -> AsyncIterator[HostProcess]:
    """Start `lodger up`, wait until it serves, and end it with the block."""
    host = await start_host(place)
    try:
        await host.wait_line("Lodger is running")
        yield host
    finally:
        await host.stop()


@dataclass
class Finished:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


async def lodger(place: Place, *words: str, stdin: str = "", seconds: float = 60.0) -> Finished:
    """Run one command to its end."""
    process = await asyncio.create_subprocess_exec(
        *place.command(*words),
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(seconds):
        out, err = await process.communicate(stdin.encode())
    return Finished(code=process.returncode or 0, out=out.decode(), err=err.decode())


def openai_model(base_url: str, *, client: str = "direct") -> str:
    """Return the `[models.main]` lines for a fake server in the OpenAI form."""
    return f'model = "openai/m1"\napi_key = "sk-{"a" * 20}"\napi_base = "{base_url}"\nclient = "{client}"'


def texts(messages: Sequence[object]) -> list[str]:
    """Return the texts of visible Telegram messages."""
    return [message.text for message in messages]
