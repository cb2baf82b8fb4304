import asyncio
import io
import tracemalloc
from contextlib import asynccontextmanager
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web

from channels.slack.connection import Connection
from channels.slack.limits import Timing
from tests.channels.slack.sending import answering
from tests.platforms.other_host import OtherHost
from tests.platforms.slack_server import TOKEN


@asynccontextmanager
async def connection(api_base="https://slack.com/api/", **timing):
    opened = Connection(TOKEN, api_base, Timing(**timing))
    try:
        yield opened
    finally:
        await opened.aclose()


@asynccontextmanager
async def taking(reads):
    """Give the address of a server that reads what is posted with `reads`, which gets the request."""
    app = web.Application()

    async def serve(request):
        return web.Response(text=str(await reads(request)))

    app.router.add_post("/upload", serve)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/upload"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("https://slack.com/api/files", True),
        ("https://slack.com:443/x", True),
        ("https://files.slack.com/files-pri/T-F/x", True),
        ("https://files.slack.com:8443/x", False),
        ("http://files.slack.com/x", False),
        ("http://slack.com/x", False),
        ("https://files.slack.com.evil.example/x", False),
        ("https://evilslack.com/x", False),
        ("https://slack.com@evil.example/x", False),
        ("https://example.org/slack.com", False),
        ("/files-pri/x", False),
        ("", False),
        ("http://[", False),
        ("https://slack.com:99999/", False),
    ],
)
async def test_the_token_may_go_to_slacks_own_hosts_alone(url, is_own):
    async with connection() as opened:
        assert opened.is_own(url) is is_own


async def test_redirects_are_followed_with_the_token_at_home_only_c07():
    async with OtherHost(b"bytes") as other:
        headers = {"Location": f"{other.base}/elsewhere"}
        async with (
            answering(b"", status=302, headers=headers) as base,
            connection(base) as opened,
            opened.open_file(f"{base}/file") as response,
        ):
            assert await response.read() == b"bytes"

    assert len(other.requests) == 1
    assert TOKEN not in other.requests[0]


@pytest.mark.parametrize("location", ["/again", "http://[", "ftp://example.org/x"])
async def test_redirects_to_nowhere_and_without_end_fail(location):
    async with (
        answering(b"", status=302, headers={"Location": location}) as base,
        connection(base) as opened,
    ):
        with pytest.raises(aiohttp.ClientError):
            async with opened.open_file(f"{base}/file"):
                raise AssertionError


async def test_a_file_is_read_while_it_goes_out(tmp_path):
    size = 40_000_000
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)

    async def reads(request):
        assert request.content_length == size
        return sum([len(piece) async for piece, _ in request.content.iter_chunks()])

    async with taking(reads) as url, connection() as opened:
        tracemalloc.start()
        with (tmp_path / "big").open("rb") as file:
            status = await opened.upload(url, file, size)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert status == 200
    assert used < 8_000_000


async def test_bytes_that_stand_still_are_given_up():
    async def reads(_request):
        await asyncio.Event().wait()

    async with taking(reads) as url, connection(upload_timeout=timedelta(milliseconds=100)) as opened:
        with pytest.raises(TimeoutError):
            await opened.upload(url, io.BytesIO(bytes(20_000_000)), 20_000_000)


async def test_cookies_are_forgotten_and_it_can_be_closed_before_it_was_opened():
    async with answering(b"{}", headers={"Set-Cookie": "d=xoxd-secret"}) as base, connection(base) as opened:
        await opened.post(f"{base}/a", {})
        assert list(opened.session.cookie_jar) == []
    async with connection():
        pass
