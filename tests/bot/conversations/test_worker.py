"""Turns on their way through a worker: begun, parked, resumed, cancelled, drained, given up."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.contracts.addresses import CardContent, MessageBody, Privacy
from core.contracts.agents import PermissionMode
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE, InboxState
from core.contracts.engine import Again
from core.contracts.errors import ModelRejected, StoreUnavailable
from core.contracts.messages import ReturnOutcome, visible_text
from core.contracts.runs import TurnOutcome, TurnState
from core.models.scripted import ScriptedModel, ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from core.turns.outcomes import OUTCOMES
from tests.bot.conversations.hosting import HERE, MIKE, SECRET, chat, hosting
from tests.bot.conversations.queueing import fresh_worker, queue

MADE = {"make x": FakeOutcome(output=b"made"), "make y": FakeOutcome(output=b"made")}


def shell(call_id: str, command: str = "make x"):
    return tool_call(call_id, "shell", f'{{"command":"{command}"}}')


def remember(call_id: str, fact: str):
    change = f'{{"kind":"create","path":"notes.md","text":"{fact}","description":"notes"}}'
    return tool_call(call_id, "memory_write", f'{{"message":"note it","changes":[{change}]}}')


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *steps, **{"outcomes": MADE, **more})

    return open_host


async def test_a_message_is_answered_once_and_done(opened):
    async with opened(says("Hello", "!")) as host:
        await host.says("hi")
        assert host.texts() == ["Hello!"]
        turn = await host.latest_turn()
        assert (turn.state, turn.outcome, turn.origin) == (TurnState.FINISHED, TurnOutcome.COMPLETED, HERE)
        assert [row.state for row in await host.stores.delivery.inbox_of(HERE.key)] == [InboxState.DONE]


async def test_messages_that_wait_together_are_turns_of_their_own_in_their_order(opened):
    async with opened(says("one"), says("two")) as host:
        await host.arrives(MessageBody(text="first"))
        await host.arrives(MessageBody(text="second"))
        await host.settle()
        assert host.texts() == ["one", "two"]
        asked = [visible_text(request.messages[-1].parts) for request in host.model.requests]
        assert asked == ["first", "second"]


async def test_a_turn_belongs_to_who_asked(opened):
    async with opened(says("one"), says("two")) as host:
        await host.says("first")
        await host.says("second", who=MIKE)
        alice, mike = [await host.stores.people.person_of(who) for who in ("telegram:111", "telegram:333")]
        assert (await host.latest_turn()).requester == mike.id != alice.id


async def test_a_message_over_a_parked_turn_is_told_once_and_touches_nothing(opened):
    async with opened(asks(shell("a"))) as host:
        await host.says("do it")
        await host.says("are you there?")
        await host.says("hello?")
        notices = [message for message in host.seen() if "Your message is queued" in message.text]
        assert len(notices) == 1
        assert list(notices[0].buttons) == ["Approve", "Deny", "Deny and read my message"]
        assert len(await host.open_approvals()) == 1
        assert len(host.model.requests) == 1


async def test_after_a_decision_the_turn_goes_on_with_what_was_said_meanwhile(opened):
    async with opened(asks(shell("a")), says("Made, and I am here.")) as host:
        await host.says("do it")
        await host.says("are you there?")
        await host.says("hello?")
        await host.presses("Approve")
        assert host.texts()[-1] == "Made, and I am here."
        assert host.commands == ["make x"]
        assert (await host.latest_turn()).state is TurnState.FINISHED


async def test_deny_and_read_my_message_tells_the_model_what_follows(opened):
    async with opened(asks(shell("a")), says("I did not."), says("Yes.")) as host:
        await host.says("do it")
        await host.says("wait, use make y")
        assert await host.presses("Deny and read my message") == "Denied."
        (denied,) = await host.returns()
        assert denied.outcome is ReturnOutcome.DENIED
        assert "next message" in denied.parts[0].text
        assert host.texts()[-2:] == ["I did not.", "Yes."]
        assert host.commands == []


async def test_each_park_has_its_own_notice(opened):
    async with opened(asks(shell("a"), shell("b", "make y")), says("Made.")) as host:
        await host.says("do both")
        await host.says("hello?")
        await host.presses("1: Approve")
        assert len([m for m in host.seen() if "Your message is queued" in m.text]) == 2
        await host.presses("2: Approve")
        assert host.texts()[-1] == "Made."


async def test_what_was_said_before_a_question_is_read_before_it_is_decided(opened):
    async with opened(asks(shell("a"), text="Let me make x."), says("Made.")) as host:
        await host.says("do it")
        assert host.texts()[0] == "Let me make x."
        await host.presses("Approve")
        texts = host.texts()
        assert texts.count("Let me make x.") == 1
        assert texts[-1] == "Made."


async def test_no_text_of_a_turn_that_waits_twice_is_lost_or_doubled(opened):
    script = (asks(shell("a"), text="First x."), asks(shell("b", "make y"), text="Now y."), says("Both made."))
    async with opened(*script) as host:
        await host.says("do both")
        await host.presses("Approve")
        assert "Now y." in host.texts()
        await host.presses("Approve")
        texts = host.texts()
        assert [texts.count(text) for text in ("First x.", "Now y.", "Both made.")] == [1, 1, 1]


async def run_in_time(host, *queues):
    """Answer what is due while time passes, so that previews are shown."""
    async with asyncio.TaskGroup() as group:
        passing = group.create_task(host.time_passes())
        await host.settle(*queues)
        passing.cancel()


async def test_a_turn_that_resumes_never_shows_its_text_twice(opened):
    """What it said before it waited has its message; the rest becomes another one, not an edit of it."""
    gate = asyncio.Event()
    script = (asks(shell("a"), text="Let me make x."), ScriptedStep(pieces=("It is ", "made."), gate=gate))
    async with opened(*script) as host:
        await host.says("do it")
        await host.app.api.decide((await host.open_approvals())[0].id, "approve", by="Alice")
        async with asyncio.TaskGroup() as group:
            group.create_task(run_in_time(host))
            await host.until(lambda: len(host.model.requests) == 2)
            began = host.clock.monotonic()
            await host.until(lambda: host.clock.monotonic() > began + 1)
            gate.set()
        texts = host.texts()
        assert [texts.count(text) for text in ("Let me make x.", "It is made.")] == [1, 1]
        assert not any(text.startswith("It is ") and text != "It is made." for text in texts)


async def test_an_answer_that_takes_long_grows_in_one_message(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("Once upon", " a time."), gate=gate)) as host:
        await host.arrives(MessageBody(text="tell me"))
        async with asyncio.TaskGroup() as group:
            group.create_task(run_in_time(host))
            await host.until(lambda: host.texts() == ["Once upon"])
            gate.set()
        assert host.texts() == ["Once upon a time."]
        assert len(host.seen()) == 1


async def test_a_turn_taken_up_after_a_crash_finishes_the_message_that_people_see(tmp_path):
    """The preview was posted, the process died; the answer takes its place and is not posted beside it."""
    database, model = (
        Database.open(":memory:"),
        ScriptedModel(
            [
                ScriptedStep(pieces=("Once upon", "!"), gate=asyncio.Event()),
                ScriptedStep(pieces=("Once upon", " a time.")),
            ]
        ),
    )
    async with hosting(tmp_path, database=database, model=model) as first:
        await first.arrives(MessageBody(text="tell me"))
        async with asyncio.TaskGroup() as group:
            dying = group.create_task(run_in_time(first))
            await first.until(lambda: first.texts() == ["Once upon"])
            dying.cancel()
        conversation_id = await first.conversation_id()
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": model}
    async with hosting(tmp_path, database=database, **more) as second:
        assert (await second.open_turn()).state is TurnState.RUNNING
        async with asyncio.TaskGroup() as group:
            passing = group.create_task(second.time_passes())
            await second.ring(CONVERSATION_QUEUE, conversation_id)
            passing.cancel()
        await second.settle()
        assert second.texts() == ["Once upon a time."]
    await database.close()


async def test_cancelling_a_parked_turn_keeps_what_is_queued(opened):
    async with opened(asks(shell("a")), says("Yes.")) as host:
        await host.says("do it")
        await host.says("are you there?")
        await host.says("/cancel")
        assert "Stopping. Queued messages stay." in host.texts()
        assert OUTCOMES[TurnOutcome.CANCELLED].notice in host.texts()
        assert host.texts()[-1] == "Yes."
        assert host.commands == []
        assert await host.open_approvals() == ()


async def test_cancelling_a_running_turn_keeps_what_it_said(opened):
    async with opened(ScriptedStep(pieces=("Once upon", " a time"), gate=asyncio.Event()), says("Yes.")) as host:
        await host.arrives(MessageBody(text="tell me"))
        await host.settle(INBOX_QUEUE)
        async with asyncio.TaskGroup() as group:
            group.create_task(host.settle(CONVERSATION_QUEUE))
            await host.until(lambda: host.model.requests)
            await host.arrives(MessageBody(text="/cancel"))
            await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        assert any("Once upon" in text and "Stopped." in text for text in host.texts())
        assert (await host.latest_turn()).outcome is TurnOutcome.CANCELLED


async def test_giving_up_is_a_visible_error_and_the_conversation_goes_on(opened):
    async with opened(ScriptedStep(pieces=("a", "b"), gate=asyncio.Event()), says("Yes.")) as host:
        await host.arrives(MessageBody(text="do it"))
        await host.settle(INBOX_QUEUE)
        dying = asyncio.create_task(host.settle(CONVERSATION_QUEUE))
        await host.until(lambda: host.model.requests)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await host.app.worker.give_up(await host.conversation_id(), "KeyError: internal")
        await host.settle()
        assert host.texts() == [OUTCOMES[TurnOutcome.ERROR].notice]
        assert (await host.latest_turn()).error == "KeyError: internal"
        await host.says("and now?")
        assert host.texts()[-1] == "Yes."


async def test_giving_up_where_no_turn_is_open_changes_nothing(opened):
    async with opened(says("Hello")) as host:
        await host.says("hi")
        await host.app.worker.give_up(await host.conversation_id(), "late")
        assert (await host.latest_turn()).outcome is TurnOutcome.COMPLETED


async def test_a_model_that_fails_is_told_in_the_hosts_words_alone(opened):
    async with opened(ModelRejected("401 invalid x-api-key abc", status=401)) as host:
        await host.says("hi")
        assert host.texts() == [OUTCOMES[TurnOutcome.ERROR].notice]


async def test_silence_posts_nothing(opened):
    async with opened(asks(tool_call("a", "stay_silent", '{"reason":"not for me"}'))) as host:
        await host.says("thanks")
        assert host.texts() == []
        assert (await host.latest_turn()).outcome is TurnOutcome.SILENT


async def test_an_approval_that_expires_ends_in_an_answer_and_its_card_says_so(opened):
    """C24 A and C: nobody decided, nothing ran, and the result does not blame a person."""
    async with opened(asks(shell("a")), says("Nobody answered.")) as host:
        await host.says("do it")
        await host.sends_press((card := host.card_with("Approve")).buttons["Approve"], card=card.external_id, who=MIKE)
        await host.passes(timedelta(hours=24))
        assert host.commands == []
        (expired,) = await host.returns()
        assert "timed out" in expired.parts[0].text
        assert "denied by" not in expired.parts[0].text
        assert host.texts()[-1] == "Nobody answered."
        shown = host.channel.messages[card.external_id]
        assert "Expired" in shown.text
        assert shown.buttons == {}


async def test_a_press_after_the_deadline_runs_nothing_and_is_told_so(opened):
    """C24 B: the click comes before anything noticed that time is up."""
    async with opened(asks(shell("a")), says("Nobody answered.")) as host:
        await host.says("do it")
        await host.clock.advance(timedelta(hours=24, seconds=1))
        assert "expired" in await host.presses("Approve")
        assert host.commands == []
        assert host.texts()[-1] == "Nobody answered."


async def test_a_question_that_stays_open_is_asked_once_more(opened):
    async with opened(asks(shell("a"))) as host:
        await host.says("do it")
        conversation_id = await host.conversation_id()
        assert host.answers[CONVERSATION_QUEUE, conversation_id] == Again(wait=timedelta(hours=1))
        before = len(host.seen())
        await host.clock.advance(timedelta(hours=1))
        for _ in range(2):
            await host.ring(CONVERSATION_QUEUE, conversation_id)
            await host.settle()
        assert len(host.seen()) == before + 1


async def test_draining_lets_the_running_turn_end_and_starts_no_other(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "!"), gate=gate), says("two")) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        async with asyncio.TaskGroup() as group:
            group.create_task(host.settle(CONVERSATION_QUEUE))
            await host.until(lambda: host.model.requests)
            await host.arrives(MessageBody(text="second"))
            draining = group.create_task(host.app.worker.drain(timedelta(seconds=5)))
            await asyncio.sleep(0)
            gate.set()
            assert await draining
        await host.settle(OUTBOX_QUEUE)
        assert host.texts() == ["one!"]
        assert len(host.model.requests) == 1
        conversation_id = await host.conversation_id()
        # The doorbell is not used up: the next start answers it.
        assert isinstance(await host.ring(CONVERSATION_QUEUE, conversation_id), Again)
        assert len(await host.stores.delivery.queued(conversation_id)) == 1


async def test_draining_says_when_patience_ran_out(opened):
    async with opened(ScriptedStep(pieces=("one", "!"), gate=asyncio.Event())) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        running = asyncio.create_task(host.settle(CONVERSATION_QUEUE))
        await host.until(lambda: host.model.requests)
        assert not await host.app.worker.drain(timedelta(milliseconds=5))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (await host.open_turn()).state is TurnState.RUNNING


async def test_a_worker_that_lost_its_claim_stops_without_a_word(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("zombie", "!"), gate=gate)) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        async with asyncio.TaskGroup() as group:
            group.create_task(host.settle(CONVERSATION_QUEUE))
            await host.until(lambda: host.model.requests)
            await host.backend.claim(await host.conversation_id())
            gate.set()
        await host.settle()
        assert host.texts() == []
        assert (await host.open_turn()).state is TurnState.RUNNING


async def test_a_memory_commit_is_one_silent_line_with_its_buttons(opened):
    async with opened(asks(remember("a", "tea")), says("Noted.")) as host:
        await host.says("remember tea")
        (line,) = [message for message in host.seen() if "Remembered:" in message.text]
        assert list(line.buttons) == ["Diff", "Undo"]
        assert isinstance(line.content, CardContent)
        assert line.content.silent
        assert "Noted." in host.texts()


async def test_in_a_group_a_memory_commit_shows_no_line(opened):
    async with opened(asks(remember("a", "tea")), says("Noted.")) as host:
        await queue(host, "remember tea", privacy=Privacy.PRIVATE_GROUP)
        await host.settle()
        assert host.texts() == ["Noted."]


async def test_a_memory_write_that_failed_shows_no_line(opened):
    async with opened(
        asks(tool_call("a", "memory_write", '{"message":"x","changes":[]}')), says("I could not.")
    ) as host:
        await host.says("remember tea")
        assert host.texts() == ["I could not."]


async def test_long_answers_are_several_messages_in_order(opened):
    words = " ".join(f"word{number}" for number in range(700))
    async with opened(says(words)) as host:
        await host.says("talk")
        texts = host.texts()
        assert len(texts) == 3
        assert "".join(texts).replace(" ", "") == words.replace(" ", "")


async def test_a_secret_at_the_edge_of_a_message_is_masked_as_a_whole(opened):
    """Invariant 10: cut first and masked later, both halves would be told."""
    limit = 2_000
    async with opened(says("x" * (limit - 8) + " " + SECRET + " end")) as host:
        await host.says("talk")
        told = "".join(host.texts())
        assert SECRET[:7] not in told
        assert SECRET[-7:] not in told
        assert "[secret password]" in told.replace("\n", "")


async def test_an_answer_goes_where_its_question_came_from(opened):
    """Invariant 12."""
    async with opened(says("to 111"), says("to 333")) as host:
        await host.says("hi")
        await host.says("hi", who=MIKE, where=chat("333"))
        assert host.texts() == ["to 111"]
        assert host.texts(chat("333")) == ["to 333"]


async def test_in_unrestricted_mode_nobody_is_asked(opened):
    async with opened(asks(shell("a")), says("Made."), mode=PermissionMode.UNRESTRICTED) as host:
        await host.says("do it")
        assert host.texts() == ["Made."]
        assert host.commands == ["make x"]


async def test_giving_up_before_a_turn_began_is_a_visible_error_for_one_message(opened):
    """It could never begin: the message is answered by the error, and the one behind it by the model."""
    async with opened(says("Yes.")) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        await host.arrives(MessageBody(text="second"))
        conversation_id = await host.conversation_id()
        await host.app.worker.give_up(conversation_id, "KeyError: internal")
        assert (await host.latest_turn()).error == "KeyError: internal"
        assert len(await host.stores.delivery.queued(conversation_id)) == 1
        await host.settle()
        assert host.texts() == [OUTCOMES[TurnOutcome.ERROR].notice, "Yes."]
        states = {row.state for row in await host.stores.delivery.inbox_of(HERE.key)}
        assert states == {InboxState.DONE}


async def test_a_conversation_that_is_given_up_can_be_stopped_and_used_again(opened):
    """Nothing of the turn that was given up stays in the way of the next one."""
    async with opened(ScriptedStep(pieces=("Once", " upon"), gate=asyncio.Event()), says("Yes.")) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        conversation_id = await host.conversation_id()
        await host.app.worker.give_up(conversation_id, "bug")
        await host.arrives(MessageBody(text="second"))
        async with asyncio.TaskGroup() as group:
            group.create_task(host.settle(CONVERSATION_QUEUE))
            await host.until(lambda: host.model.requests)
            await host.arrives(MessageBody(text="/cancel"))
            await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        assert (await host.latest_turn()).outcome is TurnOutcome.CANCELLED


async def test_a_doorbell_while_the_host_stops_stays_stored(opened):
    """Used up, its message would wait for the next one."""
    async with opened(says("Hello")) as host:
        await host.arrives(MessageBody(text="hi"))
        await host.settle(INBOX_QUEUE)
        assert await host.app.worker.drain(timedelta(seconds=5))
        assert isinstance(await host.ring(CONVERSATION_QUEUE, await host.conversation_id()), Again)
        assert host.model.requests == []


async def test_a_worker_that_leaves_a_message_behind_because_the_host_stops_wants_to_be_rung_again(opened):
    gate = asyncio.Event()
    async with opened(ScriptedStep(pieces=("one", "!"), gate=gate)) as host:
        await host.arrives(MessageBody(text="first"))
        await host.settle(INBOX_QUEUE)
        await host.arrives(MessageBody(text="second"))
        worker = host.app.worker
        async with asyncio.TaskGroup() as group:
            advancing = group.create_task(worker.advance(await host.conversation_id()))
            await host.until(lambda: host.model.requests)
            draining = group.create_task(worker.drain(timedelta(seconds=5)))
            await asyncio.sleep(0)
            gate.set()
        assert draining.result()
        assert isinstance(advancing.result(), Again)


class Hesitant:
    """A ledger that can begin no turn the first time."""

    def __init__(self, inner) -> None:
        self._inner, self.failures = inner, 1

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def begin_turn(self, *args, **more):
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("disk full")
        return await self._inner.begin_turn(*args, **more)


async def test_a_stop_that_came_for_an_earlier_try_does_not_stop_the_next_turn(opened):
    async with opened(says("Yes.")) as host:
        await queue(host, "hi")
        conversation_id = await host.conversation_id()
        worker = fresh_worker(host, ledger=Hesitant(host.stores.ledger))
        with pytest.raises(StoreUnavailable):
            await worker.advance(conversation_id)
        worker.wake_cancel(conversation_id)
        await worker.advance(conversation_id)
        assert (await host.latest_turn()).outcome is TurnOutcome.COMPLETED
