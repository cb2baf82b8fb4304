"""Uploads and downloads, as the Bot API documents them."""

import asyncio
import struct
from datetime import timedelta

import httpx
import pytest

from tests.platforms.other_host import OtherHost
from tests.platforms.telegram_faults import Fault

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 90, 90)


async def upload(client, method, field, data, **more):
    return await client.call(method, chat_id=111, files={field: ("a.bin", data, "application/x-test")}, **more)


async def test_a_document_is_kept_and_shown_and_can_be_fetched_again(client):
    result = (await upload(client, "sendDocument", "document", b"content", caption="  for you "))["result"]
    (message,) = client.server.visible(111)
    described = await client.result("getFile", file_id=result["document"]["file_id"])

    assert (result["document"]["file_name"], result["caption"]) == ("a.bin", "for you")
    assert (message.text, message.file.data) == ("for you", b"content")
    assert (await client.file(described["file_path"])).content == b"content"
    assert (await client.file(described["file_path"], token="1:x")).status_code == 404


@pytest.mark.parametrize(
    ("method", "field", "data", "told"),
    [
        ("sendDocument", "document", b"", "non-empty"),
        ("sendDocument", "photo", b"x", "there is no document"),
        ("sendPhoto", "photo", b"no image", "IMAGE_PROCESS_FAILED"),
        ("sendPhoto", "photo", PNG + bytes(10_000_000), "too big"),
        ("sendPhoto", "photo", PNG[:16] + struct.pack(">II", 2100, 100), "PHOTO_INVALID_DIMENSIONS"),
        ("sendVoice", "voice", b"ID3", "VOICE_INVALID"),
        ("sendDocument", "document", bytes(50_000_001), "Too Large"),
    ],
)
async def test_what_cannot_be_sent_is_refused(client, method, field, data, told):
    answer = await upload(client, method, field, data)

    assert told in answer["description"]
    assert client.server.visible(111) == []


async def test_a_caption_has_its_own_limit(client):
    assert (await upload(client, "sendPhoto", "photo", PNG, caption="x" * 1024))["ok"]
    answer = await upload(client, "sendPhoto", "photo", PNG, caption="\U0001f600" * 513)

    assert "caption is too long" in answer["description"]


async def test_the_text_of_a_file_is_no_text_to_edit(client):
    sent = (await upload(client, "sendVoice", "voice", b"OggS"))["result"]
    told = await client.refused("editMessageText", chat_id=111, message_id=sent["message_id"], text="x")

    assert "no text in the message" in told[1]


async def test_a_file_that_is_unknown_or_too_big_for_bots_cannot_be_found(client):
    big = client.server.files.keep(b"x", size=20_000_001)

    assert "too big" in (await client.refused("getFile", file_id=big.id))[1]
    assert "wrong file_id" in (await client.refused("getFile", file_id="none"))[1]


@pytest.mark.parametrize(
    ("fault", "status", "body"),
    [(Fault.NOT_FOUND, 404, b""), (Fault.SIGN_IN_PAGE, 200, b"<!DOCTYPE html>"), (None, 200, b"0123456789")],
)
async def test_a_download_goes_wrong_as_scripted(client, fault, status, body):
    file = client.server.files.keep(b"0123456789")
    if fault is not None:
        client.server.fault("download", fault)
    answer = await client.file(file.path)

    assert answer.status_code == status
    assert body in answer.content


async def test_a_download_is_cut_short_comes_slowly_or_from_elsewhere(client):
    file = client.server.files.keep(b"0123456789")
    client.server.fault("download", Fault.CUT_SHORT)
    with pytest.raises(httpx.TransportError):
        await client.file(file.path)
    slow = client.server.fault("download", Fault.SLOW, seconds=9)
    download = asyncio.create_task(client.file(file.path))
    await asyncio.wait_for(slow.entered.wait(), 30)
    await client.server.wait_for(lambda: client.server.clock.sleeping)
    await client.server.clock.advance(timedelta(seconds=9))
    assert (await asyncio.wait_for(download, 30)).content == b"0123456789"
    async with OtherHost(b"elsewhere") as other:
        client.server.fault("download", Fault.REDIRECTED, location=f"{other.base}/x")
        answer = await client.file(file.path)

    assert (answer.status_code, answer.headers["location"]) == (302, f"{other.base}/x")
    assert other.requests == []


async def test_a_download_without_an_end_goes_on_until_the_bot_hangs_up(client):
    file = client.server.files.keep(b"x")
    client.server.fault("download", Fault.ENDLESS)
    url = f"{client.server.api_base}/file/bot{client.server.token}/{file.path}"
    received = 0
    async with client.http.stream("GET", url) as answer:
        async for piece in answer.aiter_raw():
            received += len(piece)
            if received > 1_000_000:
                break

    assert client.server.files.bytes_sent > 900_000
