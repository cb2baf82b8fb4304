"""Files from people, over the wire; C07 with its inputs."""

import asyncio
import gzip
import tracemalloc
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import Attachment
from core.contracts.errors import DownloadFailed, DownloadRefused
from tests.channels.slack.sending import answering, opened
from tests.platforms.other_host import OtherHost
from tests.platforms.slack_downloads import SIGN_IN_PAGE
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import TOKEN

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 500
LIMIT = 1_000_000


@pytest.fixture
async def scene():
    async with opened() as opened_scene:
        yield opened_scene


def kept(scene, data=PNG, name="photo.png", media_type="image/png", **more):
    file = scene.server.files.keep(data, name=name, media_type=media_type)
    for field, value in more.items():
        setattr(file, field, value)
    return Attachment(handle=file.id, name=name, media_type=media_type)


async def refused(scene, attachment, into, error=DownloadRefused, limit_bytes=LIMIT):
    with pytest.raises(error) as raised:
        await scene.downloads.download(attachment, into, limit_bytes=limit_bytes)
    assert list(into.parent.iterdir()) == []
    return raised.value.detail


async def half_written(scene, folder):
    """Return when half of a slow file was written, and the other half waits for the clock."""
    await scene.until(lambda: scene.clock.sleeping and any(path.stat().st_size for path in folder.iterdir()))


async def test_the_bytes_are_asked_for_with_the_token_and_written_c07(scene, tmp_path):
    size = await scene.downloads.download(kept(scene), tmp_path / "a.png", limit_bytes=LIMIT)

    assert size == len(PNG)
    assert (tmp_path / "a.png").read_bytes() == PNG
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert [call.token for call in scene.server.calls_of("download")] == [TOKEN]


async def test_a_redirect_is_followed_and_the_token_is_not_sent_to_the_other_host_c07(scene, tmp_path):
    async with OtherHost(PNG) as other:
        scene.server.fault("download", Fault.REDIRECTED, location=f"{other.base}/x")
        await scene.downloads.download(kept(scene), tmp_path / "a.png", limit_bytes=LIMIT)

    assert (tmp_path / "a.png").read_bytes() == PNG
    assert len(other.requests) == 1
    assert TOKEN not in other.requests[0]


async def test_a_redirect_on_the_same_server_still_carries_the_token(scene, tmp_path):
    attachment = kept(scene)
    scene.server.fault("download", Fault.REDIRECTED, location=scene.server.files.by_id[attachment.handle].path)

    assert await scene.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


@pytest.mark.parametrize("fault", [Fault.SIGN_IN_PAGE, Fault.SIGN_IN_BYTES])
async def test_a_sign_in_page_is_known_by_its_type_and_by_its_content_c07(scene, tmp_path, fault):
    scene.server.fault("download", fault)

    assert "files:read" in await refused(scene, kept(scene), tmp_path / "a.png")


async def test_a_missing_scope_is_named_c07(scene, tmp_path):
    attachment = kept(scene)
    scene.server.take_scope("files:read")

    assert "files:read" in await refused(scene, attachment, tmp_path / "a.png")


@pytest.mark.parametrize(("name", "media_type"), [("page", "text/html; charset=utf-8"), ("page.htm", "text/plain")])
async def test_a_page_that_somebody_sent_is_a_file_and_the_sign_in_page_is_not(scene, tmp_path, name, media_type):
    page = replace(kept(scene, b"<!DOCTYPE html><p>mine</p>", name, "text/html"), media_type=media_type)
    assert await scene.downloads.download(page, tmp_path / "a", limit_bytes=LIMIT) == 26
    (tmp_path / "a").unlink()
    scene.server.fault("download", Fault.SIGN_IN_PAGE)

    assert len(SIGN_IN_PAGE) != 26
    assert "files:read" in await refused(scene, page, tmp_path / "a")


async def test_a_file_without_end_is_stopped_at_the_limit_and_memory_stays_flat_c07(scene, tmp_path):
    scene.server.fault("download", Fault.ENDLESS)
    tracemalloc.start()
    detail = await refused(scene, kept(scene), tmp_path / "a.png", limit_bytes=20_000_000)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert "larger than 20 MB" in detail
    assert used < 5_000_000


async def test_a_size_that_is_known_to_be_too_much_is_believed(scene, tmp_path):
    attachment = Attachment(handle="F1", name="a", media_type="image/png", size_bytes=LIMIT + 1)
    await refused(scene, attachment, tmp_path / "a.png")
    assert scene.server.calls == []
    await refused(scene, kept(scene, size=LIMIT + 1), tmp_path / "a.png")

    assert scene.server.calls_of("download") == []


