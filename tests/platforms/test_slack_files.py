"""Uploads in three steps, and downloads that go right and wrong."""

import asyncio

import httpx
import pytest

from tests.platforms.other_host import OtherHost
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, PRIVATE, ROOM

pytest_plugins = ["tests.platforms.slack_client"]


async def begun(slack, data=b"content", name="Notes.md"):
    return await slack.result("files.getUploadURLExternal", form=True, filename=name, length=len(data))


async def uploaded(slack, data=b"content", name="Notes.md"):
    ticket = await begun(slack, data, name)
    answer = await slack.http.post(ticket["upload_url"], content=data)
    assert answer.text == f"OK - {len(data)}"
    return ticket["file_id"]


async def completed(slack, file_id, **params):
    return await slack.call("files.completeUploadExternal", files=[{"id": file_id, "title": "T"}], **params)


async def get(slack, url, token=None):
    token = slack.server.token if token is None else token
    return await slack.http.get(url, headers={"Authorization": f"Bearer {token}"} if token else {})


async def test_an_upload_is_posted_into_a_thread_and_can_be_fetched_again(slack):
    root = slack.server.user_says(ROOM, ALICE, "q")
    file_id = await uploaded(slack)
    answer = await completed(slack, file_id, channel_id=ROOM, thread_ts=root, initial_comment="here")
    (message,) = slack.server.visible(ROOM, root)
    described = (await slack.result("files.info", file=file_id))["file"]

    assert [file["id"] for file in answer["files"]] == [file_id]
    assert (message.text, [file.data for file in message.files]) == ("here", [b"content"])
    assert (described["title"], described["mimetype"], described["size"]) == ("T", "text/markdown", 7)
    assert described["shares"] == {"public": {ROOM: [{"ts": message.ts}]}}
    assert (await get(slack, described["url_private"])).content == b"content"
    assert (await get(slack, described["url_private_download"])).headers["content-type"] == "text/markdown"


async def test_a_form_may_carry_the_bytes(slack):
    ticket = await begun(slack)
    answer = await slack.http.post(ticket["upload_url"], files={"file": ("Notes.md", b"content")})

    assert answer.text == "OK - 7"


async def test_a_file_without_a_channel_is_posted_nowhere(slack):
    answer = await completed(slack, await uploaded(slack))

    assert answer["ok"]
    assert slack.server.visible(ROOM) == []


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"filename": "a", "length": 0}, "missing_argument"),
        ({"filename": "a", "length": 1_000_000_001}, "file_upload_size_restricted"),
        ({"filename": "a", "length": 1, "alt_txt": "x" * 1001}, "alt_txt_too_large"),
        ({"length": 1}, "invalid_arguments"),
    ],
)
async def test_an_upload_that_cannot_be_is_refused_at_its_beginning(slack, params, error):
    assert await slack.refused("files.getUploadURLExternal", **params) == error


async def test_an_upload_has_the_length_it_was_told_with_and_takes_place_once(slack):
    ticket = await begun(slack)
    assert (await slack.http.post(ticket["upload_url"], content=b"longer than told")).status_code == 400
    assert (await completed(slack, ticket["file_id"], channel_id=ROOM))["error"] == "file_not_found"
    await slack.http.post(ticket["upload_url"], content=b"content")
    assert (await completed(slack, ticket["file_id"], channel_id=ROOM))["ok"]

    assert (await completed(slack, ticket["file_id"], channel_id=ROOM))["error"] == "file_not_found"
    assert (await slack.http.post(ticket["upload_url"], content=b"content")).status_code == 404


async def test_a_file_that_cannot_be_posted_is_not_complete(slack):
    file_id = await uploaded(slack)
    slack.server.removes_bot(PRIVATE)

    assert (await completed(slack, file_id, channel_id=PRIVATE))["error"] == "channel_not_found"
    assert await slack.refused("files.info", file=file_id) == "file_not_found"
    assert (await slack.call("files.completeUploadExternal", files=[]))["error"] == "invalid_arguments"


@pytest.mark.parametrize(("fault", "kept"), [(Fault.LOST_REQUEST, False), (Fault.LOST_RESPONSE, True)])
async def test_the_bytes_of_an_upload_can_be_lost_on_either_way(slack, fault, kept):
    ticket = await begun(slack)
    slack.server.fault("upload", fault)
    with pytest.raises(httpx.TransportError):
        await slack.http.post(ticket["upload_url"], content=b"content")

    assert (await completed(slack, ticket["file_id"], channel_id=ROOM))["ok"] is kept


