"""What a transcript says of a turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.conversations.transcript import answers, masked_message
from core.contracts.messages import ReturnOutcome, TextPart, ToolReturn, tool_calls, visible_text
from core.models.scripted import asks, says
from tests.bot.conversations.hosting import HERE, hosting
from tests.bot.conversations.queueing import looks, queue
from tests.core.stores.samples import as_row, assistant_message, call, tool_message


@pytest.fixture
def opened(tmp_path):
    return lambda *steps, **more: hosting(tmp_path, *steps, **more)


async def turns_of(host) -> list:
    ids = dict.fromkeys(row.turn_id for row in await host.stores.delivery.inbox_of(HERE.key))
    return [await host.stores.ledger.turn(turn_id) for turn_id in ids]


async def said(host, turn) -> list[str]:
    return [visible_text(message.parts) for message in await answers(host.backend, turn)]


async def test_the_answers_of_a_turn_are_those_of_its_own_steps_whatever_people_said_in_between(opened):
    script = (says("Earlier."), asks(looks("a"), text="Let me look."), says("It is tea."), says("Later."))
    async with opened(*script) as host:
        await host.says("hello")
        await queue(host, "what is it?")
        await queue(host, "tell me quickly")
        await host.settle()
        await host.says("thanks")
        earlier, steered, later = await turns_of(host)
        assert await said(host, earlier) == ["Earlier."]
        assert await said(host, steered) == ["Let me look.", "It is tea."]
        assert await said(host, later) == ["Later."]


async def test_a_turn_that_said_nothing_yet_has_no_answers(opened):
    async with opened(says("Earlier.")) as host:
        await host.says("hello")
        (turn,) = await turns_of(host)
        await host.clock.advance(host.app.settings.permissions.remind_after)
        assert await said(host, replace(turn, id="turn-new", started_at=host.clock.now())) == []


def test_no_secret_is_left_in_any_part_of_a_message():
    def mask(text: str) -> str:
        return text.replace("echo", "****")

    masked = masked_message(as_row(assistant_message(TextPart(text="echo it"), call("c1"))), mask)
    assert visible_text(masked.parts) == "**** it"
    assert tool_calls(masked.parts)[0].arguments == '{"command":"**** x"}'
    (answer,) = masked_message(as_row(tool_message("c1", "echo")), mask).parts
    assert isinstance(answer, ToolReturn)
    assert (answer.parts[0].text, answer.outcome) == ("****", ReturnOutcome.OK)
