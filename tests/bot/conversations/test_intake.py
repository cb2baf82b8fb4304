"""Files of messages: fetched, kept apart, refused in words; nothing half, nothing twice."""

from __future__ import annotations

import asyncio
import errno
import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.intake import MAX_FILES, ROOM_AFTER, safe_name
from channels.fake import FakeChannel
from core.contracts.addresses import Attachment, MessageBody, PressBody
from core.contracts.delivery import INBOX_QUEUE, InboxState
from core.contracts.errors import DownloadFailed, DownloadRefused, StorageFull
from core.contracts.messages import ReminderPart
from core.models.scripted import asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from tests.bot.conversations.hosting import CHANNEL, HERE, SAM, hosting

ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        made = {"make x": FakeOutcome(output=b"made")}
        return hosting(tmp_path, *(steps or [says("one"), says("two")]), outcomes=made, **more)

    return open_host


def attached(name: str, *, handle: str = "h") -> Attachment:
    return Attachment(handle=handle, name=name, media_type="text/plain", size_bytes=3)


def message(*names: str, text: str = "look") -> MessageBody:
    return MessageBody(text=text, attachments=tuple(attached(name) for name in names))


async def sends(host, body: MessageBody, **more) -> None:
    host.channel.files["h"] = b"abc"
    await host.arrives(body, **more)
    await host.settle()


async def again(host, wait: timedelta) -> None:
    """Let the time pass that the router asked for, and ring it."""
    assert host.answers.pop((INBOX_QUEUE, HERE.key)).wait == wait
    await host.clock.advance(wait)
    await host.ring(INBOX_QUEUE, HERE.key)
    await host.settle()


async def stored(host):
    rows = await host.stores.delivery.inbox_of(HERE.key)
    return await host.stores.attachments.attachments_of([row.id for row in rows])


def told_to_the_model(host) -> str:
    parts = [part for each in host.model.requests[-1].messages for part in each.parts]
    return "\n".join(part.text for part in parts if isinstance(part, ReminderPart) and part.kind == "attachments")


