import asyncio
import json
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx

from bot.console.server import serve
from bot.console.stream import coalesce
from channels.feed import Noticed, Previewed, Said, Shown, StatusSet
from core.contracts.addresses import CardContent, OutboundItem, PressBody, TextContent
from tests.bot.console.console_kit import OWNER, running_console

PATIENCE = 10


class Viewer:
    """Reads a chat's event stream as a browser does."""

    def __init__(self, response) -> None:
        self.response = response
        self._blocks = self._read_blocks()

    async def _read_blocks(self):
        block = []
        async for line in self.response.aiter_lines():
            if line:
                block.append(line)
            else:
                yield block
                block = []

    async def block(self):
        async with asyncio.timeout(PATIENCE):
            return await anext(self._blocks, None)

    async def event(self):
        """The next event as name and data."""
        while (block := await self.block()) is not None:
            fields = dict(line.partition(": ")[::2] for line in block)
            if "event" in fields:
                return fields["event"], json.loads(fields["data"])
        return None


@asynccontextmanager
async def watching(tmp_path, chat="main", *, before=lambda kit: None):
    """Give a console that is really served, and a viewer of one of its chats; `before` prepares it."""
    async with running_console() as kit, serve(kit.app, uds=tmp_path / "s"):
        before(kit)
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
            await browser.get("/login", params={"token": kit.sessions.new_link_token()})
            async with browser.stream("GET", f"/chat/{chat}/events", timeout=PATIENCE) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                yield kit, Viewer(response)


def item(kit, text, external_id=None):
    return OutboundItem(
        id="turn-1/1", address=kit.web.address("main"), content=TextContent(markdown=text), external_id=external_id
    )


async def test_a_stream_begins_with_the_history_and_what_happens_while_it_is_read_follows(tmp_path):
    def before(kit):
        address = kit.web.address("main")
        kit.host.remember(address.key, "m1", "", TextContent(markdown="*Hi*"))
        kit.host.remember(address.key, "k1", "Ada", TextContent(markdown="*Hello*"))
        kit.host.during_history = lambda: kit.web.preview(address, StatusSet(status="thinking"))

    async with watching(tmp_path, before=before) as (_, viewer):
        name, data = await viewer.event()
        assert name == "history"
        assert data["html"].index("<em>Hi</em>") < data["html"].index(">*Hello*<")
        assert await viewer.event() == ("status", {"text": "thinking"})


async def test_an_answer_grows_and_is_replaced_by_the_final_one(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        ids = []

        async def sent(external_id):
            ids.append(external_id)

        async with kit.web.reply(kit.web.address("main"), sent) as reply:
            assert await viewer.event() == ("status", {"text": "thinking"})
            await reply.show("Half")
            name, data = await viewer.event()
            assert name == "message"
            assert f'data-id="{ids[0]}"' in data["html"]
            assert "preview" in data["html"]
            await reply.set_status("running shell")
            assert await viewer.event() == ("status", {"text": "running shell"})
        assert await viewer.event() == ("status", {"text": ""})
        await kit.web.deliver(item(kit, "Half and half\n\n<script>", ids[0]))
        name, data = await viewer.event()
        assert f'data-id="{ids[0]}"' in data["html"]
        assert "preview" not in data["html"]
        assert "&lt;script&gt;" in data["html"]


async def test_what_a_person_says_is_seen_by_every_viewer_and_names_the_chat(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        await kit.web.say("main", OWNER, "Plan <my> day", key="key-1")
        name, data = await viewer.event()
        assert name == "message"
        assert "Plan &lt;my&gt; day" in data["html"]
        assert await viewer.event() == ("title", {"text": "Plan <my> day"})


async def test_the_answer_to_a_press_is_a_notice(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        await kit.web.press("main", OWNER, "t1", "card-1")
        body = kit.host.events[0].body
        assert isinstance(body, PressBody)
        await kit.web.acknowledge(body, "Too late <here>")
        assert await viewer.event() == ("notice", {"html": '<p class="notice">Too late &lt;here&gt;</p>'})


async def test_after_a_card_the_number_of_open_approvals_follows(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        assert (await viewer.event())[1]["waiting"] == "1"
        kit.host.approvals = []
        card = CardContent(text="Approved.", code="ls", rows=())
        await kit.web.deliver(OutboundItem(id="turn-1/ask", address=kit.web.address("main"), content=card))
        assert (await viewer.event())[0] == "message"
        assert await viewer.event() == ("waiting", {"text": "0"})


async def test_another_chat_is_not_heard(tmp_path):
    async with watching(tmp_path, chat="other") as (kit, viewer):
        await viewer.event()
        await kit.web.say("main", OWNER, "not for here", key="key-1")
        await kit.web.say("other", OWNER, "for here", key="key-2")
        assert "for here" in (await viewer.event())[1]["html"]


async def test_a_quiet_stream_is_kept_alive_every_15_seconds(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        for _ in range(2):
            await kit.clock.advance(timedelta(seconds=15))
            assert await viewer.block() == [": alive"]


async def test_a_stream_ends_when_the_session_does(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        (session,) = kit.sessions._sessions.values()
        kit.sessions.end(session)
        await kit.clock.advance(timedelta(seconds=15))
        assert await viewer.event() is None


async def test_a_stream_ends_when_the_server_stops(tmp_path):
    async with running_console() as kit:
        transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser:
            async with serve(kit.app, uds=tmp_path / "s"):
                await browser.get("/login", params={"token": kit.sessions.new_link_token()})
                request = browser.build_request("GET", "/chat/main/events", timeout=PATIENCE)
                response = await browser.send(request, stream=True)
                viewer = Viewer(response)
                await viewer.event()
            assert await viewer.event() is None
            await response.aclose()


async def test_a_viewer_that_left_is_forgotten(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        viewers = kit.web._subscribers[kit.web.address("main").key]
        assert len(viewers) == 1
        await viewer.response.aclose()
        async with asyncio.timeout(PATIENCE):
            while viewers:
                await asyncio.sleep(0)


async def test_a_viewer_that_the_channel_gave_up_is_sent_away_to_connect_again(tmp_path):
    async with watching(tmp_path) as (kit, viewer):
        await viewer.event()
        for number in range(1_001):
            kit.web.preview(kit.web.address("main"), StatusSet(status=f"step {number}"))
        assert await viewer.event() is None


async def test_a_stream_whose_history_cannot_be_read_ends_so_that_the_browser_tries_again(tmp_path):
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.down = True
        answer = await browser.get("/chat/main/events")
        assert answer.status_code == 200
        assert answer.text == ""


def test_previews_that_are_replaced_in_the_same_batch_are_dropped():
    final = Shown(external_id="m1", content=TextContent(markdown="abc"))
    said = Said(key="k", name="Ada", text="hi")
    events = [
        Previewed(external_id="m1", text="a"),
        StatusSet(status="thinking"),
        Previewed(external_id="m2", text="x"),
        Previewed(external_id="m1", text="ab"),
        said,
        final,
        Noticed(text="n"),
        Previewed(external_id="m2", text="xy"),
    ]
    assert coalesce(events) == [
        StatusSet(status="thinking"),
        said,
        final,
        Noticed(text="n"),
        Previewed(external_id="m2", text="xy"),
    ]
