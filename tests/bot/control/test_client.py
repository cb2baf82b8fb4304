"""What a command hears of a host that answers, refuses, or is gone."""

import asyncio
import json
import socket

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from bot.console.server import serve
from bot.control.client import HostGone, HostRefused, connect
from core.contracts.errors import StoreUnavailable
from tests.bot.control.control_kit import serving


async def read(stream):
    return [event async for event in stream]


@pytest.mark.parametrize("is_left_over", [False, True])
async def test_where_nobody_listens_the_host_is_gone(tmp_path, is_left_over):
    path = tmp_path / "s"
    if is_left_over:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    with pytest.raises(HostGone, match="the host does not answer"):
        async with connect(path):
            pass


async def test_a_host_that_hangs_up_is_gone_with_a_text_for_the_person(tmp_path):
    async def hang_up(reader, writer):
        await reader.readline()
        writer.close()

    async with await asyncio.start_unix_server(hang_up, tmp_path / "s"):
        with pytest.raises(HostGone) as gone:
            async with connect(tmp_path / "s"):
                pass
    assert str(gone.value).startswith("the host does not answer: ")
    assert not str(gone.value).endswith(": ")


async def test_an_error_of_the_host_is_its_own_text(tmp_path):
    async with serving(tmp_path / "s") as control:
        with pytest.raises(HostRefused) as refused:
            await control.client.get("/memory/nobody")
        assert str(refused.value) == "no agent 'nobody'"
        with pytest.raises(HostRefused) as refused:
            await control.client.post("/approvals/none", {"choice": "deny"})
        assert str(refused.value) == "no approval 'none'"


async def test_a_stream_that_is_refused_is_refused_before_its_first_object(tmp_path):
    async with serving(tmp_path / "s") as control:
        with pytest.raises(HostRefused, match="no agent 'nobody'"):
            await read(control.client.stream("/turns", {"text": "x", "agent": "nobody"}))


async def test_the_objects_of_a_stream_arrive_as_they_are_told(tmp_path):
    go_on = asyncio.Event()
    first, last = {"type": "text_delta", "text": "line\u2028sep\x85\x0b\ud800"}, {"type": "result", "text": ""}
    async with serving(tmp_path / "s") as control:
        control.host.turn = (first, go_on, last)
        stream = control.client.stream("/turns", {"text": "x"})
        assert await anext(stream) == first
        go_on.set()
        assert await read(stream) == [last]


async def test_a_stream_that_breaks_off_is_a_host_that_is_gone(tmp_path):
    async with serving(tmp_path / "s") as control:
        control.host.turn = ({"type": "started"}, StoreUnavailable("the disk is gone"))
        stream = control.client.stream("/turns", {"text": "x"})
        assert await anext(stream) == {"type": "started"}
        with pytest.raises(HostGone):
            await anext(stream)


@pytest.mark.parametrize(
    "answer",
    [
        PlainTextResponse("proxy error", status_code=502),
        JSONResponse(["no", "object"], status_code=502),
        JSONResponse({"other": "words"}, status_code=502),
    ],
)
async def test_an_error_in_no_known_form_is_told_by_its_status(tmp_path, answer):
    async def ping(_request):
        return answer

    async with serve(Starlette(routes=[Route("/ping", ping)]), uds=tmp_path / "s"):
        with pytest.raises(HostRefused, match="the host answered 502"):
            async with connect(tmp_path / "s"):
                pass


async def test_empty_lines_keep_a_stream_alive_and_are_no_objects(tmp_path):
    async def lines():
        for part in (b"\n", b'{"a": ', b"1}\n\n", b'{"b": 2}\n'):
            yield part

    async def feed(_request):
        return StreamingResponse(lines())

    async def ping(_request):
        return JSONResponse({})

    app = Starlette(routes=[Route("/ping", ping), Route("/feed", feed)])
    async with serve(app, uds=tmp_path / "s"), connect(tmp_path / "s") as client:
        assert json.dumps(await read(client.stream("/feed"))) == '[{"a": 1}, {"b": 2}]'
