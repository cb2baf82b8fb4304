"""Files on their way out, over the wire."""

import asyncio
import os
import struct
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.telegram.files import clipped
from core.contracts.addresses import Address, FileContent, OutboundItem
from core.contracts.errors import SendLimited, SendRejected, SendUnknown
from tests.channels.telegram.conftest import ALICE
from tests.platforms.telegram_faults import Fault

FORUM = Address(channel="telegram", account="123456789", chat="-1001000000001", thread="5")
OPUS = b"OggS" + bytes(24) + b"OpusHead" + bytes(100)


def png(width=90, height=90):
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(100)


def item(path, media_type="application/pdf", *, address=ALICE, caption="", **more):
    content = FileContent(path=str(path), name=path.name, media_type=media_type, caption=caption, silent=True)
    return OutboundItem(id="t/1", address=address, content=content, **more)


def written(tmp_path, data, name="report.pdf"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


async def sent(world, outgoing, chat_id=111):
    external_id = await world.channel.deliver(outgoing)
    message = world.server.chats.by_id[chat_id].messages[int(external_id)]
    return message, world.server.calls[-1].method


async def rejected(world, outgoing):
    with pytest.raises(SendRejected) as raised:
        await world.channel.deliver(outgoing)
    assert world.server.visible(111) == []
    return raised.value.detail


async def test_a_document_arrives_with_its_name_caption_and_reply(world, tmp_path):
    asked = world.server.user_says(111, "where is it?")
    path = written(tmp_path, b"%PDF-1.7", "Übersicht 1.pdf")
    message, method = await sent(world, item(path, caption="Here it *is*", reply_to=str(asked)))

    assert method == "sendDocument"
    assert (message.file.name, message.file.data, message.text) == (path.name, b"%PDF-1.7", "Here it *is*")
    assert (message.silent, message.reply_to, message.entities) == (True, asked, [])


@pytest.mark.parametrize(
    ("name", "media_type", "data", "method"),
    [
        ("a.png", "image/png", png(), "sendPhoto"),
        ("a.jpg", "image/jpeg; x=1", b"\xff\xd8\xff" + bytes(50), "sendPhoto"),
        ("a.gif", "image/gif", b"GIF89a", "sendDocument"),
        ("a.svg", "image/svg+xml", b"<svg/>", "sendDocument"),
        ("big.png", "image/png", png() + bytes(10_000_000), "sendDocument"),
        ("a.ogg", "audio/ogg", OPUS, "sendVoice"),
        ("vorbis.ogg", "audio/ogg", b"OggS" + bytes(24) + b"\x01vorbis", "sendDocument"),
        ("a.mp3", "audio/mpeg", b"ID3", "sendDocument"),
    ],
)
async def test_each_file_is_sent_as_what_people_see_best(world, tmp_path, name, media_type, data, method):
    message, called = await sent(world, item(written(tmp_path, data, name), media_type))

    assert called == method
    assert message.file.data == data


@pytest.mark.parametrize("data", [b"no image at all", png(9000, 2000), png(2100, 100)])
async def test_an_image_that_telegram_does_not_take_as_a_photo_goes_as_a_document(world, tmp_path, data):
    message, method = await sent(world, item(written(tmp_path, data, "a.png"), "image/png"))

    assert method == "sendDocument"
    assert (message.file.kind, message.file.data) == ("document", data)
    assert len(world.server.visible(111)) == 1


async def test_a_person_who_wants_no_voice_messages_gets_the_file(world, tmp_path):
    body = {"ok": False, "error_code": 400, "description": "Bad Request: VOICE_MESSAGES_FORBIDDEN"}
    world.server.fail_next("sendVoice", 400, body)
    _, method = await sent(world, item(written(tmp_path, OPUS, "a.ogg"), "audio/ogg"))

    assert method == "sendDocument"


async def test_a_file_at_the_limit_is_sent_and_one_over_it_refused_in_words(world, tmp_path):
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    assert "bots send 50 MB at most" in await rejected(world, item(path))
    assert world.server.calls == []
    os.truncate(path, 50_000_000)
    message, _ = await sent(world, item(path))

    assert message.file.size == 50_000_000


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone.pdf", "not there any more"), ("nul\0byte", "ValueError"), ("", "no file"), ("pipe", "no file"),
     ("empty", "empty")],
)  # fmt: skip
async def test_what_is_no_file_is_refused_in_words(world, tmp_path, name, words):
    os.mkfifo(tmp_path / "pipe")
    written(tmp_path, b"", "empty")

    assert words in await rejected(world, item(tmp_path / name))
    assert world.server.calls == []


