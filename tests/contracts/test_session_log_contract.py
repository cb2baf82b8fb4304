"""What every SessionLog promises; run on SQLite in a file and in memory."""

from __future__ import annotations

import asyncio

import pytest

from core.contracts.ids import ConversationId
from core.contracts.sessions import SessionLine
from tests.core.stores.samples import CONVERSATION, World, open_world, seed

OTHER = ConversationId("conv-2")


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        await seed(opened)
        await seed(opened, OTHER)
        yield opened


async def test_lines_are_numbered_without_gaps_in_each_conversation(world: World):
    log = world.stores.sessions
    assert await log.append_lines(CONVERSATION, ["a", "b"]) == (
        SessionLine(seq=1, text="a"),
        SessionLine(seq=2, text="b"),
    )
    assert await log.append_lines(OTHER, ["x"]) == (SessionLine(seq=1, text="x"),)
    assert await log.append_lines(CONVERSATION, []) == ()
    assert await log.append_lines(CONVERSATION, ["c"]) == (SessionLine(seq=3, text="c"),)


async def test_a_client_gets_what_came_after_the_line_it_knows(world: World):
    log = world.stores.sessions
    await log.append_lines(CONVERSATION, [str(number) for number in range(1, 6)])
    assert [line.text for line in await log.lines_after(CONVERSATION, 3)] == ["4", "5"]
    assert [line.text for line in await log.lines_after(CONVERSATION, 0, limit=2)] == ["1", "2"]
    assert await log.lines_after(CONVERSATION, 5) == ()


async def test_writers_at_once_get_numbers_of_their_own(world: World):
    log = world.stores.sessions
    await asyncio.gather(*(log.append_lines(CONVERSATION, [str(number)]) for number in range(20)))
    assert [line.seq for line in await log.lines_after(CONVERSATION, 0)] == list(range(1, 21))
