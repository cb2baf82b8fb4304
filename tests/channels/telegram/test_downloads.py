"""Files from people, over the wire; C07 with its inputs as Telegram would have them."""

import asyncio
import logging
import traceback
import tracemalloc
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import Attachment
from core.contracts.errors import DownloadFailed, DownloadRefused
from tests.platforms.other_host import OtherHost
from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_files import SIGN_IN_PAGE
from tests.platforms.telegram_server import TOKEN

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 500
LIMIT = 1_000_000


def kept(world, data=PNG, name="photo.png", media_type="image/png", **more):
    file = world.server.files.keep(data, name=name, media_type=media_type, **more)
    return Attachment(handle=file.id, name=name, media_type=media_type)


async def refused(world, attachment, into, error=DownloadRefused, limit_bytes=LIMIT):
    with pytest.raises(error) as raised:
        await world.channel.download(attachment, into, limit_bytes=limit_bytes)
    assert list(into.parent.iterdir()) == []
    return raised.value.detail


async def half_written(world, folder):
    """Return when half of a slow file was written, and the other half waits for the clock."""
    await world.until(lambda: world.clock.sleeping and any(path.stat().st_size for path in folder.iterdir()))


async def test_the_bytes_of_a_file_are_written_and_counted_c07(world, tmp_path):
    size = await world.channel.download(kept(world), tmp_path / "a.png", limit_bytes=LIMIT)

    assert size == len(PNG)
    assert (tmp_path / "a.png").read_bytes() == PNG
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


async def test_a_redirect_is_followed_and_the_token_is_not_sent_to_the_other_host_c07(world, tmp_path):
    async with OtherHost(PNG) as other:
        world.server.fault("download", Fault.REDIRECTED, location=f"{other.base}/bot{TOKEN}/x?t={TOKEN}")
        await world.channel.download(kept(world), tmp_path / "a.png", limit_bytes=LIMIT)

    assert (tmp_path / "a.png").read_bytes() == PNG
    assert len(other.requests) == 1
    assert TOKEN not in other.requests[0]
    assert TOKEN.partition(":")[2] not in other.requests[0]


async def test_a_redirect_on_the_same_server_still_carries_the_token(world, tmp_path):
    attachment = kept(world)
    target = f"/file/bot{TOKEN}/{world.server.files.by_id[attachment.handle].path}"
    world.server.fault("download", Fault.REDIRECTED, location=target)

    assert await world.channel.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


async def test_a_redirect_that_never_ends_fails(world, tmp_path):
    attachment = kept(world)
    target = f"/file/bot{TOKEN}/{world.server.files.by_id[attachment.handle].path}"
    world.server.fault("download", Fault.REDIRECTED, location=target, times=50)

    await refused(world, attachment, tmp_path / "a.png", DownloadFailed)
    assert len(world.server.calls_of("download")) <= 10


async def test_a_sign_in_page_is_not_taken_for_the_file_c07(world, tmp_path):
    world.server.fault("download", Fault.SIGN_IN_PAGE)

    assert "sign-in page" in await refused(world, kept(world, size=1), tmp_path / "a.png")


@pytest.mark.parametrize(
    "start", [b"<!DOCTYPE html>", b"\xef\xbb\xbf\r\n <!doctype HTML lang=en>", b"<html><body>", b"<HTML>"]
)
async def test_every_beginning_of_a_page_is_recognised_c07(world, tmp_path, start):
    await refused(world, kept(world, start + b"<p>hi</p>" * 9000), tmp_path / "a.png")


@pytest.mark.parametrize(("name", "media_type"), [("page", "text/html; charset=utf-8"), ("page.htm", "text/plain")])
async def test_a_page_that_was_sent_as_one_is_taken(world, tmp_path, name, media_type):
    attachment = kept(world, SIGN_IN_PAGE, name=name, media_type=media_type)

    assert await world.channel.download(attachment, tmp_path / "x", limit_bytes=LIMIT) == len(SIGN_IN_PAGE)


async def test_a_file_that_never_ends_is_stopped_at_the_limit_with_flat_memory_c07(world, tmp_path):
    world.server.fault("download", Fault.ENDLESS)
    tracemalloc.start()
    try:
        detail = await refused(world, kept(world, size=400), tmp_path / "a.png", limit_bytes=16_000_000)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "larger than 16 MB" in detail
    assert peak_bytes < 4_000_000
    assert world.server.files.bytes_sent < 60_000_000


async def test_a_size_that_is_known_too_large_costs_no_request(world, tmp_path):
    attachment = replace(kept(world), size_bytes=LIMIT + 1)
    await refused(world, attachment, tmp_path / "a.png")
    assert world.server.calls_of("getFile") == []
    await refused(world, replace(kept(world, size=LIMIT + 1), size_bytes=None), tmp_path / "a.png")

    assert world.server.calls_of("download") == []