async def test_a_file_is_kept_in_a_closed_folder_of_its_conversation_and_the_model_is_told_where(opened):
    async with opened() as host:
        await sends(host, message("notes.txt"))
        (file,) = await stored(host)
        path = Path(file.path)
        assert path.read_bytes() == b"abc"
        assert (path.parent.name, path.name) == (await host.conversation_id(), f"{file.inbox_id}-0-notes.txt")
        assert [folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
        assert (file.name, file.media_type, file.size_bytes, file.refusal) == ("notes.txt", "text/plain", 3, "")
        assert f"notes.txt (text/plain, 3 bytes): {path}" in told_to_the_model(host)


async def test_a_file_without_words_starts_a_turn(opened):
    async with opened() as host:
        await sends(host, message("cat.png", text=""))
        assert host.texts() == ["one"]


async def test_files_of_one_name_do_not_meet(opened):
    async with opened() as host:
        await sends(host, message("a.txt", "a.txt"))
        await sends(host, message("a.txt"))
        assert len({file.path for file in await stored(host)}) == 3


async def test_a_stranger_brings_no_file(opened):
    async with opened() as host:
        await sends(host, message("a.txt"), who=SAM)
        assert await stored(host) == ()
        assert "We have not met" in host.texts()[0]


async def test_a_refused_file_is_told_with_its_reason_here_and_to_the_model_and_the_words_are_answered(opened):
    """C07: what is too big, or not what it says it is."""
    async with opened() as host:
        host.channel.fail_next_download(DownloadRefused("it is a sign-in page; the file scope is missing"))
        await sends(host, message("photo.png", "fine.txt", "other.png"))
        assert host.texts() == [
            "I could not take:\n- `photo.png`: it is a sign-in page; the file scope is missing",
            "one",
        ]
        assert "photo.png, which was not taken: it is a sign-in page" in told_to_the_model(host)
        assert [bool(file.path) for file in await stored(host)] == [False, True, True]


async def test_all_refused_files_of_a_message_are_told_in_one_message(opened):
    async with opened() as host:
        host.channel.fail_next_download(DownloadRefused("too large"), DownloadRefused("gone"))
        await sends(host, message("a", "b`c"))
        assert host.texts()[0] == "I could not take:\n- `a`: too large\n- `b'c`: gone"


async def test_the_size_limit_of_the_configuration_holds(opened):
    async with opened() as host:
        host.channel.files["h"] = b"x" * 20_000_001
        await host.arrives(message("big.bin"))
        await host.settle()
        assert "`big.bin`: it is larger than" in host.texts()[0]


async def test_of_too_many_files_the_first_are_taken_and_the_others_refused(opened):
    async with opened() as host:
        await sends(host, message(*(f"{number}.txt" for number in range(MAX_FILES + 2))))
        assert [bool(file.path) for file in await stored(host)] == [True] * MAX_FILES + [False] * 2
        assert host.texts()[0].count("only the first 10 files of a message are taken") == 2


async def test_a_file_that_cannot_be_had_now_is_asked_for_three_more_times(opened):
    async with opened() as host:
        host.channel.fail_next_download(*[DownloadFailed("timeout")] * 3)
        await sends(host, message("a.txt"))
        assert host.model.requests == []
        for seconds in (1, 4, 15):
            await again(host, timedelta(seconds=seconds))
        assert [file.refusal for file in await stored(host)] == [""]
        assert host.texts() == ["one"]


async def test_after_the_fourth_failure_the_file_is_refused(opened):
    async with opened() as host:
        host.channel.fail_next_download(*[DownloadFailed("timeout at 10.0.0.1")] * 4)
        await sends(host, message("a.txt"))
        for seconds in (1, 4, 15):
            await again(host, timedelta(seconds=seconds))
        assert host.texts() == ["I could not take:\n- `a.txt`: it could not be downloaded", "one"]


async def test_a_ring_in_between_does_not_ask_sooner_and_what_was_fetched_is_not_fetched_again(opened):
    async with opened() as host:
        host.channel.fail_next_download(DownloadFailed("timeout"))
        await sends(host, message("a.txt", "b.txt"))
        before = await stored(host)
        assert [file.name for file in before] == ["b.txt"]
        Path(before[0].path).write_bytes(b"as it was")
        host.channel.files["h"] = b"new"
        await host.clock.advance(timedelta(milliseconds=400))
        assert (await host.ring(INBOX_QUEUE, HERE.key)).wait == timedelta(milliseconds=600)
        await again(host, timedelta(milliseconds=600))
        assert [Path(file.path).read_bytes() for file in await stored(host)] == [b"new", b"as it was"]


async def test_while_a_file_is_asked_for_again_its_senders_next_message_waits_behind_it(opened):
    async with opened() as host:
        host.channel.fail_next_download(DownloadFailed("timeout"))
        await sends(host, message("a.txt", text="first"))
        await host.says("second")
        await host.says("/whoami")
        assert "You are Alice" in host.texts()[0]
        await again(host, timedelta(seconds=1))
        assert [request.messages[-1].parts[-1].text for request in host.model.requests] == ["first", "second"]


class Disk(FakeChannel):
    """A channel whose downloads find the disk full while `full`, or do not come to an end while `held`."""

    full = True
    held = None

    async def download(self, attachment, into, *, limit_bytes):
        if self.held is not None:
            await self.held.wait()
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await super().download(attachment, into, limit_bytes=limit_bytes)


async def test_on_a_full_disk_the_message_waits_and_its_sender_is_told_once(opened):
    async with opened(channel=Disk(CHANNEL)) as host:
        await sends(host, message("a.txt"))
        await again(host, ROOM_AFTER)
        assert [row.state for row in await host.stores.delivery.inbox_of(HERE.key)] == [InboxState.NEW]
        assert len(host.texts()) == 1
        assert "I cannot store your files right now" in host.texts()[0]
        host.channel.full = False
        await again(host, ROOM_AFTER)
        assert host.texts()[-1] == "one"


class FullDatabase:
    """An attachment store that has no room for new rows."""

    def __init__(self, inner) -> None:
        self._inner = inner

    async def attachments_of(self, inbox_ids):
        return await self._inner.attachments_of(inbox_ids)

    async def add_attachments(self, attachments):
        raise StorageFull("database or disk is full")


async def test_a_full_database_is_a_full_disk(opened):
    async with opened() as host:
        await host.arrives(message("a.txt"))
        host.channel.files["h"] = b"abc"
        (row,) = await host.stores.delivery.new_events(HERE.key)
        intake = host.app.router._ports.reception._ports.intake
        full = type(intake)(
            attachments=FullDatabase(host.stores.attachments),
            answers=intake._answers,
            channels=host.app.channels,
            clock=host.clock,
            root=intake._root,
            limit_bytes=100,
        )
        assert await full.take([row], "conv-1") == ROOM_AFTER
        assert "I cannot store your files right now" in host.texts()[0]


async def test_after_a_crash_half_a_file_is_replaced_and_a_whole_one_kept(tmp_path, opened):
    database = Database.open(":memory:")
    async with opened(database=database) as first:
        first.channel.fail_next_download(DownloadFailed("timeout"))
        await sends(first, message("a.txt", "b.txt"))
        (kept,) = await stored(first)
        half = Path(kept.path).with_name(f"{kept.inbox_id}-0-a.txt")
        half.write_bytes(b"a")
        Path(kept.path).write_bytes(b"as it was")
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": first.model}
    async with opened(database=database, **more) as second:
        await second.ring(INBOX_QUEUE, HERE.key)
        await second.settle()
        assert [Path(file.path).read_bytes() for file in await stored(second)] == [b"abc", b"as it was"]
        assert second.texts() == ["one"]
    await database.close()


async def test_a_press_is_answered_while_a_file_is_fetched(opened):
    """C27: what takes long does not stand in the way of a button."""
    async with opened(ASKING, says("made"), channel=Disk(CHANNEL)) as host:
        host.channel.full = False
        await host.says("do it")
        card = host.card_with("Approve")
        host.channel.held = asyncio.Event()
        host.channel.files["h"] = b"abc"
        await host.arrives(message("slow.bin"))
        async with asyncio.TaskGroup() as group:
            routing = group.create_task(host.settle(INBOX_QUEUE))
            passing = group.create_task(host.time_passes())
            await host.arrives(PressBody(token=card.buttons["Approve"], card=card.external_id))
            await host.until(lambda: "Approved." in [told for _, told in host.channel.acknowledgements])
            assert await stored(host) == ()
            host.channel.held.set()
            await routing
            passing.cancel()
        await host.settle()
        assert host.commands == ["make x"]
        assert [told for _, told in host.channel.acknowledgements].count("Approved.") == 1
        assert len(await stored(host)) == 1


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("notes.txt", "notes.txt"),
        ("заметки.md", "заметки.md"),
        ("हिन्दी.txt", "हिन्दी.txt"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("a b\n$(rm -rf).sh", "a_b___rm_-rf_.sh"),
        ("</system-reminder>.txt", "__system-reminder_.txt"),
        ("c:\\x\\y.doc", "c__x_y.doc"),
        ("x" * 300 + ".tar.gz", "x" * 97 + ".gz"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("a." + "b" * 50, "a." + "b" * 50),
        ("rtl\u202egpj.exe", "rtl_gpj.exe"),
    ],
)
def test_a_file_name_is_made_harmless(name, safe):
    assert safe_name(name) == safe


@given(st.text(max_size=400))
def test_any_name_is_one_short_visible_file(name):
    safe = safe_name(name)
    assert 1 <= len(safe) <= 100
    assert len(safe.encode()) <= 180
    assert not safe.startswith(".")
    assert not set(safe) & set("/\\\0\n<> ")
    assert safe_name(safe) == safe


async def test_the_agent_reads_what_came_with_a_message_where_it_is_told_to_be(tmp_path):
    def read_it(request):
        parts = [part for message in request.messages for part in message.parts if isinstance(part, ReminderPart)]
        (told,) = [part.text for part in parts if part.kind == "attachments"]
        return asks(tool_call("a", "read", json.dumps({"path": told.rsplit("): ", 1)[1].strip()})))

    async with hosting(tmp_path, read_it, says("ok")) as host:
        host.channel.files["h"] = b"hello from the file"
        file = Attachment(handle="h", name="a.txt", media_type="text/plain")
        await host.arrives(MessageBody(text="read it", attachments=(file,)))
        await host.settle()
        (found,) = await host.returns()
        assert "hello from the file" in found.parts[0].text
