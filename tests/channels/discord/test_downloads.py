"""Files from people, over the wire; C07 with its inputs as Discord would have them."""

import asyncio
import logging
import traceback
import tracemalloc
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.discord.handles import FileHandle, read_handle
from core.contracts.addresses import Attachment
from core.contracts.errors import DownloadFailed, DownloadRefused
from tests.channels.discord.sending import opened
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_files import SIGN_IN_PAGE, Upload
from tests.platforms.discord_guilds import ALICE, GENERAL
from tests.platforms.other_host import OtherHost
from tests.platforms.telegram_faults import Fault

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 500
LIMIT = 1_000_000
DAY = timedelta(days=1)


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


async def kept(world, data=PNG, name="photo.png", media_type="image/png", size=None, size_bytes=None):
    """Return the attachment of a message of Alice's, as the intake would describe it."""
    upload = Upload(name=name, data=data, media_type=media_type, size=size)
    message = world.server.user_says(GENERAL, ALICE, "see", files=[upload])
    shown = (await world.api.message(str(GENERAL), str(message)))["attachments"][0]
    handle = FileHandle(channel=str(GENERAL), message=str(message), attachment=shown["id"], url=shown["url"])
    world.server.calls.clear()
    return Attachment(handle=str(handle), name=name, media_type=media_type, size_bytes=size_bytes)


async def refused(world, attachment, into, error=DownloadRefused, limit_bytes=LIMIT):
    with pytest.raises(error) as raised:
        await world.downloads.download(attachment, into, limit_bytes=limit_bytes)
    assert list(into.parent.iterdir()) == []
    return raised.value.detail


async def half_written(world, folder):
    """Return when half of a slow file was written, and the other half waits for the clock."""
    await world.until(lambda: world.clock.sleeping and any(path.stat().st_size for path in folder.iterdir()))


async def test_the_bytes_of_a_file_are_written_and_counted_c07(world, tmp_path):
    attachment = await kept(world)
    size = await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT)

    assert size == len(PNG)
    assert (tmp_path / "a.png").read_bytes() == PNG
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert [call.route for call in world.server.calls] == ["download"]


async def test_the_token_is_sent_to_no_host_of_files_redirected_or_not_c07(world, tmp_path):
    async with OtherHost(PNG) as other, OtherHost(PNG) as first:
        attachment = await kept(world)
        world.server.fault("download", Fault.REDIRECTED, location=f"{other.base}/x")
        await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT)
        elsewhere = replace(read_handle(attachment.handle), url=f"{first.base}/y")
        attachment = replace(attachment, handle=str(elsewhere))
        await world.downloads.download(attachment, tmp_path / "b.png", limit_bytes=LIMIT)

    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes() == PNG
    (there,), (here,) = other.requests, first.requests
    assert "authorization" not in f"{there} {here}".lower()
    assert TOKEN not in there + here


async def test_a_redirect_that_never_ends_fails(world, tmp_path):
    attachment = await kept(world)
    target = read_handle(attachment.handle).url
    world.server.fault("download", Fault.REDIRECTED, location=target, times=50)

    await refused(world, attachment, tmp_path / "a.png", DownloadFailed)
    assert len(world.server.calls_of("download")) <= 10


async def test_a_link_that_has_run_out_is_asked_for_again_by_its_message(world, tmp_path):
    attachment = await kept(world)
    await world.clock.advance(2 * DAY)

    assert await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)
    assert [call.route for call in world.server.calls] == ["get_message", "download"]


async def test_a_link_that_is_refused_before_its_time_is_asked_for_again_too(world, tmp_path):
    attachment = await kept(world)
    world.server.fault("download", Fault.NOT_FOUND)

    assert await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)
    assert [call.route for call in world.server.calls] == ["download", "get_message", "download"]


