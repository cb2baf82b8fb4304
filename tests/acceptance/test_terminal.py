"""A person at a terminal: `lodger chat` in tmux, with the demo model."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess

import pytest

from tests.acceptance.processes import make_place

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None and os.environ.get("CI") != "true",
    reason="tmux is not installed (apt-get install tmux); CI has it and fails without",
)

BOUND_SECONDS = 60
QUIET_POLLS = 40


class Terminal:
    """A window of 120 by 40 characters in which one command runs."""

    def __init__(self, place) -> None:
        self._place = place
        self._socket = str(place.root / "tmux.sock")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            env={**self._place.environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            cwd=self._place.root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def start(self, *words: str) -> None:
        # A shell tells the exit code: tmux now and then misses that a command of its own has ended.
        command = f'{shlex.join(self._place.command(*words))}; echo "(ended: $?)"; exec cat'
        self._tmux("new-session", "-d", "-x", "120", "-y", "40", "sh", "-c", command)

    def type(self, text: str) -> None:
        """Type a line as keys, and Enter."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    @property
    def screen(self) -> str:
        """Everything that was printed, lines that were wrapped joined again."""
        return self._tmux("capture-pane", "-p", "-J", "-S", "-200")

    async def wait(self, pattern: str) -> re.Match[str]:
        """Return the first match on the screen."""
        try:
            async with asyncio.timeout(BOUND_SECONDS):
                while (found := re.search(pattern, self.screen, re.MULTILINE)) is None:
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"no {pattern!r} on the screen:\n{self.screen}")
        return found

    async def settle(self) -> None:
        """Return when nothing has been printed for a while.

        A control key that falls into the moment in which a line is printed is taken by the
        terminal itself, as in any program that prints above its prompt.
        """
        async with asyncio.timeout(BOUND_SECONDS):
            seen, unchanged = self.screen, 0
            while unchanged < QUIET_POLLS:
                await asyncio.sleep(0.01)
                unchanged = unchanged + 1 if seen == (seen := self.screen) else 0

    async def end_with(self, key: str) -> str:
        """Press a key, and return the exit code of the command that it ends."""
        await self.settle()
        self.press(key)
        return (await self.wait(r"\(ended: (\d+)\)"))[1]

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(make_place(tmp_path))
    opened.start("chat")
    yield opened
    opened.close()


async def test_a_command_is_approved_a_memory_made_and_found_again_after_new(terminal):
    await terminal.wait(r"^Talking to lodger\. .*Ctrl-D ends\.")
    await terminal.wait(r"^>")

    terminal.type("list files")
    await terminal.wait(r"^lodger: May I run ")
    await terminal.wait(r"^    ls -la && echo hello from the sandbox$")
    await terminal.wait(r"^  #1 Approve  #2 Deny")
    terminal.type("#7")
    await terminal.wait(r"^  \(there is no such button\)")
    terminal.press("C-c")  # empties the line
    terminal.type("#1")
    await terminal.wait(r"^lodger: Approved by .* at \d\d:\d\d\.")
    await terminal.wait(r"^hello from the sandbox")

    terminal.type("remember that I like green tea")
    await terminal.wait(r"^lodger: Remembered: I like green tea \(notes\.md\)\s+#3 Diff  #4 Undo")
    await terminal.wait(r"^Committed\.")
    terminal.type("#3")
    await terminal.wait(r"^\s*\+- Noted: I like green tea")

    terminal.type("/new")
    await terminal.wait(r"^lodger: A new conversation\.")
    terminal.type("what do you remember?")
    await terminal.wait(r"^lodger: From my memory:\s+- I like green tea")

    assert await terminal.end_with("C-d") == "0"
    assert "Traceback" not in terminal.screen


async def test_ctrl_c_empties_a_line_and_ends_the_chat_on_an_empty_one(terminal):
    await terminal.wait(r"^>")
    terminal.press("h")
    await terminal.wait(r"^> h")
    await terminal.settle()
    terminal.press("C-c")
    await terminal.wait(r"^>\s*\Z")
    assert "(ended:" not in terminal.screen
    assert await terminal.end_with("C-c") == "0"
    assert "Traceback" not in terminal.screen