async def test_a_size_that_only_the_answer_tells_is_believed_before_it_is_read(scene, tmp_path):
    await refused(scene, kept(scene, bytes(3_000_000), size=0), tmp_path / "a.png")


@pytest.mark.parametrize(
    "file",
    [
        {"url_private": "https://example.org/x.png"},
        {"url_private": "https://slack.com.evil.example/x.png"},
        {"url_private": "", "mode": "external"},
        {},
    ],
)
async def test_what_slack_does_not_keep_itself_is_refused_and_nothing_is_asked_elsewhere(scene, tmp_path, file):
    scene.server.fail_next("files.info", 200, {"ok": True, "file": file})

    assert "elsewhere" in await refused(scene, kept(scene), tmp_path / "a.png")


async def test_a_file_that_is_external_or_deleted_is_refused(scene, tmp_path):
    attachment = kept(scene)
    url = f"{scene.server.base}{scene.server.files.by_id[attachment.handle].path}"
    scene.server.fail_next("files.info", 200, {"ok": True, "file": {"url_private": url, "is_external": True}})
    assert "elsewhere" in await refused(scene, attachment, tmp_path / "a.png")
    scene.server.fail_next("files.info", 200, {"ok": True, "file": {"url_private": url, "mode": "tombstone"}})
    assert "no more" in await refused(scene, attachment, tmp_path / "a.png")
    scene.server.files.delete(scene.server.files.by_id[attachment.handle])

    assert "no more" in await refused(scene, attachment, tmp_path / "a.png")


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.NOT_FOUND, DownloadRefused), (Fault.FLOODED, DownloadFailed), (Fault.ANSWERED, DownloadFailed),
     (Fault.LOST_REQUEST, DownloadFailed), (Fault.CUT_SHORT, DownloadFailed)],
)  # fmt: skip
async def test_what_may_come_later_failed_and_the_rest_is_refused(scene, tmp_path, fault, error):
    scene.server.fault("download", fault, times=2)  # the client asks again by itself where the first connection ends
    await refused(scene, kept(scene), tmp_path / "a.png", error)


async def test_fewer_bytes_than_slack_has_are_no_file(scene, tmp_path):
    await refused(scene, kept(scene, size=len(PNG) + 1), tmp_path / "a.png", DownloadFailed)


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST, Fault.FLOODED])
async def test_asking_where_the_file_is_may_fail_too(scene, tmp_path, fault):
    scene.server.fault("files.info", fault, times=2)
    await refused(scene, kept(scene), tmp_path / "a.png", DownloadFailed)


async def test_an_outage_fails_and_a_later_try_succeeds(scene, tmp_path):
    attachment = kept(scene)
    await scene.server.stop()
    await refused(scene, attachment, tmp_path / "a.png", DownloadFailed)
    await scene.server.start()

    assert await scene.downloads.download(attachment, tmp_path / "a.png", limit_bytes=LIMIT) == len(PNG)


async def test_a_file_that_comes_too_slowly_fails_in_the_end(scene, tmp_path):
    scene.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(refused(scene, kept(scene), tmp_path / "a.png", DownloadFailed))
    await half_written(scene, tmp_path)
    await scene.clock.advance(timedelta(seconds=600))

    assert "too slowly" in await asyncio.wait_for(download, 30)


async def test_a_download_that_is_cancelled_leaves_no_file(scene, tmp_path):
    scene.server.fault("download", Fault.SLOW, seconds=600)
    download = asyncio.create_task(scene.downloads.download(kept(scene), tmp_path / "a.png", limit_bytes=LIMIT))
    await half_written(scene, tmp_path)
    download.cancel()
    await asyncio.wait({download}, timeout=30)

    assert download.cancelled()
    assert list(tmp_path.iterdir()) == []


async def test_what_a_crash_left_is_replaced_and_a_planted_link_not_followed(scene, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    (tmp_path / "a.png.part").symlink_to(elsewhere)
    await scene.downloads.download(kept(scene), tmp_path / "a.png", limit_bytes=LIMIT)

    assert elsewhere.read_text() == "untouched"
    assert (tmp_path / "a.png").read_bytes() == PNG


async def test_a_file_that_comes_packed_is_not_unpacked(scene, tmp_path):
    async with answering(gzip.compress(PNG), "image/png", headers={"Content-Encoding": "gzip"}) as base:
        scene.server.fault("download", Fault.REDIRECTED, location=f"{base}/x")

        assert "packed" in await refused(scene, kept(scene), tmp_path / "a.png", DownloadFailed)


async def test_a_folder_that_cannot_be_written_to_fails(scene, tmp_path):
    with pytest.raises(DownloadFailed):
        await scene.downloads.download(kept(scene), tmp_path / "no" / "a.png", limit_bytes=LIMIT)
