"""C67: output is bounded in memory and on disk, and reading it never stops a command."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sandbox.output import KeptOutput
from tests.core.sandbox.labs import IS_ROOT, Lab

MOST_GROWTH_KIB = 64 * 1024

FLOODS = (
    "yes",
    "head -c 3G /dev/zero",
    "seq 1 100000000",
    "python3 -c \"print('x'*50_000_000)\"",
    "while :; do printf '\\r%s' $$; done",
    "head -c 5000000 /dev/urandom",
    "yes | tee /dev/stderr",
)


def peak_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


@pytest.mark.parametrize("line", FLOODS)
async def test_c67_a_flood_leaves_memory_bounded_and_others_served(bubblewrap: Lab, line: str, tmp_path: Path) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of earlier tests
    before = peak_kib()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        flood = group.create_task(bubblewrap.run(line, seconds=1.0, spill=tmp_path / "spill", keep_bytes=30_000))
        other = await bubblewrap.text("echo served")
        other_was_first = not flood.done() or flood.result().exit_code == 0

    result = flood.result()
    assert peak_kib() - before < MOST_GROWTH_KIB
    assert (other, other_was_first) == ("served\n", True)
    assert (len(result.head), len(result.tail)) == (30_000, 30_000)
    assert result.dropped_bytes > 0
    assert result.spilled
    assert (tmp_path / "spill").stat().st_size <= 20_000_000


async def test_c67_bytes_that_are_no_text_come_as_they_are(any_lab: Lab) -> None:
    result = await any_lab.run("printf 'a\\377\\376b'")

    assert result.head == b"a\xff\xfeb"


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), keep=st.integers(0, 50), limit=st.integers(0, 300))
def test_head_dropped_and_tail_always_account_for_every_byte(
    chunks: list[bytes], keep: int, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    spill = tmp_path_factory.mktemp("kept") / "spill"
    output = KeptOutput(keep_bytes=keep, spill=spill, spill_limit_bytes=limit)
    asyncio.run(feed(output, chunks))
    whole = b"".join(chunks)

    assert output.head == whole[:keep]
    assert output.tail == whole[keep:][max(0, len(whole[keep:]) - keep) :]
    assert len(output.head) + output.dropped_bytes + len(output.tail) == len(whole)
    assert output.spilled == (output.dropped_bytes > 0 and limit > 0)
    assert not output.spilled or spill.read_bytes() == whole[:limit]


async def feed(output: KeptOutput, chunks: list[bytes]) -> None:
    for chunk in chunks:
        await output.add(chunk)
    await output.close()


@pytest.mark.skipif(not IS_ROOT, reason="only root can make a device that is always full")
async def test_a_full_disk_gives_up_the_file_and_nothing_else(tmp_path: Path) -> None:
    os.mknod(tmp_path / "full", stat.S_IFCHR | 0o600, os.makedev(1, 7))
    output = KeptOutput(keep_bytes=10, spill=tmp_path / "full", spill_limit_bytes=1000)

    await feed(output, [b"x" * 100])

    assert not output.spilled
    assert not (tmp_path / "full").exists()
    assert (output.head, output.tail, output.dropped_bytes) == (b"x" * 10, b"x" * 10, 80)


async def test_a_folder_that_cannot_be_made_gives_up_the_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = KeptOutput(keep_bytes=10, spill=tmp_path / "file" / "spill", spill_limit_bytes=1000)

    await feed(output, [b"x" * 100])

    assert not output.spilled
    assert output.dropped_bytes == 80


async def test_the_spill_file_is_closed_to_other_users_and_never_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "link").symlink_to(target)
    plain = KeptOutput(keep_bytes=1, spill=tmp_path / "plain", spill_limit_bytes=1000)
    linked = KeptOutput(keep_bytes=1, spill=tmp_path / "link", spill_limit_bytes=1000)

    await feed(plain, [b"secret"])
    await feed(linked, [b"secret"])

    assert (tmp_path / "plain").stat().st_mode & 0o077 == 0
    assert not linked.spilled
    assert target.read_text() == "kept"
    assert (tmp_path / "link").is_symlink()
