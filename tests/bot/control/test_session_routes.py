"""The routes of two-way sessions."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from bot.control.client import HostClient
from bot.conversations.sessions.protocol import LINE_LIMIT_BYTES
from tests.bot.control.control_kit import raw, serving
from tests.bot.control.fake_sessions import SESSION, FakeSessions

BOUND_SECONDS = 60
PATH = "/sessions/conv-1"


@pytest.fixture
async def sessions():
    return FakeSessions()


async def test_a_session_is_opened_and_looked_at(tmp_path, sessions):
    async with serving(tmp_path / "s", sessions=sessions) as control:
        assert await control.client.post("/sessions", {"agent": "lodger"}) == SESSION
        assert await control.client.post("/sessions", {"conversation": "conv-1"}) == SESSION
        assert await control.client.get(PATH) == SESSION
    assert sessions.opened == [("lodger", ""), ("", "conv-1")]


async def test_lines_are_streamed_as_they_are_told_behind_a_number(tmp_path, sessions):
    sessions.tell('{"seq":1}', '{"seq":2}')
    async with (
        serving(tmp_path / "s", sessions=sessions) as control,
        aclosing(control.client.stream(f"{PATH}/lines?after=1")) as lines,
    ):
        assert await anext(lines) == {"seq": 2}
        sessions.tell('{"seq":3}', '{"seq":4}')
        assert [await anext(lines), await anext(lines)] == [{"seq": 3}, {"seq": 4}]


async def test_a_client_that_left_does_not_count_any_more(tmp_path, sessions):
    sessions.tell('{"seq":1}')
    async with serving(tmp_path / "s", sessions=sessions) as control, asyncio.timeout(BOUND_SECONDS):
        async with aclosing(control.client.stream(f"{PATH}/lines")) as lines:
            await anext(lines)
            assert sessions.followers == 1
        while sessions.followers:
            await asyncio.sleep(0.001)


async def test_open_streams_end_when_the_host_stops(tmp_path, sessions):
    sessions.tell('{"seq":1}')
    begun = asyncio.Event()

    async def collect(client):
        found = []
        async for line in client.stream(f"{PATH}/lines"):
            found.append(line)
            begun.set()
        return found

    async with raw(tmp_path / "s") as http, asyncio.timeout(BOUND_SECONDS):
        async with serving(tmp_path / "s", sessions=sessions):
            following = asyncio.create_task(collect(HostClient(http)))
            await begun.wait()
        assert await following == [{"seq": 1}]
    assert sessions.followers == 0


async def test_an_input_is_taken_and_its_answer_is_for_the_sender(tmp_path, sessions):
    async with serving(tmp_path / "s", sessions=sessions) as control:
        assert await control.client.post(f"{PATH}/input", {"type": "ping"}) == {"lines": [{"type": "pong"}]}
        assert await control.client.post(f"{PATH}/input", {"type": "cancel"}) == {"lines": []}
    assert sessions.taken == [{"type": "ping"}, {"type": "cancel"}]


async def test_the_turn_of_a_command_is_stopped_by_its_message(tmp_path, sessions):
    async with serving(tmp_path / "s", sessions=sessions) as control:
        assert await control.client.post("/turns/conv-1/cancel", {"input_id": "run-1"}) == {"told": "Stopping."}
    assert sessions.cancelled == ["run-1"]


REFUSED = [
    ("GET", "/sessions/conv-x", b"", 404, "no conversation 'conv-x'"),
    ("GET", "/sessions/conv-x/lines", b"", 404, "no conversation 'conv-x'"),
    ("GET", f"{PATH}/lines?after=7", b"", 400, "there is no line 7 yet"),
    ("GET", f"{PATH}/lines?after=x", b"", 400, "'x' is no number"),
    ("POST", f"{PATH}/input", b"{", 400, "not JSON"),
    ("POST", f"{PATH}/input", b"[]", 400, "not a JSON object"),
    ("POST", f"{PATH}/input", b"x" * (LINE_LIMIT_BYTES + 1), 400, "the body is longer than 10000000 bytes"),
    ("POST", "/sessions", b"[]", 400, "the body is no JSON object"),
    ("POST", "/turns/conv-1/cancel", b"{}", 400, "the body has no 'input_id'"),
]


async def test_what_cannot_be_done_is_a_status_and_one_text(tmp_path, sessions):
    async with serving(tmp_path / "s", sessions=sessions), raw(tmp_path / "s") as http:
        for method, path, body, status, told in REFUSED:
            answer = await http.request(method, path, content=body)
            assert answer.status_code == status, path
            assert answer.json()["error"].startswith(told)
    assert sessions.taken == sessions.cancelled == []
