"""Standard input as lines."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.input_lines import LineSplitter
from tests.architecture.sources import ROOT

LIMIT = 10


@given(st.lists(st.binary(max_size=30).map(lambda text: text.replace(b"\r", b"\n"))))
def test_however_lines_are_cut_into_chunks_they_are_the_same(chunks):
    splitter = LineSplitter(LIMIT)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    found += splitter.finish()
    *complete, rest = b"".join(chunks).split(b"\n")
    whole = [*complete, *([rest] if rest else [])]
    assert found == [line[: LIMIT + 1] for line in whole]


def test_of_a_line_without_end_no_more_is_kept_than_shows_that_it_is_too_long():
    splitter = LineSplitter(LIMIT)
    for _ in range(1_000):
        assert list(splitter.feed(b"x" * 100)) == []
    assert list(splitter.feed(b"\n")) == [b"x" * (LIMIT + 1)]


READER = """
import asyncio
from bot.cli.input_lines import input_lines

async def read():
    count = 0
    async for line in input_lines(1_000):
        if line == b"stop":
            break
        count += 1
    print(count)

asyncio.run(read())
"""


def read(stdin, **more) -> str:
    """Return what a program counts on this input."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", READER],
        cwd=ROOT,
        stdin=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        **more,
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize(("content", "count"), [(b"", "0"), (b"a\nb", "2"), (b"a\n" * 50_000, "50000")])
def test_a_file_is_read_to_its_end(tmp_path, content, count):
    file = tmp_path / "input"
    file.write_bytes(content)
    with file.open("rb") as stdin:
        assert read(stdin) == count


def test_a_program_ends_while_its_input_stays_open(tmp_path):
    writer = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdout.write('a\\nstop\\n'); sys.stdout.flush(); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with writer:
        assert read(writer.stdout) == "1"
        writer.stdin.close()