async def test_the_file_is_read_when_it_is_sent(world, tmp_path):
    path = written(tmp_path, b"first")
    outgoing = item(path)
    path.write_bytes(b"second")
    message, _ = await sent(world, outgoing)

    assert message.file.data == b"second"


async def test_a_caption_is_cut_to_what_fits_with_a_mark(world, tmp_path):
    message, _ = await sent(world, item(written(tmp_path, b"x"), caption="\U0001f600" * 2000))

    assert message.text == "\U0001f600" * 511 + "…"


@pytest.mark.parametrize(
    ("caption", "shown"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1023 + "…"),
        ("x" * 1022 + "\U0001f469‍\U0001f4bb" + "y" * 9, "x" * 1022 + "…"),
    ],
)
def test_a_caption_is_cut_between_characters(caption, shown):
    assert clipped(caption) == shown


async def test_a_file_goes_to_its_topic_and_to_the_chat_when_that_is_gone_c20(world, tmp_path):
    world.server.open_chat(-1001000000001, topics=(5,))
    outgoing = item(written(tmp_path, b"x"), address=FORUM)
    in_topic, _ = await sent(world, outgoing, -1001000000001)
    world.server.chats.by_id[-1001000000001].topics.clear()
    await world.clock.advance(timedelta(seconds=10))
    in_chat, _ = await sent(world, outgoing, -1001000000001)

    assert (in_topic.thread, in_chat.thread) == (5, None)


async def test_a_file_takes_the_place_of_a_message(world, tmp_path):
    shown = await world.channel.deliver(world.text("one moment"))
    external_id = await world.channel.deliver(item(written(tmp_path, b"x"), external_id=shown))

    assert [str(message.id) for message in world.server.visible(111)] == [external_id]
    assert external_id != shown


async def test_a_message_that_cannot_be_taken_away_does_not_send_its_file_twice(world, tmp_path):
    shown = await world.channel.deliver(world.text("one moment"))
    world.server.fault("deleteMessage", Fault.LOST_REQUEST)
    await world.channel.deliver(item(written(tmp_path, b"x"), external_id=shown))

    assert [message.text for message in world.server.visible(111)] == ["one moment", ""]


async def test_a_flood_wait_of_a_file_holds_its_chat_alone_c15(world, tmp_path):
    outgoing = item(written(tmp_path, b"x"))
    world.server.fault("sendDocument", Fault.FLOODED, seconds=25)
    with pytest.raises(SendLimited) as raised:
        await world.channel.deliver(outgoing)
    assert raised.value.retry_after == timedelta(seconds=25)
    other = replace(outgoing, address=replace(ALICE, chat="222"))
    await world.channel.deliver(other)
    again = asyncio.create_task(world.channel.deliver(outgoing))
    await world.pass_time(24)
    assert len(world.server.calls_of("sendDocument", 111)) == 1
    await world.pass_time(2)
    await again

    assert len(world.server.visible(111)) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_lost_upload_leaves_the_outcome_open(world, tmp_path, fault):
    world.server.fault("sendDocument", fault)
    with pytest.raises(SendUnknown):
        await world.channel.deliver(item(written(tmp_path, b"x")))

    assert len(world.server.calls_of("sendDocument")) == 1


async def test_an_upload_shows_itself_while_it_takes(world, tmp_path):
    gate = world.server.gate_next("sendDocument")
    upload = asyncio.create_task(world.channel.deliver(item(written(tmp_path, b"x"))))
    await asyncio.wait_for(gate.entered.wait(), 30)
    await world.pass_time(6, step=0.25)
    gate.opened.set()
    await upload
    await world.pass_time(10)

    actions = [call.params["action"] for call in world.server.calls_of("sendChatAction", 111)]
    assert actions == ["upload_document", "upload_document"]


async def test_a_held_chat_is_told_nothing_of_an_upload_c15(world, tmp_path):
    gate = world.server.gate_next("sendDocument")
    upload = asyncio.create_task(world.channel.deliver(item(written(tmp_path, b"x"))))
    await asyncio.wait_for(gate.entered.wait(), 30)
    world.server.fault("sendChatAction", Fault.FLOODED, seconds=30)
    await world.pass_time(20, step=0.25)
    gate.opened.set()
    await upload

    assert len(world.server.calls_of("sendChatAction")) == 1
