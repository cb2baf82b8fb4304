"""The fake is held to what Discord documents of files, by plain HTTP."""

import asyncio
import json
from datetime import timedelta

import httpx
import pytest

from tests.platforms.discord_files import FILE_LIMIT_BYTES, REQUEST_LIMIT_BYTES, SIGN_IN_PAGE, Upload
from tests.platforms.discord_guilds import ALICE, FORUM, GENERAL
from tests.platforms.telegram_faults import Fault

pytest_plugins = ["tests.platforms.discord_client"]

HERE = f"/channels/{GENERAL}/messages"


def form(body, *files):
    """Return the parts of a request with files, as (name, data) each."""
    parts = {f"files[{number}]": (name, data, "text/plain") for number, (name, data) in enumerate(files)}
    return {"data": {"payload_json": json.dumps(body)}, "files": parts}


async def link_of(discord, upload=None):
    """Let Alice send a file and return its link."""
    hers = discord.server.user_says(GENERAL, ALICE, "", files=[upload or Upload("a.txt", b"hello")])
    [attachment] = (await discord.result("GET", f"{HERE}/{hers}"))["attachments"]
    return attachment["url"]


async def test_files_come_with_a_message_under_the_names_it_gives_them(discord):
    body = {"content": "two", "attachments": [{"id": 1, "filename": "second one.txt", "description": "b"}]}
    sent = await discord.result("POST", HERE, **form(body, ("1.txt", b"one"), ("2.txt", b"two!")))
    first, second = sent["attachments"]

    assert (first["filename"], first["size"], first["content_type"]) == ("1.txt", 3, "text/plain")
    assert (second["filename"], second["size"], second["description"]) == ("second_one.txt", 4, "b")
    assert [file.data for file in discord.server.visible(GENERAL)[0].attachments] == [b"one", b"two!"]
    assert (await discord.http.get(second["url"])).content == b"two!"


async def test_a_file_needs_no_text(discord):
    assert (await discord.result("POST", HERE, **form({}, ("a.txt", b""))))["content"] == ""


async def test_an_edit_keeps_files_or_lets_them_go(discord):
    sent = await discord.result("POST", HERE, **form({"content": "a"}, ("1.txt", b"1"), ("2.txt", b"2")))
    there = f"{HERE}/{sent['id']}"
    keep = sent["attachments"][1]["id"]

    async def names(**request):
        return [file["filename"] for file in (await discord.result("PATCH", there, **request))["attachments"]]

    assert await names(body={"content": "b"}) == ["1.txt", "2.txt"]
    assert await names(body={"attachments": [{"id": keep}]}) == ["2.txt"]
    assert await names(**form({"attachments": [{"id": keep}, {"id": 0}]}, ("3.txt", b"3"))) == ["2.txt", "3.txt"]
    assert await names(body={"attachments": []}) == []


async def test_what_is_too_large_is_refused(discord):
    full = b"\x00" * FILE_LIMIT_BYTES
    assert await discord.refused("POST", HERE, **form({}, ("a", full + b"\x00"))) == (413, 40005)
    assert await discord.refused("POST", HERE, **form({}, *[("a", full)] * 3)) == (413, 40005)
    many = [(str(number), b"a") for number in range(11)]
    assert await discord.refused("POST", HERE, **form({}, *many)) == (400, 50035)
    assert discord.server.visible(GENERAL) == []
    assert 2 * FILE_LIMIT_BYTES < REQUEST_LIMIT_BYTES < 3 * FILE_LIMIT_BYTES

    assert len((await discord.result("POST", HERE, **form({}, *[("a", full)] * 2)))["attachments"]) == 2


async def test_a_post_of_a_forum_takes_files(discord):
    body = {"name": "How?", "message": {"content": ""}}
    post = await discord.result("POST", f"/channels/{FORUM}/threads", **form(body, ("a.txt", b"a")))

    assert post["message"]["attachments"][0]["filename"] == "a.txt"


