"""The real host in Telegram groups: asked for, listening, in topics, moved, among people and other bots."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.acceptance.processes import OWNER
from tests.acceptance.telegram_talk import MENTION, WAIT, new_part, talking
from tests.platforms.model_script import Answer, Call
from tests.platforms.telegram_chats import Message

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOB = 222
PEER = {"id": 333, "is_bot": True, "first_name": "Peer", "username": "peer_bot"}
LOOK = Call("c1", "glob", '{"pattern":"*"}')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory):
    async with talking(tmp_path_factory.mktemp("groups"), more='bots = ["telegram:333"]') as running:
        yield running


def group(number: int) -> int:
    return -1_001_000_000_000 - number


def replies_to(talk, chat: int, message: Message) -> dict[str, object]:
    """Return the field of a message that is a reply to one of the bot's."""
    shown = talk.telegram.chats.as_json(talk.telegram.chats.by_id[chat], message, talk.telegram.bot)
    return {"reply_to_message": shown}


async def test_a_new_group_gets_one_card_and_no_answer_until_the_owner_allows_it(talk):
    chat = group(1)
    talk.joins(chat, by=BOB)
    for number in range(3):
        talk.mentions(chat, f"are you there {number}?", user=BOB)
    card = await talk.said("I do not work here yet", chat)
    refused = talk.telegram.press(chat, card.id, card.buttons["Allow here"], user=BOB)
    assert await talk.answered(refused) == "Only an owner of this agent decides that."
    assert len(talk.telegram.visible(chat)) == 1
    talk.telegram.press(chat, card.id, card.buttons["Allow here"], user=OWNER)
    settled = await talk.said("Alice lets me work here", chat)
    assert (settled.id, settled.buttons) == (card.id, {})
    asked = talk.mentions(chat, "and now?", user=BOB)
    assert (await talk.said("and now?", chat)).reply_to == asked
    assert talk.mind.asked("are you there") == []
    assert len(talk.telegram.visible(chat)) == 2


async def test_talk_around_it_is_not_answered_but_told_with_the_next_mention(talk):
    chat = group(2)
    await talk.admitted(chat)
    talk.telegram.user_says(chat, "we meet at noon", user=BOB)
    talk.mentions(chat, "when do we meet?")
    answer = await talk.said("when do we meet?", chat)
    (body,) = talk.mind.asked("when do we meet?")
    assert "> we meet at noon" in new_part(body)
    assert "Bob (telegram:222)" in new_part(body)
    assert talk.mind.asked("we meet at noon") == []
    talk.telegram.user_says(chat, "are you sure?", user=BOB, **replies_to(talk, chat, answer))
    await talk.said("are you sure?", chat)
    (body,) = talk.mind.asked("are you sure?")
    assert "replies to your own message" in new_part(body)
    assert "> I heard: @lodger_bot when do we meet?" in new_part(body)
    assert "we meet at noon" not in new_part(body)


async def test_general_is_answered_without_a_topic_and_topic_7_in_its_own_conversation(talk):
    """C20 A, B and C."""
    chat = group(3)
    await talk.admitted(chat, topics=(7,))
    talk.mentions(chat, "in general", message_thread_id=1, is_topic_message=True)
    general = await talk.said("in general", chat)
    talk.telegram.user_says(chat, "below it", user=OWNER, message_thread_id=4711, **replies_to(talk, chat, general))
    below = await talk.said("below it", chat)
    talk.mentions(chat, "in seven", thread=7)
    seven = await talk.said("in seven", chat)
    assert [message.thread for message in (general, below, seven)] == [None, None, 7]
    (below_body,), (seven_body,) = talk.mind.asked("below it"), talk.mind.asked("in seven")
    assert f"I heard: {MENTION} in general" in str(below_body["messages"])
    assert "in general" not in str(seven_body["messages"])


async def test_leave_leaves_and_a_later_invitation_is_asked_about_anew(talk):
    chat = group(4)
    talk.joins(chat)
    card = await talk.said("I do not work here yet", chat)
    left = talk.telegram.press(chat, card.id, card.buttons["Leave"], user=OWNER)
    assert await talk.answered(left) == "I have left."
    assert talk.telegram.calls_of("leaveChat", chat)
    talk.telegram.bar(chat, "")
    talk.joins(chat, was="member", now="left")
    talk.joins(chat)
    await talk.telegram.wait_for(lambda: len(talk.shown("I do not work here yet", chat)) == 2, timeout=WAIT)


