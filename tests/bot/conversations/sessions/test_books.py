"""Books of a host: which conversations have one, and for how long; and the tools of their turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.conversations.sessions import lines
from bot.conversations.sessions.clients import ToolAnswer
from bot.conversations.sessions.host_tools import read_tools
from bot.conversations.sessions.protocol import CLIENT_GRACE, TOOL_PATIENCE
from core.contracts.agents import Audience
from core.contracts.errors import ToolError
from core.contracts.ids import AgentId, CallId, TurnId
from core.contracts.messages import TextPart, ToolCall
from core.contracts.tools import ToolContext
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from core.turns.observer import CallStarted
from tests.bot.conversations.sessions.notebook import BOUND_SECONDS, Notebook, opened
from tests.core.stores.samples import CONVERSATION

BUILT_IN = StaticToolset("default", (StaySilent(),))
WEATHER = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
CALL = ToolCall(id=CallId("call-1"), name="weather", arguments="{}")
CONTEXT = ToolContext(
    agent_id=AgentId("agent-1"),
    memory_id="memory-1",
    conversation_id=CONVERSATION,
    turn_id=TurnId("turn-1"),
    call_id=CALL.id,
    workspace=Path("/srv"),
    overflow=Path("/srv/overflow"),
    audience=Audience(),
)


@pytest.fixture
async def notebook():
    async with opened() as notebook:
        yield notebook


async def register(notebook: Notebook, *tools: dict) -> None:
    async with notebook.books.book(CONVERSATION) as book:
        await book.say(lines.tools_registered(read_tools(tools, taken=())))


async def offered(notebook: Notebook) -> list[str]:
    toolset = await notebook.books.tools_of(CONVERSATION, BUILT_IN)
    return [schema.name for schema in toolset.schemas]


async def test_a_turn_without_a_session_has_the_toolset_as_it_is(notebook):
    assert await notebook.books.tools_of(CONVERSATION, BUILT_IN) is BUILT_IN


async def test_a_turn_has_the_tools_that_were_registered_last_also_after_a_restart(notebook):
    await register(notebook, WEATHER, {**WEATHER, "name": "tides"})
    await register(notebook, WEATHER)
    assert await offered(notebook) == ["stay_silent", "weather"]
    notebook.restart()
    assert await offered(notebook) == ["stay_silent", "weather"]
    await register(notebook)
    assert await notebook.books.tools_of(CONVERSATION, BUILT_IN) is BUILT_IN


async def test_a_book_stays_open_while_a_turn_is_told_and_is_closed_behind_it(notebook):
    async with notebook.books.book(CONVERSATION) as book:
        await book.say(lines.queued("m1", duplicate=False))
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
    assert await notebook.book() is await notebook.book()
    await turn.end()
    await turn.hears(None)
    assert await notebook.book() is not await notebook.book()


async def test_that_there_is_no_session_is_looked_up_once_and_holds_until_one_is_opened(notebook):
    turn = await notebook.begin()
    first, second = await turn.step(1, TextPart(text="Hello."))
    await turn.hears(first)
    # Past the books, which would know of it:
    await notebook.world.stores.sessions.append_lines(CONVERSATION, ['{"type":"queued","id":"m"}'])
    await turn.hears(second)
    assert await notebook.kinds() == ["queued"]
    await turn.end()
    await turn.hears(None)
    await notebook.book()
    later = await notebook.begin("turn-2")
    await later.hears(*await later.step(1, TextPart(text="Hello again.")))
    assert "turn_started" in await notebook.kinds()


class Weather:
    """The tool of a session in a turn, called by a test."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook

    async def begin(self) -> None:
        await register(self.notebook, WEATHER)
        turn = await self.notebook.begin()
        await turn.hears(*await turn.step(1, CALL), CallStarted(call=CALL))
        tool = (await self.notebook.books.tools_of(CONVERSATION, BUILT_IN)).find("weather")
        self.running = asyncio.create_task(tool.call({"city": "Kiel"}, CONTEXT))

    async def until_told(self, kind: str) -> dict:
        async with asyncio.timeout(BOUND_SECONDS):
            while not (found := [line for line in await self.notebook.lines() if line["type"] == kind]):
                await asyncio.sleep(0.001)
        return found[-1]

    async def passes(self, duration, *, waiting: int = 1) -> None:
        """Let time pass once so many wait for it."""
        async with asyncio.timeout(BOUND_SECONDS):
            while self.notebook.world.clock.sleeping < waiting:
                await asyncio.sleep(0.001)
        await self.notebook.world.clock.advance(duration)

    async def fails(self) -> str:
        """Return with which text the call fails."""
        async with asyncio.timeout(BOUND_SECONDS):
            with pytest.raises(ToolError) as failed:
                await self.running
        return str(failed.value)


