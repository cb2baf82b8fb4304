"""The real host while its storage fails: full, refusing writes, read-only from the start; and a stop amid a turn.

Who can act is told, nothing is taken that is not stored, and when storage works again everything goes on
without a restart.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.acceptance.processes import OWNER, HostProcess, Place, lodger, make_place, openai_model, running_host
from tests.platforms.model_script import Answer
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

WAIT = 60.0
DISK_BYTES = 6_000_000
FAILED = "Something went wrong and this turn could not be finished."
TOLD = "I cannot store messages right now"


@dataclass(frozen=True)
class Disk:
    """A small file system of its own."""

    root: Path

    def fill(self) -> None:
        """Take all the space that is left."""
        with (self.root / "ballast").open("wb", buffering=0) as ballast:
            for size in (65_536, 4_096):
                while _written(ballast.fileno(), size):
                    pass

    def empty(self) -> None:
        """Give the space back."""
        (self.root / "ballast").unlink()

    def freeze(self) -> None:
        """Make it read-only."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.root)], check=True)


def _written(descriptor: int, size: int) -> bool:
    try:
        return os.write(descriptor, bytes(size)) == size
    except OSError:
        return False


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    """Mount a file system where the host keeps its data."""
    root = tmp_path / "data"
    root.mkdir(mode=0o700)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "none", str(root)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        reason = f"no file system can be mounted here: {mounted.stderr.strip()}"
        assert "CI" not in os.environ, reason
        pytest.skip(reason)
    try:
        yield Disk(root)
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


@pytest.fixture
async def telegram():
    async with TelegramServer(TOKEN) as server:
        yield server


class Echo:
    """A model that answers each message by its own words."""

    def __init__(self) -> None:
        self.server = OpenAIServer([self._step])
        self.gates: dict[str, asyncio.Event] = {}

    def _step(self, body) -> Answer:
        word = said_last(body)
        gates = {1: self.gates[word]} if word in self.gates else {}
        return Answer(text=["You said ", f"{word}."], gates=gates)


def said_last(body) -> str:
    """Return a person's newest message."""
    blocks = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
    texts = [blocks] if isinstance(blocks, str) else [block["text"] for block in blocks]
    return next(text for text in reversed(texts) if not text.startswith("<system-"))


def place_for(tmp_path, telegram, model) -> Place:
    return make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, model=openai_model(model.base_url))


def texts(telegram) -> list[str]:
    return [message.text for message in telegram.visible(OWNER)]


async def answered(telegram, word: str) -> None:
    await telegram.wait_for(lambda: f"You said {word}." in texts(telegram), timeout=WAIT)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.005)


async def readiness(host: HostProcess) -> tuple[int, str]:
    """Return what the host answers to who asks whether it is ready."""
    link = await host.wait_line("Lodger is running. Open ")
    base = link.partition("Open ")[2].partition("/login")[0].partition("?")[0].rstrip("/")
    async with httpx.AsyncClient(trust_env=False, timeout=WAIT) as http:
        answer = await http.get(f"{base}/readyz")
    return answer.status_code, answer.text


def until_told(telegram) -> Callable[[], object]:
    return lambda: [text for text in texts(telegram) if text.startswith(TOLD)]


async def say_until_told(telegram) -> list[str]:
    """Write until the host says that it takes nothing more; return all that was written."""
    words = []
    while not until_told(telegram)():
        words.append(f"word-{len(words)}")
        telegram.user_says(OWNER, words[-1])
        await until(lambda: until_told(telegram)() or f"You said {words[-1]}." in texts(telegram))
    return words


async def check_outage(host: HostProcess, telegram, mend: Callable[[], None]) -> None:
    """Written to while nothing can be stored, the host says so once and answers all of it afterwards."""
    words = await say_until_told(telegram)
    telegram.user_says(OWNER, "another")
    assert (await readiness(host))[0] == 503
    assert words[-1] in str(telegram.updates.unconfirmed)
    mend()
    for word in (*words, "another"):
        await answered(telegram, word)
    telegram.user_says(OWNER, "afterwards")
    await answered(telegram, "afterwards")
    assert (await readiness(host))[0] == 200
    shown = texts(telegram)
    assert len([text for text in shown if text.startswith(TOLD)]) == 1
    expected = [f"You said {word}." for word in ("before", *words, "another", "afterwards")]
    assert [text for text in shown if not text.startswith(TOLD)] == expected


