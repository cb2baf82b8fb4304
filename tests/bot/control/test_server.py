"""The routes of the host's socket."""

import asyncio
import stat
from contextlib import aclosing

from bot.control.client import HostClient
from channels.feed import StatusSet
from core.contracts.addresses import OutboundItem, PressBody, TextContent
from tests.bot.console.fake_host import REVISION
from tests.bot.control.control_kit import OWNER, HeadlessHost, raw, serving

BOUND_SECONDS = 60


async def test_the_socket_is_for_this_user_only(tmp_path):
    async with serving(tmp_path / "s") as control:
        assert stat.S_IMODE(control.socket.stat().st_mode) == 0o600
        assert await control.client.get("/ping") == {"ok": True}


async def test_what_the_host_knows_is_listed(tmp_path):
    async with serving(tmp_path / "s") as control:
        client = control.client
        assert [agent["name"] for agent in await client.get("/agents")] == ["lodger"]
        assert await client.get("/conversations") == []
        (approval,) = await client.get("/approvals")
        assert (approval["id"], approval["shown"]) == ("approval-1", "git push --force origin main")
        assert [pairing["code"] for pairing in await client.get("/pairings")] == ["k7wq2m"]
        assert [file["path"] for file in await client.get("/memory/lodger")] == ["human.md", "secret.md"]
        assert [commit["revision"] for commit in await client.get("/memory/lodger/log")] == [REVISION]
        assert "+new" in (await client.get("/memory/lodger/diff/3f2a91c0"))["diff"]
        assert [check["name"] for check in await client.get("/readiness")] == ["store"]


async def test_what_is_decided_is_decided_as_the_owner(tmp_path):
    async with serving(tmp_path / "s") as control:
        client, host = control.client, control.host
        told = await client.post("/approvals/approval-1", {"choice": "deny", "feedback": "not on Friday"})
        assert told == {"told": "Decided: deny."}
        assert (await client.post("/pairings", {"code": "k7wq2m"}))["told"].startswith("Grace")
        assert await client.post("/memory/lodger/undo/3f2a", {}) == {"told": "Undone."}
        assert host.decided == [("approval-1", "deny", OWNER.name, "not on Friday")]
        assert host.paired == [("k7wq2m", OWNER.name)]
        assert host.undone == [("lodger", "3f2a", OWNER.name)]


REFUSED = [
    ("POST", "/approvals/none", b'{"choice": "deny"}', 404, "no approval 'none'"),
    ("GET", "/memory/nobody", b"", 404, "no agent 'nobody'"),
    ("GET", "/memory/lodger/diff/ffff", b"", 404, "no commit 'ffff'"),
    ("GET", "/conversations/none", b"", 404, "no conversation 'none'"),
    ("GET", "/conversations/none?after=x", b"", 400, "'x' is no number"),
    ("POST", "/turns", b'{"text": "x", "agent": "nobody"}', 404, "no agent 'nobody'"),
    ("POST", "/pairings", b'{"code": "wrong"}', 400, "no pairing 'wrong'"),
    ("POST", "/chats/main/say", b"{", 400, "the body is no JSON"),
    ("POST", "/chats/main/say", b"\xff\xfe\x00", 400, "the body is no JSON"),
    ("POST", "/chats/main/say", b"[1]", 400, "the body is no JSON object"),
    ("POST", "/chats/main/press", b'{"token": "t"}', 400, "the body has no 'card'"),
]


async def test_what_cannot_be_done_is_a_status_and_one_text(tmp_path):
    async with serving(tmp_path / "s") as control, raw(tmp_path / "s") as http:
        for method, path, body, status, told in REFUSED:
            answer = await http.request(method, path, content=body)
            assert (answer.status_code, answer.json()["error"]) == (status, told), path
    assert control.host.events == control.host.asked == []


async def test_a_host_without_its_database_is_unavailable(tmp_path):
    async with serving(tmp_path / "s") as control, raw(tmp_path / "s") as http:
        control.host.down = True
        for answer in (await http.get("/readiness"), await http.post("/chats/main/say", json={"text": "x"})):
            assert (answer.status_code, answer.json()["kind"]) == (503, "StoreUnavailable")


class BrokenHost(HeadlessHost):
    async def open_approvals(self):
        raise KeyError("a bug")


