"""Writes that break the contract change nothing, whatever they broke."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId, TurnId
from core.contracts.ledger import TurnEnd
from core.contracts.messages import TextPart
from core.contracts.runs import Claim, RunStatus, TurnOutcome
from tests.core.stores.samples import (
    CONVERSATION,
    RUN,
    TURN,
    assistant_message,
    events,
    open_world,
    run_end,
    run_start,
    seed,
    tool_message,
    tool_return,
    turn,
)


@pytest.fixture
async def world():
    async with open_world(":memory:") as opened:
        yield opened


@pytest.mark.parametrize("parts", [(), (TextPart(text="x"),), (tool_return("a"), tool_return("b"))])
async def test_a_tool_message_needs_exactly_one_return(world, parts):
    claim = await seed(world)
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.append_returns(claim, [replace(tool_message("a"), parts=parts)])
    assert await world.stores.transcripts.messages(CONVERSATION) == ()


async def test_a_claim_on_one_conversation_does_not_finish_a_run_of_another(world):
    mine, other = await seed(world), await seed(world, "conv-2")
    await world.stores.transcripts.begin_run(mine, run_start(RUN))
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.finish_run(other, run_end(None))
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.append_events(other, events(RUN, 1, run_end(None).events[-1].body))
    assert (await world.stores.transcripts.run(RUN)).status is RunStatus.ACTIVE


async def test_a_claim_on_one_conversation_does_not_move_a_turn_of_another(world):
    await seed(world)
    other = await seed(world, "conv-2")
    await world.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
    for write in (
        world.stores.ledger.add_progress(other, TURN, steps=1, active_seconds=0),
        world.stores.ledger.resume_turn(other, TURN),
        world.stores.ledger.finish_turn(other, TURN, TurnEnd(outcome=TurnOutcome.ERROR, outgoing=())),
    ):
        with pytest.raises((NotFound, InvalidInput)):
            await write
    assert await world.stores.ledger.turn(TURN) == turn()


async def test_a_claim_on_nothing_is_not_found(world):
    claim = Claim(conversation_id=ConversationId("conv-x"), epoch=1)
    with pytest.raises(NotFound):
        await world.stores.transcripts.begin_run(claim, run_start(RUN))
    with pytest.raises(NotFound):
        await world.stores.ledger.finish_turn(claim, TurnId("x"), TurnEnd(outcome=TurnOutcome.ERROR, outgoing=()))


async def test_a_message_id_is_used_once(world):
    claim = await seed(world)
    message = assistant_message(TextPart(text="x"))
    await world.stores.transcripts.append_returns(claim, [message])
    with pytest.raises(InvalidInput):
        await world.stores.transcripts.append_returns(claim, [message])


async def test_a_row_is_split_into_something(world):
    with pytest.raises(InvalidInput):
        await world.stores.delivery.split("x", [])