async def test_a_tool_of_a_session_is_run_by_its_client(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            request = await weather.until_told("tool_request")
            assert (request["call_id"], request["arguments"]) == ("call-1", {"city": "Kiel"})
            book.clients.answer(CALL.id, ToolAnswer(text="sunny", is_error=False))
            assert await weather.running == (TextPart(text="sunny"),)


async def test_a_tool_that_fails_at_the_client_is_an_error_of_the_tool(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            await weather.until_told("tool_request")
            book.clients.answer(CALL.id, ToolAnswer(text="no such city", is_error=True))
            assert await weather.fails() == "no such city"


async def test_without_a_client_a_tool_is_not_asked_for_and_the_model_reads_that_nothing_was_done(notebook):
    weather = Weather(notebook)
    await weather.begin()
    await weather.passes(CLIENT_GRACE)
    assert "not connected. It was not asked, and nothing was done" in await weather.fails()
    assert "tool_request" not in await notebook.kinds()


async def test_a_client_that_went_away_leaves_an_unknown_end_and_is_told_so_when_it_is_back(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            await weather.until_told("tool_request")
    await weather.passes(CLIENT_GRACE, waiting=2)
    assert "went away after it was asked. Whether it took effect is unknown" in await weather.fails()
    assert (await weather.until_told("tool_withdrawn"))["reason"] == "disconnected"


async def test_a_client_that_is_too_slow_leaves_an_unknown_end(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            await weather.until_told("tool_request")
            await weather.passes(TOOL_PATIENCE)
            assert "did not answer in time. Whether it took effect is unknown" in await weather.fails()
    assert (await weather.until_told("tool_withdrawn"))["reason"] == "timeout"


async def test_a_cancelled_call_takes_its_request_back(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            await weather.until_told("tool_request")
            weather.running.cancel()
            await asyncio.gather(weather.running, return_exceptions=True)
            assert weather.running.cancelled()
    assert (await weather.until_told("tool_withdrawn"))["reason"] == "cancelled"


async def test_a_request_of_a_dead_host_is_withdrawn_by_the_next(notebook):
    weather = Weather(notebook)
    await weather.begin()
    async with notebook.books.book(CONVERSATION) as book:
        with book.clients.connected():
            await weather.until_told("tool_request")
            notebook.restart()
            await offered(notebook)
            weather.running.cancel()
            await asyncio.gather(weather.running, return_exceptions=True)
    withdrawn = [line["reason"] for line in await notebook.lines() if line["type"] == "tool_withdrawn"]
    assert withdrawn[0] == "host_stopped"


async def test_a_tool_that_was_taken_back_while_a_turn_runs_is_not_asked_for(notebook):
    weather = Weather(notebook)
    await weather.begin()
    weather.running.cancel()
    await asyncio.gather(weather.running, return_exceptions=True)
    tool = (await notebook.books.tools_of(CONVERSATION, BUILT_IN)).find("weather")
    await register(notebook)
    with pytest.raises(ToolError, match="'weather' is not offered any more"):
        await tool.call({}, CONTEXT)
