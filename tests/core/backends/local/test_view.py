"""The view that is valid for every provider, whatever the rows say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.backends.local.view import INTERRUPTED, unanswered, unknown_return, valid_view
from core.contracts.errors import InvalidInput
from core.contracts.ids import CallId, ConversationId, MessageId
from core.contracts.messages import (
    Message,
    ReturnOutcome,
    Role,
    TextPart,
    ToolCall,
    ToolReturn,
    text_return,
    tool_calls,
)
from core.models.scripted import ScriptedModel, says
from tests.contracts.backend_harnesses import local_on_files, say

CALL_IDS = ("a", "b", "c")


def call(call_id: str) -> ToolCall:
    return ToolCall(id=CallId(call_id), name="shell", arguments="{}")


def user(text: str = "hi"):
    return Role.USER, (TextPart(text=text),)


def asks(*call_ids: str, text: str = ""):
    said = (TextPart(text=text),) if text else ()
    return Role.ASSISTANT, (*said, *(call(call_id) for call_id in call_ids))


def result(call_id: str, text: str = "done"):
    return Role.TOOL, (text_return(CallId(call_id), text, ReturnOutcome.OK),)


def rows_of(*messages) -> tuple[Message, ...]:
    return tuple(
        Message(
            id=MessageId(f"msg-{seq}"),
            conversation_id=ConversationId("conv-1"),
            seq=seq,
            role=role,
            parts=parts,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for seq, (role, parts) in enumerate(messages, start=1)
    )


def faults_of(view: tuple[Message, ...]) -> list[str]:
    """Return what a strict provider would refuse."""
    faults = [] if not view or view[0].role is Role.USER else ["the first message is not from the user"]
    waiting: list[str] = []
    for message in view:
        if not message.parts:
            faults.append(f"{message.id} is empty")
        if message.role is Role.TOOL:
            (answer,) = message.parts
            if answer.call_id not in waiting:
                faults.append(f"{message.id} answers nothing")
            else:
                waiting.remove(answer.call_id)
            continue
        if waiting:
            faults.append(f"{waiting} have no result in front of {message.id}")
        waiting = [asked.id for asked in tool_calls(message.parts)]
    return [*faults, *waiting]


LEFT_BEHIND = {
    "one of two results is missing": (user(), asks("a", "b"), result("a")),
    "the result is missing": (user(), asks("a")),
    "a row stands in between": (user(), asks("a"), user("are you there?"), result("a")),
    "a result without a call": (user(), result("x")),
}


@pytest.mark.parametrize("left", LEFT_BEHIND.values(), ids=list(LEFT_BEHIND))
async def test_after_a_kill_the_next_message_is_a_valid_request_and_no_row_is_changed(tmp_path, left):
    """C38: rows as a kill left them, then "continue"; a second restart changes nothing more."""
    async with local_on_files(tmp_path, ScriptedModel([says("Go on."), says("And on.")])) as world:
        await world.insert(*left)
        before = await world.backend.list_messages(world.conversation_id)
        async with world.restart() as again:
            await again.step(say("continue"))
            rows = await again.backend.list_messages(again.conversation_id)
            assert rows[: len(before)] == before
            async with again.restart() as once_more:
                await once_more.step(say("more"))
                first, second = once_more.model.requests
    assert faults_of(first.messages) == []
    assert faults_of(second.messages) == []
    assert second.messages[: len(first.messages)] == first.messages


async def test_a_second_result_of_a_call_is_never_stored(tmp_path):
    """C38, the fifth input: the store keeps what the view would have had to repair."""
    async with local_on_files(tmp_path, ScriptedModel([says("Go on.")])) as world:
        await world.insert(user(), asks("a"), result("a"))
        with pytest.raises(InvalidInput):
            await world.insert(result("a", "again"))
        await world.step(say("continue"))
        assert faults_of(world.model.requests[0].messages) == []


def test_a_missing_result_says_that_nobody_knows():
    view = valid_view(rows_of(user(), asks("a", "b"), result("a")))
    assert [message.role for message in view] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL]
    assert view[3].parts == (unknown_return(call("b")),)
    assert INTERRUPTED in view[3].parts[0].parts[0].text


def test_a_late_result_moves_behind_its_call():
    view = valid_view(rows_of(user(), asks("a"), user("are you there?"), result("a", "late")))
    assert [message.role for message in view] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert view[2].parts[0].parts == (TextPart(text="late"),)


def test_of_two_results_the_first_counts():
    view = valid_view(rows_of(user(), asks("a"), result("a", "first"), result("a", "second")))
    assert [part.parts[0].text for message in view if message.role is Role.TOOL for part in message.parts] == ["first"]


def test_an_id_that_is_used_again_has_its_own_result():
    view = valid_view(rows_of(user(), asks("a"), result("a", "one"), asks("a"), result("a", "two"), asks("a")))
    told = [part.parts[0].text for message in view if message.role is Role.TOOL for part in message.parts]
    assert told == ["one", "two", INTERRUPTED]


def test_an_answer_before_any_question_is_left_out_with_its_results():
    assert valid_view(rows_of(asks("a"), result("a"), user())) == rows_of(asks("a"), result("a"), user())[2:]


def test_messages_without_content_are_left_out():
    assert valid_view(rows_of((Role.USER, ()), user(), (Role.ASSISTANT, ()))) == rows_of((Role.USER, ()), user())[1:]


def test_unanswered_are_the_calls_of_the_last_answer_alone():
    assert unanswered(rows_of(user(), asks("a"), user(), asks("b", "c"), result("c"))) == (call("b"),)
    assert unanswered(rows_of(user(), asks("a"), user(), asks(text="Well."))) == ()
    assert unanswered(rows_of(user(), asks("a"), user("late?"), result("a"))) == ()
    assert unanswered(()) == ()


_MESSAGES = st.one_of(
    st.just(user()),
    st.just((Role.USER, ())),
    st.just((Role.ASSISTANT, ())),
    st.just(asks(text="Well.")),
    st.lists(st.sampled_from(CALL_IDS), min_size=1, unique=True).map(lambda ids: asks(*ids)),
    st.sampled_from((*CALL_IDS, "x")).map(result),
)


@given(st.lists(_MESSAGES, max_size=12))
def test_every_sequence_of_rows_gives_a_valid_view(messages):
    """Invariant 3."""
    rows = rows_of(*messages)
    view = valid_view(rows)
    assert faults_of(view) == []
    assert valid_view(view) == view
    assert rows == rows_of(*messages)
    kept = [row for row in rows if row.role is not Role.TOOL and row.parts]
    started = next((index for index, row in enumerate(kept) if row.role is Role.USER), len(kept))
    assert [message for message in view if message.role is not Role.TOOL] == kept[started:]


@given(st.lists(_MESSAGES, max_size=8), st.lists(_MESSAGES, max_size=4))
def test_settling_what_is_unanswered_first_keeps_the_prefix(messages, more):
    """A backend answers dangling calls before a person speaks: what was sent is then never sent otherwise."""
    rows = rows_of(*messages)
    settled = [(Role.TOOL, (ToolReturn(call_id=c.id, parts=(), outcome=ReturnOutcome.OK),)) for c in unanswered(rows)]
    before = valid_view(rows_of(*messages, *settled, user("continue")))
    after = valid_view(rows_of(*messages, *settled, user("continue"), *[m for m in more if m[0] is not Role.TOOL]))
    assert after[: len(before)] == before
