"""A conversation's lines: all that happens, once, in order, also over the death of a host."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest

from bot.conversations.sessions import lines
from core.contracts.events import RunEvent, TextDelta
from core.contracts.ids import CallId, RunId
from core.contracts.ledger import CallState
from core.contracts.messages import ReturnOutcome, Role, TextPart, text_return
from core.contracts.permissions import Action, Verdict
from core.contracts.runs import TurnOutcome
from core.contracts.store import NewMessage
from core.turns.observer import ApprovalsOpened, CallFinished, CallStarted
from tests.bot.conversations.sessions.notebook import BOUND_SECONDS, SECRET, Notebook, opened
from tests.core.stores.samples import CONVERSATION, call

MARK = lines.queued("mark", duplicate=False)


@pytest.fixture
async def notebook():
    async with opened() as notebook:
        # A conversation has a session from its first line on.
        async with notebook.books.book(CONVERSATION) as book:
            await book.say(MARK)
        yield notebook


async def told(notebook: Notebook) -> list[dict]:
    """Return the lines behind the first, and require that their numbers have no gap."""
    found = await notebook.lines()
    assert [line["seq"] for line in found] == list(range(1, len(found) + 1))
    return found[1:]


async def kinds(notebook: Notebook) -> list[str]:
    return [line["type"] for line in await told(notebook)]


async def test_a_turn_is_told_from_its_beginning_to_its_result(notebook):
    await notebook.says("m1")
    turn = await notebook.begin("turn-1", "m1")
    await turn.hears(*await turn.step(1, TextPart(text="Hello."), said="hi", deltas=("Hel", "lo.")))
    await turn.end()
    await turn.hears(None)
    assert await kinds(notebook) == [
        "turn_started", "message", "text_delta", "text_delta", "message", "run_finished", "result",
    ]  # fmt: skip
    first, *_, result = await told(notebook)
    assert (first["inputs"], first["channel"]) == (["m1"], "session")
    assert (result["text"], result["outcome"], result["exit_code"]) == ("Hello.", "completed", 0)


async def test_a_run_has_its_own_numbers_beside_those_of_the_session(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
    assert [line["run_seq"] for line in await told(notebook) if "run_id" in line] == [1, 2]


async def test_a_conversation_without_a_session_is_not_recorded():
    async with opened() as notebook:
        turn = await notebook.begin()
        await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
        await turn.end()
        await turn.hears(None)
        assert await notebook.lines() == []


async def test_a_session_that_is_opened_in_the_middle_of_a_turn_is_told_the_rest(notebook):
    async with opened() as late:
        turn = await late.begin()
        first, *rest = await turn.step(1, TextPart(text="Hello."), said="hi")
        await turn.hears(first)
        async with late.books.book(CONVERSATION) as book:
            await book.say(MARK)
            await turn.hears(*rest)
            await turn.end()
            await turn.hears(None)
        assert await kinds(late) == ["turn_started", "message", "run_finished", "result"]


async def test_what_a_dead_host_had_told_of_a_run_is_not_told_again(notebook):
    turn = await notebook.begin()
    events = await turn.step(1, TextPart(text="Hello."), said="hi", deltas=("Hel", "lo."))
    await turn.hears(*events[:2])
    notebook.restart()
    await turn.hears(*events)  # the next worker is given the whole run
    assert [line.get("run_seq", 0) for line in await told(notebook)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("heard", range(6))
async def test_wherever_the_host_died_every_line_of_the_turn_is_told_once(notebook, heard):
    await notebook.says("m1")
    turn = await notebook.begin("turn-1", "m1")
    events = await turn.step(1, TextPart(text="Hello."), said="hi", deltas=("Hel", "lo."))
    await turn.hears(*events[:heard])
    await turn.end()
    notebook.restart()
    async with notebook.books.book(CONVERSATION) as book:
        await book.read()
    found = await told(notebook)
    assert [line["type"] for line in found].count("turn_started") == 1
    assert [line["message"]["seq"] for line in found if line["type"] == "message"] == [1, 2]
    assert (found[-1]["type"], found[-1]["text"]) == ("result", "Hello.")


async def test_an_end_that_is_heard_twice_is_told_once(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
    await turn.end()
    await turn.hears(None, None)
    notebook.restart()
    await turn.hears(None)
    assert (await kinds(notebook)).count("result") == 1


async def test_a_turn_that_ended_before_the_session_began_is_not_told():
    async with opened() as notebook:
        turn = await notebook.begin()
        await turn.step(1, TextPart(text="Hello."))
        await turn.end()
        async with notebook.books.book(CONVERSATION) as book:
            await book.read()
        assert await notebook.lines() == []


async def test_a_question_is_told_when_it_opens_and_when_it_has_ended(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, call("a")))
    asked = await turn.asks("a")
    await turn.hears(ApprovalsOpened(approvals=(asked,)))
    await turn.decided(asked)
    async with notebook.books.book(CONVERSATION) as book:
        await book.approvals_changed()
        await book.approvals_changed()
    await turn.hears(CallStarted(call=call("a")))
    *_, question, settled, started = await told(notebook)
    assert [line["type"] for line in (question, settled, started)] == [
        "approval_opened", "approval_settled", "call_started",
    ]  # fmt: skip
    assert question["choices"] == ["approve", "conversation", "always", "deny"]
    assert (settled["state"], settled["by"], settled["feedback"]) == ("approved", "Ada", "because")


async def test_a_question_that_a_dead_host_could_not_tell_is_told_by_the_next(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, call("a")))
    await turn.asks("a")
    notebook.restart()
    async with notebook.books.book(CONVERSATION) as book:
        await book.read()
    assert (await kinds(notebook))[-1] == "approval_opened"


async def test_a_decision_from_elsewhere_is_told_with_the_next_event(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, call("a")))
    asked = await turn.asks("a")
    await turn.hears(ApprovalsOpened(approvals=(asked,)))
    await turn.decided(asked, approve=False)
    await turn.hears(*await turn.step(2, TextPart(text="Then not.")))
    assert "approval_settled" in await kinds(notebook)


async def test_messages_that_enter_a_running_turn_are_told_before_their_text(notebook):
    await notebook.says("m1")
    turn = await notebook.begin("turn-1", "m1")
    await turn.hears(*await turn.step(1, call("a"), said="hi"))
    await notebook.says("m2")
    (row,) = await notebook.world.stores.delivery.queued(CONVERSATION)
    await notebook.world.stores.ledger.steer_turn(turn.claim, turn.turn.id, [row.id], step=2)
    await turn.hears(*await turn.step(2, TextPart(text="Both."), said="and that"))
    found = await told(notebook)
    at = [line["type"] for line in found].index("steered")
    assert found[at]["inputs"] == ["m2"]
    assert found[at + 1]["message"]["parts"] == [{"type": "text", "text": "and that"}]


async def test_results_that_no_run_told_are_told_before_the_end(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, call("a"), said="hi"))
    row = NewMessage(id="msg-x", role=Role.TOOL, parts=(text_return(CallId("a"), "stopped", ReturnOutcome.CANCELLED),))
    await notebook.world.stores.transcripts.append_returns(turn.claim, [row])
    await turn.end(TurnOutcome.CANCELLED)
    await turn.hears(None)
    *_, message, result = await told(notebook)
    (part,) = message["message"]["parts"]
    assert (part["type"], part["call_id"], part["outcome"]) == ("tool_return", "a", "cancelled")
    assert (result["outcome"], result["exit_code"]) == ("cancelled", 130)


async def test_a_call_that_ran_is_told_with_its_return(notebook):
    turn = await notebook.begin()
    await turn.hears(CallFinished(result=text_return(CallId("a"), "done", ReturnOutcome.OK)))
    finished = (await told(notebook))[-1]
    assert finished["parts"] == [{"type": "text", "text": "done"}]
    assert (finished["type"], finished["call_id"], finished["outcome"]) == ("call_finished", "a", "ok")


async def test_a_result_that_a_dead_host_had_stored_and_not_told_is_told_once(notebook):
    turn = await notebook.begin()
    await turn.hears(*await turn.step(1, call("a")))
    ledger, result = notebook.world.stores.ledger, text_return(CallId("a"), "done", ReturnOutcome.OK)
    allowed = Verdict(action=Action.ALLOW, rule="r", reason="because")
    await ledger.record_verdicts(turn.claim, turn.turn.id, [(CallId("a"), allowed, None)])
    await ledger.start_call(turn.claim, CallId("a"))
    await turn.hears(CallStarted(call=call("a")))
    await ledger.finish_call(turn.claim, result, CallState.DONE)
    notebook.restart()
    async with notebook.books.book(CONVERSATION) as book:
        await book.read()
    assert (await kinds(notebook))[-2:] == ["call_started", "call_finished"]
    await turn.hears(CallFinished(result=result))
    assert (await kinds(notebook)).count("call_finished") == 1


@pytest.mark.parametrize("cut", [3, 9, 17])
async def test_no_secret_is_told_in_pieces_and_nothing_of_the_text_is_lost(notebook, cut):
    """Invariant 10."""
    whole = f"it is {SECRET}!"
    turn = await notebook.begin()
    events = await turn.step(1, TextPart(text=whole), deltas=(whole[: 6 + cut], whole[6 + cut :]))
    await turn.hears(*events)
    assert SECRET not in json.dumps(await notebook.lines())
    deltas = [line["text"] for line in await told(notebook) if line["type"] == "text_delta"]
    assert "".join(deltas) == "it is [secret password]!"


async def test_text_is_told_at_once_and_only_what_may_begin_a_secret_waits(notebook):
    turn = await notebook.begin()
    event = RunEvent(run_id=RunId("r"), seq=1, body=TextDelta(text=f"it is {SECRET[:4]}"))
    await turn.hears(event)
    assert (await told(notebook))[-1]["text"] == "it is "


async def test_a_follower_gets_what_is_there_and_then_what_comes(notebook):
    async with notebook.books.book(CONVERSATION) as book, aclosing(book.follow(0)) as pages:
        assert [json.loads(line)["seq"] for line in await anext(pages)] == [1]
        following = asyncio.create_task(anext_of(pages))
        await asyncio.sleep(0)
        await book.say(MARK)
        async with asyncio.timeout(BOUND_SECONDS):
            assert await following == ['{"seq":2,"type":"queued","id":"mark","duplicate":false}']


async def anext_of(pages):
    return list(await anext(pages))


async def test_nothing_of_a_turn_is_told_before_its_message_is_said_to_be_queued(notebook):
    accepted = asyncio.Event()

    async def accept() -> bool:
        is_new = await notebook.says("m1")
        accepted.set()
        return is_new

    async with notebook.books.book(CONVERSATION) as book, asyncio.TaskGroup() as group:
        group.create_task(book.take("m1", accept))
        await accepted.wait()
        turn = await notebook.begin("turn-1", "m1")
        await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
    assert (await kinds(notebook))[:2] == ["queued", "turn_started"]


async def test_after_a_failed_write_the_next_one_knows_what_is_stored(notebook):
    turn = await notebook.begin()
    events = await turn.step(1, TextPart(text="Hello."))
    async with notebook.books.book(CONVERSATION) as book:
        await turn.hears(events[0])
        with pytest.raises(TypeError):
            await book.say({"type": "queued", "id": object()})
        await turn.hears(*events)
    assert (await kinds(notebook)) == ["turn_started", "message", "run_finished"]