async def test_a_full_disk_is_told_once_and_everything_is_answered_when_there_is_space_again(tmp_path, telegram, disk):
    async with Echo().server as model:
        place = place_for(tmp_path, telegram, model)
        async with running_host(place) as host:
            telegram.user_says(OWNER, "before")
            await answered(telegram, "before")
            disk.fill()
            await check_outage(host, telegram, disk.empty)
            assert await host.stop() == 0


async def test_a_disk_that_refuses_writes_for_a_while_is_no_reason_for_a_restart(tmp_path, telegram):
    """As a file system that the kernel turned read-only: every write fails, what is there can be read."""
    async with Echo().server as model:
        place = place_for(tmp_path, telegram, model)
        async with running_host(place) as host:
            telegram.user_says(OWNER, "before")
            await answered(telegram, "before")
            with refused_writes(host.process.pid) as mend:
                await check_outage(host, telegram, mend)
            assert await host.stop() == 0


@contextmanager
def refused_writes(pid: int) -> Iterator[Callable[[], None]]:
    """Let a process write nothing to any file; gives what ends that early."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("used", [False, True])
async def test_a_host_on_a_read_only_file_system_ends_with_one_line_that_names_the_folder(
    tmp_path, telegram, disk, used
):
    async with Echo().server as model:
        place = place_for(tmp_path, telegram, model)
        if used:
            async with running_host(place):
                pass
        disk.freeze()
        ended = await lodger(place, "up")
    assert ended.code == 1
    told = [line for line in ended.err.splitlines() if line.startswith("lodger: ")]
    assert len(told) == 1, ended.err
    assert str(place.data) in told[0]
    assert "Read-only file system" in told[0]
    assert "Traceback" not in ended.err


async def test_a_turn_whose_result_finds_the_disk_full_ends_in_one_answer_or_one_error(tmp_path, telegram, disk):
    echo = Echo()
    echo.gates["slowly"] = asyncio.Event()
    async with echo.server as model:
        place = place_for(tmp_path, telegram, model)
        async with running_host(place) as host:
            telegram.user_says(OWNER, "slowly")
            await until(lambda: model.bodies)
            disk.fill()
            echo.gates["slowly"].set()
            await host.wait_line("StorageFull: database or disk is full", WAIT)
            disk.empty()
            await telegram.wait_for(lambda: is_settled(texts(telegram)), timeout=WAIT)
            telegram.user_says(OWNER, "afterwards")
            await answered(telegram, "afterwards")
            assert await host.stop() == 0
        assert len(texts(telegram)) == 2


def is_settled(shown: list[str]) -> bool:
    return shown in (["You said slowly."], [f"{FAILED} Your message is kept; please try again."])


async def test_a_second_signal_ends_a_host_whose_turn_does_not_end_and_the_next_start_answers(tmp_path, telegram):
    echo = Echo()
    echo.gates["slowly"] = asyncio.Event()
    async with echo.server as model:
        place = place_for(tmp_path, telegram, model)
        async with running_host(place) as host:
            telegram.user_says(OWNER, "slowly")
            await until(lambda: model.bodies)
            host.process.send_signal(signal.SIGTERM)
            await host.wait_line("Waiting for running turns", WAIT)
            assert await host.stop(signal.SIGTERM, seconds=19.0) == 0
            assert "Traceback" not in host.output
        del echo.gates["slowly"]
        async with running_host(place):
            await answered(telegram, "slowly")
            telegram.user_says(OWNER, "afterwards")
            await answered(telegram, "afterwards")
        finals = [text for text in texts(telegram) if "You said slowly." in text]
        assert len(finals) == 1, texts(telegram)