async def test_a_handle_without_a_link_is_enough(world, tmp_path):
    attachment = await kept(world)
    bare = replace(attachment, handle=str(replace(read_handle(attachment.handle), url="")))

    assert await world.downloads.download(bare, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


async def test_a_file_whose_message_is_gone_is_gone(world, tmp_path):
    attachment = await kept(world)
    handle = read_handle(attachment.handle)
    await world.clock.advance(2 * DAY)
    other = replace(attachment, handle=str(replace(handle, attachment="1")))
    assert "no more" in await refused(world, other, tmp_path / "a.png")
    world.server.user_deletes(GENERAL, int(handle.message))

    assert "no more" in await refused(world, attachment, tmp_path / "a.png")
    assert "no more" in await refused(
        world, replace(attachment, handle=str(replace(handle, channel="5"))), tmp_path / "a.png"
    )


@pytest.mark.parametrize("handle", ["", "abc", "1/2 x", "AgACAgQ"])
async def test_a_handle_of_another_platform_is_refused(world, tmp_path, handle):
    await refused(world, Attachment(handle=handle, name="a", media_type="image/png"), tmp_path / "a.png")


async def test_a_sign_in_page_is_not_taken_for_the_file_c07(world, tmp_path):
    attachment = await kept(world, size_bytes=len(PNG))
    world.server.fault("download", Fault.SIGN_IN_PAGE)

    assert "sign-in page" in await refused(world, attachment, tmp_path / "a.png")


@pytest.mark.parametrize(
    "start", [b"<!DOCTYPE html>", b"\xef\xbb\xbf\r\n <!doctype HTML lang=en>", b"<html><body>", b"<HTML>"]
)
async def test_every_beginning_of_a_page_is_recognised_c07(world, tmp_path, start):
    await refused(world, await kept(world, start + b"<p>hi</p>" * 9000), tmp_path / "a.png")


@pytest.mark.parametrize(("name", "media_type"), [("page", "text/html; charset=utf-8"), ("page.htm", "text/plain")])
async def test_a_page_that_was_sent_as_one_is_taken(world, tmp_path, name, media_type):
    attachment = await kept(world, SIGN_IN_PAGE, name=name, media_type=media_type)

    assert await world.downloads.download(attachment, tmp_path / "x", limit_bytes=LIMIT) == len(SIGN_IN_PAGE)


async def test_a_file_that_never_ends_is_stopped_at_the_limit_with_flat_memory_c07(world, tmp_path):
    attachment = await kept(world)
    world.server.fault("download", Fault.ENDLESS)
    tracemalloc.start()
    try:
        detail = await refused(world, attachment, tmp_path / "a.png", limit_bytes=16_000_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "larger than 16 MB" in detail
    assert peak_bytes < 4_000_000
    assert world.server.files.bytes_sent < 60_000_000


async def test_a_size_that_is_known_too_large_costs_no_request(world, tmp_path):
    await refused(world, await kept(world, size_bytes=LIMIT + 1), tmp_path / "a.png")

    assert world.server.calls == []


async def test_a_size_that_the_answer_announces_is_believed_before_it_is_read(world, tmp_path):
    await refused(world, await kept(world, bytes(3_000_000), size_bytes=5), tmp_path / "a.png")


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [("", 403, DownloadRefused), ("", 400, DownloadRefused), ("", 503, DownloadFailed),
     ("", 429, DownloadFailed), (Fault.CUT_SHORT, 200, DownloadFailed), (Fault.NOT_FOUND, 404, DownloadRefused)],
)  # fmt: skip
async def test_what_may_come_later_failed_and_the_rest_is_refused(world, tmp_path, fault, status, error):
    attachment = await kept(world)
    if fault:
        world.server.fault("download", fault, times=2)
    else:
        world.server.fail_next("download", status, times=2)

    await refused(world, attachment, tmp_path / "a.png", error)


async def test_fewer_bytes_than_the_message_says_are_no_file(world, tmp_path):
    await refused(world, await kept(world, size_bytes=len(PNG) + 1), tmp_path / "a.png", DownloadFailed)


async def test_asking_for_the_message_may_fail_too(world, tmp_path):
    attachment = await kept(world)
    await world.clock.advance(2 * DAY)
    for fault in (Fault.LOST_RESPONSE, Fault.FLOODED):
        world.server.fault("get_message", fault, seconds=1)
        await refused(world, attachment, tmp_path / "a.png", DownloadFailed)


async def test_an_outage_fails_and_a_later_try_succeeds(world, tmp_path):
    attachment = await kept(world)
    await world.server.stop()
    await refused(world, attachment, tmp_path / "a.png", DownloadFailed)
    await world.server.start()

    assert await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


async def test_a_file_that_comes_too_slowly_fails_in_the_end(world, tmp_path):
    attachment = await kept(world)
    world.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(refused(world, attachment, tmp_path / "a.png", DownloadFailed))
    await half_written(world, tmp_path)
    await world.clock.advance(timedelta(seconds=600))

    assert "too slowly" in await asyncio.wait_for(download, 30)


async def test_a_download_that_is_cancelled_leaves_no_file(world, tmp_path):
    attachment = await kept(world)
    world.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT))
    await half_written(world, tmp_path)
    download.cancel()
    await asyncio.wait({download}, timeout=30)

    assert download.cancelled()
    assert list(tmp_path.iterdir()) == []


async def test_what_a_crash_left_is_replaced_and_a_planted_link_not_followed(world, tmp_path):
    attachment = await kept(world)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (tmp_path / "a.png.part").symlink_to(elsewhere)
    await world.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT)

    assert elsewhere.read_text() == "untouched"
    assert (tmp_path / "a.png").read_bytes() == PNG


async def test_a_folder_that_cannot_be_written_to_fails(world, tmp_path):
    attachment = await kept(world)
    with pytest.raises(DownloadFailed):
        await world.downloads.download(attachment, tmp_path / "no" / "a.png", limit_bytes=LIMIT)


async def test_no_error_of_a_download_holds_the_token_c69(world, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    attachment = await kept(world)
    told = []
    for fault in (Fault.CUT_SHORT, Fault.SIGN_IN_PAGE):
        world.server.fault("download", fault)
        with pytest.raises((DownloadRefused, DownloadFailed)) as raised:
            await world.downloads.download(attachment, tmp_path / "b.png", limit_bytes=LIMIT)
        told += [*traceback.format_exception(raised.value), repr(raised.value)]

    assert [text for text in (*told, caplog.text) if TOKEN in text or TOKEN[-20:] in text] == []