async def test_a_file_of_a_person_comes_with_its_message(slack):
    file = slack.server.files.keep(b"\x89PNG", "cat.png", user=ALICE)
    slack.server.user_says(ROOM, ALICE, "look", files=(file,))
    (delivery,) = slack.server.deliveries.all
    shown = delivery.event["files"][0]

    assert (delivery.event["subtype"], shown["mimetype"], shown["name"]) == ("file_share", "image/png", "cat.png")
    assert (await get(slack, shown["url_private"])).content == b"\x89PNG"


async def test_a_file_of_a_connected_workspace_has_to_be_looked_up(slack):
    file = slack.server.files.keep(b"x", user=ALICE)
    file.is_stub = True
    slack.server.user_says(ROOM, ALICE, "look", files=(file,))
    (delivery,) = slack.server.deliveries.all

    assert delivery.event["files"][0]["file_access"] == "check_file_info"
    assert "url_private" not in delivery.event["files"][0]
    assert (await slack.result("files.info", file=file.id))["file"]["url_private"]


@pytest.mark.parametrize("reason", ["no token", "wrong token", "no scope", "revoked"])
async def test_who_may_not_have_a_file_is_shown_a_page_to_sign_in(slack, reason):
    file = slack.server.files.keep(b"secret")
    if reason == "no scope":
        slack.server.take_scope("files:read")
    if reason == "revoked":
        slack.server.revoke()
    token = {"no token": "", "wrong token": "xoxb-other"}.get(reason)
    answer = await get(slack, f"{slack.server.base}{file.path}", token)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")
    assert answer.text.startswith("<!DOCTYPE html>")


async def test_a_deleted_file_is_gone(slack):
    file = slack.server.files.keep(b"x")
    slack.server.files.delete(file)

    assert (await get(slack, f"{slack.server.base}{file.path}")).status_code == 404
    assert await slack.refused("files.info", file=file.id) == "file_not_found"


@pytest.mark.parametrize(
    ("fault", "status", "media_type", "body"),
    [
        (Fault.SIGN_IN_PAGE, 200, "text/html", b"<!DOCTYPE html>"),
        (Fault.SIGN_IN_BYTES, 200, "application/octet-stream", b"<!DOCTYPE html>"),
        (Fault.NOT_FOUND, 404, None, b""),
        (Fault.FLOODED, 429, None, b""),
    ],
)
async def test_a_download_goes_wrong_as_scripted(slack, fault, status, media_type, body):
    file = slack.server.files.keep(b"0123456789")
    slack.server.fault("download", fault, seconds=30)
    answer = await get(slack, f"{slack.server.base}{file.path}")

    assert (answer.status_code, answer.headers.get("content-type")) == (status, media_type)
    assert answer.content.startswith(body)
    assert (await get(slack, f"{slack.server.base}{file.path}")).content == b"0123456789"


async def test_a_download_is_cut_short_comes_slowly_never_or_from_elsewhere(slack):
    url = f"{slack.server.base}{slack.server.files.keep(b'0123456789').path}"
    for fault in (Fault.CUT_SHORT, Fault.LOST_REQUEST):
        slack.server.fault("download", fault)
        with pytest.raises(httpx.TransportError):
            await get(slack, url)
    slow = slack.server.fault("download", Fault.SLOW, seconds=9)
    download = asyncio.create_task(get(slack, url))
    await asyncio.wait_for(slow.entered.wait(), 30)
    await slack.server.wait_for(lambda: slack.clock.sleeping)
    await slack.pass_time(9)
    assert (await asyncio.wait_for(download, 30)).content == b"0123456789"
    async with OtherHost(b"elsewhere") as other:
        slack.server.fault("download", Fault.REDIRECTED, location=f"{other.base}/x")
        answer = await get(slack, url)

    assert (answer.status_code, answer.headers["location"]) == (302, f"{other.base}/x")
    assert other.requests == []


async def test_a_download_without_an_end_goes_on_until_the_app_hangs_up(slack):
    url = f"{slack.server.base}{slack.server.files.keep(b'x').path}"
    slack.server.fault("download", Fault.ENDLESS)
    received = 0
    async with slack.http.stream("GET", url, headers={"Authorization": f"Bearer {slack.server.token}"}) as answer:
        async for piece in answer.aiter_raw():
            received += len(piece)
            if received > 1_000_000:
                break

    assert slack.server.downloads.bytes_sent > 900_000