async def test_a_bug_is_no_bad_request_and_tells_nothing_of_the_inside(tmp_path):
    async with serving(tmp_path / "s", BrokenHost()), raw(tmp_path / "s") as http:
        answer = await http.get("/approvals")
        assert answer.status_code == 500
        assert "a bug" not in answer.text


async def test_a_message_sent_twice_under_one_key_counts_once(tmp_path):
    async with serving(tmp_path / "s") as control:
        for _ in range(2):
            await control.client.post("/chats/main/say", {"text": "hello", "key": "k1"})
        await control.client.post("/chats/main/press", {"token": "t", "card": "c"})
        said, pressed = control.host.events
        assert (said.key, said.body.text, said.sender) == ("k1", "hello", OWNER)
        assert isinstance(pressed.body, PressBody)
        assert (pressed.body.token, pressed.body.card) == ("t", "c")
        (entry,) = await control.client.get("/chats/main")
        assert (entry["external_id"], entry["name"], entry["content"]["markdown"]) == ("k1", "Ada", "hello")


async def test_a_feed_says_when_it_is_open_and_then_what_happens_in_its_chat(tmp_path):
    async with serving(tmp_path / "s") as control, aclosing(control.client.stream("/chats/main/feed")) as feed:
        assert await anext(feed) == {"type": "ready"}
        await control.client.post("/chats/other/say", {"text": "elsewhere"})
        await control.client.post("/chats/main/say", {"text": "hello", "key": "k1"})
        assert await anext(feed) == {"type": "said", "key": "k1", "name": "Ada", "text": "hello"}
        await control.terminal.deliver(shown(control, "hi\u2028there"))
        assert (await anext(feed))["content"]["markdown"] == "hi\u2028there"


async def test_a_viewer_that_left_is_forgotten(tmp_path):
    async with serving(tmp_path / "s") as control:
        async with aclosing(control.client.stream("/chats/main/feed")) as feed:
            await anext(feed)
            assert control.terminal._subscribers
        async with asyncio.timeout(BOUND_SECONDS):
            while control.terminal._subscribers:
                await asyncio.sleep(0.001)


async def test_a_viewer_that_is_too_slow_is_told_so_and_its_feed_ends(tmp_path):
    async with serving(tmp_path / "s") as control, aclosing(control.client.stream("/chats/main/feed")) as feed:
        await anext(feed)
        for _ in range(1_100):  # more than the channel keeps for one viewer, in one go
            control.terminal.preview(control.terminal.address("main"), StatusSet(status="thinking"))
        async with asyncio.timeout(BOUND_SECONDS):
            events = [event async for event in feed]
        assert events[-1] == {"type": "behind"}


async def collect(stream, begun):
    events = []
    async for event in stream:
        events.append(event)
        begun.set()
    return events


async def test_open_feeds_end_when_the_host_stops(tmp_path):
    begun = asyncio.Event()
    async with raw(tmp_path / "s") as http, asyncio.timeout(BOUND_SECONDS):
        async with serving(tmp_path / "s"):
            following = asyncio.create_task(collect(HostClient(http).stream("/chats/main/feed"), begun))
            await begun.wait()
        assert await following == [{"type": "ready"}]


async def test_a_turn_is_told_to_its_end(tmp_path):
    async with serving(tmp_path / "s") as control:
        control.host.turn = ({"type": "started"}, {"type": "result", "exit_code": 0})
        body = {"text": "hello", "agent": "lodger", "conversation": "conv-1"}
        events = [event async for event in control.client.stream("/turns", body)]
        assert events == list(control.host.turn)
        (asked,) = control.host.asked
        assert (asked.text, asked.agent, asked.conversation) == ("hello", "lodger", "conv-1")


async def test_a_turn_under_way_may_end_while_the_host_stops(tmp_path):
    begun, go_on, host = asyncio.Event(), asyncio.Event(), HeadlessHost()
    host.turn = ({"type": "started"}, go_on, {"type": "result"})
    async with raw(tmp_path / "s") as http, asyncio.timeout(BOUND_SECONDS):
        async with serving(tmp_path / "s", host):
            running = asyncio.create_task(collect(HostClient(http).stream("/turns", {"text": "x"}), begun))
            await begun.wait()
            asyncio.get_running_loop().call_soon(go_on.set)
        assert await running == [{"type": "started"}, {"type": "result"}]


def shown(control, markdown):
    address = control.terminal.address("main")
    return OutboundItem(id="turn-1/1", address=address, content=TextContent(markdown=markdown))