async def test_a_group_that_became_a_supergroup_goes_on_where_it_was(talk):
    """C20 D."""
    old, new = -4001, group(41)
    await talk.admitted(old)
    talk.mentions(old, "the word is teal")
    await talk.said("the word is teal", old)
    talk.telegram.migrate(old, new)
    talk.mentions(new, "which word?")
    await talk.said("which word?", new)
    (body,) = talk.mind.asked("which word?")
    assert "the word is teal" in str(body["messages"])
    assert talk.shown("I do not work here yet", new) == []


async def test_an_answer_finds_a_group_that_moved_unheard(talk):
    """C20 E."""
    old, new = -4002, group(42)
    await talk.admitted(old)
    release = asyncio.Event()
    talk.mind.on("slow one", Answer(text=["", "here it is"], gates={1: release}))
    talk.mentions(old, "slow one")
    await talk.telegram.wait_for(lambda: talk.mind.asked("slow one"), timeout=WAIT)
    talk.telegram.migrate(old, new, told=False)
    release.set()
    await talk.said("here it is", new)
    talk.mentions(new, "what was slow?")
    await talk.said("what was slow?", new)
    (body,) = talk.mind.asked("what was slow?")
    assert "here it is" in str(body["messages"])
    assert len(talk.shown("here it is", new)) == 1


async def test_what_the_first_person_adds_enters_the_turn_and_what_the_second_says_waits_for_its_own(talk):
    chat = group(5)
    await talk.admitted(chat)
    release = asyncio.Event()
    talk.mind.on("long work", Answer(text=["Looking. ", "Now."], gates={1: release}, calls=[LOOK]))
    talk.mentions(chat, "long work", user=BOB)
    await talk.telegram.wait_for(lambda: talk.mind.asked("long work"), timeout=WAIT)
    talk.mentions(chat, "a question of User 444", user=444)
    talk.mentions(chat, "only the short ones", user=BOB)
    talk.telegram.user_says(chat, f"/status{MENTION}", user=444)
    assert "2 queued" in (await talk.said("queued", chat)).text
    release.set()
    await talk.said("I heard: @lodger_bot a question of User 444", chat)
    (steered,) = talk.mind.asked("only the short ones")
    assert [message["role"] for message in steered["messages"][-2:]] == ["tool", "user"]
    assert "said while you were at work" in new_part(steered)
    assert "a question of User 444" not in str(steered["messages"])
    (own,) = talk.mind.asked("a question of User 444")
    assert own["messages"][-2]["role"] == "assistant"
    assert len(talk.shown("only the short ones", chat)) == 1


async def test_another_bot_is_answered_five_times_and_a_person_still(talk):
    """C08 B."""
    chat = group(6)
    await talk.admitted(chat)
    for number in range(9):
        talk.mentions(chat, f"next {number}?", user=333, **{"from": PEER})
        if number < 5:
            await talk.said(f"next {number}?", chat)
    await talk.host.wait_line("bot_loop_stopped")
    talk.mentions(chat, "and me?", user=BOB)
    await talk.said("and me?", chat)
    assert len(talk.shown("next", chat)) == 5
    assert talk.host.output.count("bot_loop_stopped") == 1


async def test_its_own_words_and_those_of_bots_nobody_named_start_nothing(talk):
    """C08 C."""
    chat = group(7)
    await talk.admitted(chat)
    talk.mentions(chat, "echo of myself", **{"from": talk.telegram.bot})
    talk.mentions(chat, "an unknown bot", **{"from": PEER | {"id": 334}})
    talk.mentions(chat, "a person")
    await talk.said("a person", chat)
    assert len(talk.telegram.visible(chat)) == 2
    assert "echo of myself" not in str(talk.mind.asked("a person")[0]["messages"])


async def test_whoami_names_what_the_group_makes_of_somebody_and_a_change_of_it_at_once(talk):
    chat = group(8)
    await talk.admitted(chat)
    talk.telegram.appoint(chat, talk.telegram.bot["id"])
    talk.telegram.appoint(chat, OWNER, "creator")
    talk.telegram.user_says(chat, f"/whoami{MENTION}", user=OWNER)
    owner = await talk.said("You are Alice", chat)
    talk.telegram.user_says(chat, f"/whoami{MENTION}", user=BOB)
    bob = await talk.said("You are Bob", chat)
    talk.telegram.appoint(chat, BOB)
    talk.telegram.user_says(chat, f"/whoami{MENTION}", user=BOB)
    await talk.telegram.wait_for(lambda: len(talk.shown("You are Bob", chat)) == 2, timeout=WAIT)
    appointed = talk.shown("You are Bob", chat)[-1]
    assert owner.text.endswith("Platform roles here: telegram:owner, telegram:administrator.")
    assert "roles" not in bob.text
    assert appointed.text.endswith("Platform roles here: telegram:administrator.")
