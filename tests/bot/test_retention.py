"""When the host deletes what is old, and which files of conversations go."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.retention import EVERY, FIRST_AFTER, Retention, prune_files
from core.contracts.clock import FakeClock
from core.contracts.errors import StoreUnavailable
from core.contracts.retention import RetentionLimits

DAY = timedelta(days=1)
LIMITS = RetentionLimits(events=7 * DAY, inbox=30 * DAY, sessions=8 * DAY, attachments=31 * DAY, overflow=32 * DAY)
BOUND_SECONDS = 60


class FakeRows:
    """A store that tells what it was asked to delete; `failure` is raised instead where it is set."""

    def __init__(self) -> None:
        self.asked = []
        self.failure = None

    async def prune_events(self, before):
        return self._answer("events", before)

    async def prune_inbox(self, before):
        return self._answer("inbox", before)

    async def prune_sessions(self, before):
        return self._answer("sessions", before)

    def _answer(self, kind, before):
        self.asked.append((kind, before))
        if self.failure is not None:
            raise self.failure
        return len(self.asked)


def make(tmp_path, clock):
    rows = FakeRows()
    return rows, Retention(store=rows, data_dir=tmp_path, limits=lambda: LIMITS, clock=clock)


async def passes(clock, duration, condition):
    """Let time pass and what is due happen, also in threads."""
    await clock.advance(duration)
    async with asyncio.timeout(BOUND_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def aged(path, clock, age):
    """Make a file that was last written so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return older(path, clock, age)


def older(path, clock, age):
    when = (clock.now() - age).timestamp()
    os.utime(path, (when, when), follow_symlinks=False)
    return path


async def test_it_prunes_a_while_after_the_start_and_then_every_few_hours(tmp_path):
    clock = FakeClock()
    rows, retention = make(tmp_path, clock)
    running = asyncio.create_task(retention.run())
    await passes(clock, timedelta(0), lambda: clock.sleeping)
    await passes(clock, FIRST_AFTER - timedelta(seconds=1), lambda: clock.sleeping)
    assert rows.asked == []
    await passes(clock, timedelta(seconds=1), lambda: clock.sleeping and len(rows.asked) == 3)
    await passes(clock, EVERY, lambda: clock.sleeping and len(rows.asked) == 6)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_each_kind_has_its_own_age(tmp_path):
    clock = FakeClock()
    rows, retention = make(tmp_path, clock)
    for folder in ("attachments", "overflow"):
        for age in (30, 31, 32, 33):
            aged(tmp_path / folder / "conv-1" / f"{age}.txt", clock, age * DAY)

    removed = await retention.prune()

    now = clock.now()
    assert rows.asked == [("events", now - 7 * DAY), ("inbox", now - 30 * DAY), ("sessions", now - 8 * DAY)]
    assert (removed["attachment_files"], removed["overflow_files"]) == (2, 1)
    assert sorted(path.name for path in (tmp_path / "attachments").rglob("*.txt")) == ["30.txt", "31.txt"]
    assert sorted(path.name for path in (tmp_path / "overflow").rglob("*.txt")) == ["30.txt", "31.txt", "32.txt"]


async def test_a_limit_that_is_changed_holds_from_the_next_time_on(tmp_path):
    clock, rows, in_force = FakeClock(), FakeRows(), [LIMITS]
    retention = Retention(store=rows, data_dir=tmp_path, limits=lambda: in_force[-1], clock=clock)
    await retention.prune()
    in_force.append(replace(LIMITS, events=DAY))
    await retention.prune()
    assert [clock.now() - before for kind, before in rows.asked if kind == "events"] == [7 * DAY, DAY]


async def test_what_went_is_one_line_of_the_log_and_nothing_is_none(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    clock = FakeClock()
    rows, retention = make(tmp_path, clock)
    aged(tmp_path / "overflow" / "conv-1" / "a.txt", clock, 90 * DAY)
    await retention.prune()
    (record,) = caplog.records
    assert record.message == "retention_pruned"
    assert (record.events, record.inbox_rows, record.session_lines) == (1, 2, 3)
    assert (record.overflow_files, record.attachment_files) == (1, 0)
    caplog.clear()
    rows.failure = StoreUnavailable("locked")
    await retention.prune()
    assert [each.message for each in caplog.records] == ["retention_failed"] * 3


async def test_a_store_that_fails_does_not_keep_files_and_is_asked_again(tmp_path):
    clock = FakeClock()
    rows, retention = make(tmp_path, clock)
    rows.failure = StoreUnavailable("locked")
    old = aged(tmp_path / "attachments" / "conv-1" / "a.png", clock, 90 * DAY)
    running = asyncio.create_task(retention.run())
    await passes(clock, timedelta(0), lambda: clock.sleeping)
    await passes(clock, FIRST_AFTER, lambda: clock.sleeping and len(rows.asked) == 3)
    assert not old.exists()
    rows.failure = None
    await passes(clock, EVERY, lambda: clock.sleeping and len(rows.asked) == 6)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_a_folder_goes_with_its_files_once_nobody_has_used_it(tmp_path):
    clock = FakeClock()
    gone = aged(tmp_path / "gone" / "a.txt", clock, 90 * DAY)
    older(gone.parent, clock, 90 * DAY)
    aged(tmp_path / "used" / "a.txt", clock, 90 * DAY)
    kept = aged(tmp_path / "kept" / "new.txt", clock, DAY)
    for folder in ("used", "kept", "empty"):
        (tmp_path / folder).mkdir(exist_ok=True)
        older(tmp_path / folder, clock, DAY if folder == "used" else 90 * DAY)

    assert prune_files(tmp_path, clock.now() - 30 * DAY) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "used"]
    assert kept.exists()
    assert tmp_path.exists()


def test_links_are_deleted_and_never_followed(tmp_path):
    clock = FakeClock()
    root, outside = tmp_path / "overflow", tmp_path / "outside"
    precious = aged(outside / "precious.txt", clock, 90 * DAY)
    older(outside, clock, 90 * DAY)
    (root / "conv-1").mkdir(parents=True)
    for name, target in (("file", precious), ("folder", outside)):
        (root / "conv-1" / name).symlink_to(target)
        older(root / "conv-1" / name, clock, 90 * DAY)

    assert prune_files(root, clock.now() - 30 * DAY) == 2
    assert precious.exists()
    assert list((root / "conv-1").iterdir()) == []


def test_a_whole_folder_may_be_on_another_disk(tmp_path):
    clock = FakeClock()
    aged(tmp_path / "disk" / "conv-1" / "a.txt", clock, 90 * DAY)
    (tmp_path / "overflow").symlink_to(tmp_path / "disk")
    assert prune_files(tmp_path / "overflow", clock.now() - 30 * DAY) == 1


def test_a_folder_that_does_not_exist_has_nothing_to_delete(tmp_path):
    assert prune_files(tmp_path / "attachments", FakeClock().now()) == 0
