"""What people read before they decide: what the turn said, then all of the call, then its card."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.turn_host import whole_code
from channels.chunking import measure
from channels.contract import TextUnit
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import CardContent, OutboundItem
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.hosting import CHANNEL, HERE, SECRET, hosting

CODE_LIMIT = 120
LONG = "echo " + "a" * 300 + "; rm -rf /important"
MADE = {"make x": FakeOutcome(output=b"made")}


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps):
        channel = FakeChannel(CHANNEL, capabilities=replace(FAKE_CAPABILITIES, code_limit=CODE_LIMIT))
        return hosting(tmp_path, model=ScriptedModel(steps), outcomes=MADE, channel=channel)

    return open_host


def shell(command: str):
    return tool_call("a", "shell", f'{{"command":"{command}"}}')


def card(code: str) -> OutboundItem:
    return OutboundItem(id="turn-1/ask/apr-1", address=HERE, content=CardContent(text="May I?", code=code))


def codes(items) -> list[str]:
    return [item.content.code for item in items]


async def test_a_call_that_no_card_holds_is_shown_whole_above_its_card(opened):
    """Nobody approves what they cannot read: the tail may be the point of it."""
    async with opened(asks(shell(LONG))) as host:
        await host.says("do it")
        *above, asked = host.seen()
        assert "May I run shell?" in asked.text
        assert set(asked.buttons) >= {"Approve", "Deny"}
        assert "".join(message.content.code for message in above) == LONG
        assert all(message.buttons == {} for message in above)
        assert "part 1 of 3" in above[0].text


async def test_a_call_that_fits_its_card_is_shown_there_alone(opened):
    async with opened(asks(shell("make x"))) as host:
        await host.says("do it")
        assert len(host.seen()) == 1


async def test_a_secret_at_the_edge_of_two_pieces_is_shown_in_neither(opened):
    """Invariant 10: the whole is masked before it is cut."""
    command = "make " + "a" * (CODE_LIMIT - 10) + " " + SECRET + " " + "b" * CODE_LIMIT
    async with opened(asks(shell(command))) as host:
        await host.says("do it")
        *above, _ = host.seen()
        shown = "".join(message.content.code for message in above)
        assert shown == command.replace(SECRET, "[secret password]")
        assert SECRET[:8] not in repr(host.channel.messages)


async def test_what_is_taken_up_again_is_not_shown_again(opened):
    """The pieces have ids of the approval: a second posting changes nothing."""
    async with opened(asks(shell(LONG))) as host:
        await host.says("do it")
        seen = len(host.seen())
        (approval,) = await host.open_approvals()
        asked = (await host.stores.delivery.outbox_row(approval.card_id)).item
        await host.stores.delivery.post(whole_code(asked, host.channel.capabilities, str))
        await host.settle()
        assert len(host.seen()) == seen


async def test_what_was_said_stands_above_everything_that_is_asked_and_is_said_once(opened):
    async with opened(asks(shell(LONG), text="This is why."), says("Not then.")) as host:
        await host.says("do it")
        texts = host.texts()
        assert texts[0] == "This is why."
        assert texts[-1].startswith("May I run shell?")
        await host.presses("Deny")
        assert [host.texts().count(text) for text in ("This is why.", "Not then.")] == [1, 1]
        assert not any("This is why." in text and text != "This is why." for text in host.texts())


async def test_a_long_text_before_a_question_is_several_messages_in_order_above_it(opened):
    words = " ".join(f"word{number}" for number in range(500))
    async with opened(asks(shell("make x"), text=words), says("Made.")) as host:
        await host.says("do it")
        *above, asked = host.texts()
        assert "May I run shell?" in asked
        assert " ".join(above).split() == words.split()
        await host.presses("Approve")
        assert host.texts()[-1] == "Made."


@given(st.text(alphabet=st.sampled_from("ab \n`😀é"), max_size=200), st.integers(4, 40), st.sampled_from(TextUnit))
def test_the_pieces_join_to_the_code_and_each_fits(code, limit, unit):
    capabilities = replace(FAKE_CAPABILITIES, code_limit=limit, text_unit=unit)
    pieces = whole_code(card(code), capabilities, str)
    assert "".join(codes(pieces)) == (code if measure(code, unit) > limit else "")
    assert all(0 < measure(piece, unit) <= limit for piece in codes(pieces))
    assert len({piece.id for piece in pieces} | {card(code).id}) == len(pieces) + 1


def test_a_character_that_is_wider_than_a_piece_is_a_piece_of_its_own():
    capabilities = replace(FAKE_CAPABILITIES, code_limit=2, text_unit=TextUnit.BYTES)
    assert codes(whole_code(card("a😀😀"), capabilities, str)) == ["a", "😀", "😀"]


def test_code_that_masking_makes_short_enough_needs_no_pieces():
    capabilities = replace(FAKE_CAPABILITIES, code_limit=20)
    assert whole_code(card("x" * 30), capabilities, lambda text: text[:20]) == ()