async def test_a_link_works_for_a_day_and_can_be_made_anew(discord):
    link = await link_of(discord)
    await discord.server.clock.advance(timedelta(hours=23, minutes=59))
    assert (await discord.http.get(link)).content == b"hello"
    for passed in (timedelta(minutes=1), timedelta(days=1)):
        await discord.server.clock.advance(passed)
        assert (await discord.http.get(link)).status_code == 404
    body = {"attachment_urls": [link, "http://127.0.0.1/attachments/1/2/other"]}
    fresh, unknown = (await discord.result("POST", "/attachments/refresh-urls", body))["refreshed_urls"]

    assert fresh["original"] == link
    assert (await discord.http.get(fresh["refreshed"])).content == b"hello"
    assert "refreshed" not in unknown


async def test_a_link_that_somebody_changed_does_not_work(discord):
    link = await link_of(discord)
    for changed in (link.replace("hm=", "hm=0"), link.replace("a.txt", "b.txt"), link.partition("?")[0]):
        assert (await discord.http.get(changed)).status_code == 404
    later = link.replace("ex=", "ex=f")
    assert (await discord.http.get(later)).status_code == 404


async def test_a_message_that_is_read_again_has_fresh_links(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "", files=[Upload("a b.txt", b"hello")])
    await discord.server.clock.advance(timedelta(days=3))
    [attachment] = (await discord.result("GET", f"{HERE}/{hers}"))["attachments"]

    assert (attachment["filename"], (await discord.http.get(attachment["url"])).content) == ("a_b.txt", b"hello")


async def test_a_voice_message_says_how_long_it_is(discord):
    voice = Upload("voice-message.ogg", b"OggS", media_type="audio/ogg", seconds=2.5)
    hers = discord.server.user_says(GENERAL, ALICE, "", files=[voice])
    shown = await discord.result("GET", f"{HERE}/{hers}")

    assert (shown["flags"], shown["attachments"][0]["duration_secs"]) == (1 << 13, 2.5)
    assert shown["attachments"][0]["content_type"] == "audio/ogg"


async def test_a_file_can_be_told_to_be_larger_or_smaller_than_it_is(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "", files=[Upload("a.txt", b"hello", size=99)])
    [attachment] = (await discord.result("GET", f"{HERE}/{hers}"))["attachments"]

    assert attachment["size"] == 99
    assert (await discord.http.get(attachment["url"])).content == b"hello"


async def test_a_download_can_be_gone_sent_elsewhere_or_be_something_else(discord):
    link = await link_of(discord)
    discord.server.fault("download", Fault.NOT_FOUND)
    discord.server.fault("download", Fault.REDIRECTED, location="http://127.0.0.1/elsewhere")
    discord.server.fault("download", Fault.SIGN_IN_PAGE)
    discord.server.fail_next("download", 503)
    gone, moved, page, broken, fine = [await discord.http.get(link) for _ in range(5)]

    assert [gone.status_code, moved.headers["location"]] == [404, "http://127.0.0.1/elsewhere"]
    assert (page.content, broken.status_code, fine.content) == (SIGN_IN_PAGE, 503, b"hello")


async def test_a_download_can_be_cut_short(discord):
    link = await link_of(discord)
    discord.server.fault("download", Fault.CUT_SHORT)
    with pytest.raises(httpx.TransportError):
        await discord.http.get(link)


async def test_a_slow_download_goes_on_when_its_time_has_come(discord):
    link = await link_of(discord)
    slow = discord.server.fault("download", Fault.SLOW, seconds=30)
    download = asyncio.create_task(discord.http.get(link))
    await asyncio.wait_for(slow.entered.wait(), 30)
    await discord.server.clock.advance(timedelta(seconds=30))

    assert (await asyncio.wait_for(download, 30)).content == b"hello"


async def test_a_download_can_be_endless(discord):
    link = await link_of(discord)
    discord.server.fault("download", Fault.ENDLESS)
    received = 0
    async with discord.http.stream("GET", link) as response:
        async for chunk in response.aiter_bytes():
            received += len(chunk)
            if received > 1_000_000:
                break

    assert "content-length" not in response.headers
    assert discord.server.files.bytes_sent > 900_000