async def test_a_size_that_the_answer_announces_is_believed_before_it_is_read(world, tmp_path):
    await refused(world, kept(world, bytes(3_000_000), size=5), tmp_path / "a.png")


async def test_a_file_over_telegrams_own_limit_is_refused_with_that_limit_c07(world, tmp_path):
    attachment = kept(world, size=20_000_001)
    detail = await refused(world, attachment, tmp_path / "a.png", limit_bytes=50_000_000)

    assert "at most 20 MB" in detail


async def test_a_path_on_the_servers_own_disk_is_refused_with_what_to_do(world, tmp_path):
    secret = tmp_path.parent / "other.txt"
    secret.write_text("not yours")
    detail = await refused(world, kept(world, path=str(secret)), tmp_path / "a.png")

    assert "--local" in detail
    assert world.server.calls_of("download") == []


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [(Fault.NOT_FOUND, 404, DownloadRefused), ("", 403, DownloadRefused), ("", 503, DownloadFailed),
     ("", 429, DownloadFailed), (Fault.CUT_SHORT, 200, DownloadFailed)],
)  # fmt: skip
async def test_what_may_come_later_failed_and_the_rest_is_refused(world, tmp_path, fault, status, error):
    if fault:
        world.server.fault("download", fault)
    else:
        world.server.fail_next("download", status)

    await refused(world, kept(world), tmp_path / "a.png", error)


async def test_fewer_bytes_than_telegram_has_are_no_file(world, tmp_path):
    await refused(world, kept(world, size=len(PNG) + 1), tmp_path / "a.png", DownloadFailed)


@pytest.mark.parametrize(
    ("fault", "error"), [({"status": 500}, DownloadFailed), ({"drop_before": True}, DownloadFailed)]
)
async def test_asking_where_the_file_is_may_fail_too(world, tmp_path, fault, error):
    world.server.fail_next("getFile", **fault)
    await refused(world, kept(world), tmp_path / "a.png", error)
    unknown = Attachment(handle="no-such-id", name="a", media_type="image/png")

    await refused(world, unknown, tmp_path / "a.png", DownloadRefused)


async def test_an_outage_fails_and_a_later_try_succeeds(world, tmp_path):
    attachment = kept(world)
    await world.server.stop()
    await refused(world, attachment, tmp_path / "a.png", DownloadFailed)
    await world.server.start()

    assert await world.channel.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


async def test_a_file_that_comes_too_slowly_fails_in_the_end(world, tmp_path):
    world.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(refused(world, kept(world), tmp_path / "a.png", DownloadFailed))
    await half_written(world, tmp_path)
    await world.clock.advance(timedelta(seconds=600))

    assert "too slowly" in await asyncio.wait_for(download, 30)


async def test_a_download_that_is_cancelled_leaves_no_file(world, tmp_path):
    world.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(world.channel.download(kept(world), tmp_path / "a.png", limit_bytes=LIMIT))
    await half_written(world, tmp_path)
    download.cancel()
    await asyncio.wait({download}, timeout=30)

    assert download.cancelled()
    assert list(tmp_path.iterdir()) == []


async def test_what_a_crash_left_is_replaced_and_a_planted_link_not_followed(world, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (tmp_path / "a.png.part").symlink_to(elsewhere)
    await world.channel.download(kept(world), tmp_path / "a.png", limit_bytes=LIMIT)

    assert elsewhere.read_text() == "untouched"
    assert (tmp_path / "a.png").read_bytes() == PNG


async def test_a_folder_that_cannot_be_written_to_fails(world, tmp_path):
    with pytest.raises(DownloadFailed):
        await world.channel.download(kept(world), tmp_path / "no" / "a.png", limit_bytes=LIMIT)


async def test_the_link_to_a_file_is_in_no_log_line_and_no_error_c69(world, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    await world.channel.download(kept(world), tmp_path / "a.png", limit_bytes=LIMIT)
    told = []
    for fault in (Fault.NOT_FOUND, Fault.CUT_SHORT, Fault.SIGN_IN_PAGE):
        world.server.fault("download", fault)
        with pytest.raises((DownloadRefused, DownloadFailed)) as raised:
            await world.channel.download(kept(world), tmp_path / "b.png", limit_bytes=LIMIT)
        told += [*traceback.format_exception(raised.value), repr(raised.value)]
    told += [caplog.text, *(str(record.__dict__) for record in caplog.records)]

    assert "/file/botTOKEN/documents/" in caplog.text
    assert [text for text in told if TOKEN in text or TOKEN[-20:] in text] == []
