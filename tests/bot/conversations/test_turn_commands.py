"""Pause, resume and queue modes: what becomes of messages while a conversation rests or works."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bot.conversations import rights_commands, turn_commands
from bot.conversations.command_calls import CommandCall, CommandPorts
from bot.conversations.reception import PAUSED
from core.contracts.addresses import MessageBody
from core.contracts.agents import PermissionMode, QueueMode
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE
from core.contracts.errors import StoreUnavailable
from core.contracts.messages import visible_text
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.grouping import BOB, GROUP, admitted, mentions
from tests.bot.conversations.hosting import ALICE, BOUND_SECONDS, HERE, MIKE, OPAL, hosting, make_settings
from tests.bot.conversations.queueing import fresh_worker, looks, queue
from tests.core.turns.dying import Dying

ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))
MADE = {"make x": FakeOutcome(output=b"made")}


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or (says("one"), says("two"), says("three"))), outcomes=MADE, **more)

    return open_host


async def conversation(host, where=HERE):
    return await host.backend.get_conversation(await host.conversation_id(where))


async def test_while_paused_messages_wait_and_the_chat_is_told_once(opened):
    async with opened() as host:
        await host.says("/pause")
        assert host.texts()[-1].startswith("Paused.")
        for text in ("first", "second"):
            await host.says(text)
        assert host.texts()[1:] == [PAUSED]
        assert host.model.requests == []


async def test_resuming_goes_on_with_what_waits_and_another_pause_is_told_again(opened):
    async with opened() as host:
        await host.says("/pause")
        await host.says("first")
        await host.says("/resume")
        assert host.texts()[-2:] == ["I go on.", "one"]
        await host.says("/pause")
        await host.says("second")
        assert host.texts()[-1] == PAUSED
        assert (await host.audited())[-3:] == ["paused", "resumed", "paused"]


async def test_pausing_lets_the_turn_that_waits_for_a_decision_end(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await host.says("/pause")
        await host.presses("Approve")
        assert host.commands == ["make x"]
        assert host.texts()[-1] == "made"


@pytest.mark.parametrize(
    ("command", "answer"), [("/resume", "I am not paused."), ("/pause", "I am paused already. /resume lets me go on.")]
)
async def test_what_holds_already_is_said(opened, command, answer):
    async with opened() as host:
        if command == "/pause":
            await host.says("/pause")
        await host.says(command)
        assert host.texts()[-1] == answer


async def test_a_new_conversation_is_not_paused_and_the_old_one_goes_on(opened):
    async with opened() as host:
        await host.says("/pause")
        await host.says("first")
        before = await host.conversation_id()
        await host.says("/new")
        assert not (await conversation(host)).paused
        assert not (await host.backend.get_conversation(before)).paused
        assert host.texts()[-1] == "one"


@pytest.mark.parametrize(
    ("who", "may"),
    [(MIKE, False), (BOB, True), (OPAL, True), (ALICE, True)],
    ids=["other", "asked", "operator", "owner"],
)
async def test_in_a_group_whoever_asked_an_operator_or_an_owner_pauses(opened, who, may):
    async with opened(ASKING) as host:
        await admitted(host)
        await mentions(host, "make it")
        await mentions(host, "/pause", who=who)
        assert (await conversation(host, GROUP)).paused is may
        assert ("Only the person who asked" in host.texts(GROUP)[-1]) is not may


async def test_in_a_group_where_nothing_runs_a_member_does_not_pause(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "/pause")
        assert host.texts(GROUP)[-1] == "Nothing is running."
        assert not (await conversation(host, GROUP)).paused


async def test_the_queue_mode_is_shown_set_and_on_record(opened):
    async with opened() as host:
        await host.says("/queue", who=MIKE)
        assert host.texts()[-1].startswith("Queue mode steer.")
        await host.says("/queue After_Turn", who=MIKE)
        assert (await conversation(host)).queue_mode is QueueMode.AFTER_TURN
        assert "queue_mode_set" in await host.audited()
        await host.says("/status")
        assert "queue mode after_turn" in host.texts()[-1]
        await host.says("/queue sideways")
        assert "There is no queue mode 'sideways'" in host.texts()[-1]


@pytest.mark.parametrize(("who", "may"), [(BOB, False), (MIKE, False), (OPAL, True), (ALICE, True)])
async def test_in_a_group_operators_and_owners_set_the_queue_mode(opened, who, may):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "/queue interrupt", who=who)
        assert (await conversation(host, GROUP)).queue_mode is (QueueMode.INTERRUPT if may else None)


async def test_status_says_that_it_is_paused(opened):
    async with opened() as host:
        await host.says("/pause")
        await host.says("/status")
        assert "Paused" in host.texts()[-1]


@asynccontextmanager
async def running(host, *, who=ALICE):
    """Let a turn begin and stay in its model step; at the end of the block it may end."""
    await host.arrives(MessageBody(text="long work"), who=who)
    async with asyncio.TaskGroup() as group:
        group.create_task(host.settle(INBOX_QUEUE, CONVERSATION_QUEUE))
        await host.until(lambda: host.model.requests)
        yield


def hanging() -> ScriptedStep:
    return ScriptedStep(pieces=("Working", " on it"), gate=asyncio.Event())


@pytest.mark.parametrize("who", [MIKE, OPAL, ALICE], ids=["asked", "operator", "owner"])
async def test_in_interrupt_mode_a_message_of_whoever_may_steer_stops_the_turn_and_goes_next(opened, who):
    async with opened(hanging(), says("now this")) as host:
        await host.says("/queue interrupt")
        async with running(host, who=MIKE):
            await host.arrives(MessageBody(text="instead"), who=who)
            await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        assert visible_text(host.model.requests[1].messages[-1].parts) == "instead"
        assert host.texts()[-1] == "now this"


async def test_in_interrupt_mode_a_message_of_somebody_else_waits(opened):
    step = hanging()
    async with opened(step, says("now this")) as host:
        await host.says("/queue interrupt")
        async with running(host):
            await host.arrives(MessageBody(text="me too"), who=MIKE)
            await host.ring(INBOX_QUEUE, HERE.key)
            turn = await host.open_turn()
            assert not await host.stores.ledger.cancel_requested(turn.id)
            step.gate.set()
        await host.settle()
        assert "Working on it" in host.texts()[-2]


async def test_in_interrupt_mode_a_turn_that_waits_for_a_decision_goes_on_waiting(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("/queue interrupt")
        await host.says("do it")
        await host.says("and?")
        assert len(await host.open_approvals()) == 1


async def test_while_paused_nothing_is_interrupted(opened):
    step = hanging()
    async with opened(step) as host:
        await host.says("/queue interrupt")
        async with running(host):
            await host.arrives(MessageBody(text="/pause"))
            await host.ring(INBOX_QUEUE, HERE.key)
            await host.arrives(MessageBody(text="instead"))
            await host.ring(INBOX_QUEUE, HERE.key)
            turn = await host.open_turn()
            assert not await host.stores.ledger.cancel_requested(turn.id)
            step.gate.set()
        await host.settle()
        assert (await host.latest_turn()).outcome is TurnOutcome.COMPLETED
        assert len(await host.stores.delivery.queued(await host.conversation_id())) == 1


async def test_an_agent_that_is_set_to_interrupt_does_so_in_every_conversation(tmp_path):
    settings = make_settings(tmp_path)
    agents = {name: replace(agent, queue_mode=QueueMode.INTERRUPT) for name, agent in settings.agents.items()}
    async with hosting(tmp_path, hanging(), says("now this"), settings=replace(settings, agents=agents)) as host:
        async with running(host):
            await host.arrives(MessageBody(text="instead"))
            await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        assert host.texts()[-1] == "now this"


@pytest.mark.parametrize("command", ["/queue interrupt", "/pause"])
async def test_in_such_a_conversation_no_message_takes_the_short_way(opened, command):
    async with opened() as host:
        await host.says(command)
        await host.arrives(MessageBody(text="hi"))
        assert [bell.queue for bell in host.bells] == [INBOX_QUEUE]


def ports_of(host) -> CommandPorts:
    return host.app.router._ports.reception._ports.commands._ports


async def given(host, rest: str = "") -> CommandCall:
    """Return a command of the owner, with the conversation as it is now."""
    return CommandCall(
        event=(await host.stores.delivery.inbox_of(HERE.key))[0].event,
        who=await host.app.router._ports.access.standing(ALICE),
        rest=rest,
        binding=await host.stores.delivery.binding(HERE.key),
        agent=host.agent,
        conversation=await conversation(host),
    )


async def test_a_resume_that_died_half_way_is_finished_when_it_is_given_again(opened):
    """That nothing is paused was committed, and the doorbell was not."""
    async with opened() as host:
        await host.says("/pause")
        await host.says("waiting")
        ports = ports_of(host)
        with pytest.raises(StoreUnavailable):
            await turn_commands.resume(replace(ports, people=Dying(ports.people, "record")), await given(host))
        assert not (await conversation(host)).paused
        await host.says("/resume")
        assert host.texts()[-2:] == ["I am not paused.", "one"]


async def test_a_new_conversation_leaves_nothing_waiting_in_a_paused_one_wherever_it_dies(opened):
    async with opened() as host:
        await host.says("/pause")
        await host.says("waiting")
        old, ports = await host.conversation_id(), ports_of(host)
        with pytest.raises(StoreUnavailable):
            await turn_commands.new(replace(ports, delivery=Dying(ports.delivery, "bind")), await given(host))
        assert await host.conversation_id() == old
        assert not (await conversation(host)).paused
        await host.settle()
        assert host.texts()[-1] == "one"
        await host.says("/new")
        assert await host.conversation_id() != old


class HeldLedger:
    """Lets no turn begin before `go`; tells in `reached` that one is about to."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def begin_turn(self, *args, **more):
        self.reached.set()
        await self.go.wait()
        return await self._inner.begin_turn(*args, **more)


class EarlierLedger:
    """Says that a turn is open which ended meanwhile, as one that was asked just before."""

    def __init__(self, inner, turn) -> None:
        self._inner, self._turn = inner, turn

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def open_turn(self, conversation_id):
        return self._turn


async def test_a_stop_that_came_too_late_for_its_turn_does_not_stop_the_next(opened):
    async with opened(says("one"), asks(looks("a")), says("two")) as host:
        await host.says("hello")
        ended, held = await host.latest_turn(), HeldLedger(host.stores.ledger)
        worker = fresh_worker(host, ledger=held)
        ports = replace(ports_of(host), ledger=EarlierLedger(host.stores.ledger, ended), wake_cancel=worker.wake_cancel)
        await queue(host, "next")
        async with asyncio.timeout(BOUND_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(worker.advance(await host.conversation_id()))
            await held.reached.wait()
            await turn_commands.cancel(ports, await given(host))
            held.go.set()
        assert (await host.latest_turn()).outcome is TurnOutcome.COMPLETED


async def test_commands_that_were_given_at_once_in_two_places_both_hold(opened):
    """A stricter mode is not lost to a pause that had read the conversation before."""
    async with opened() as host:
        await host.says("hello")
        ports, strict, paused = ports_of(host), await given(host, "strict"), await given(host)
        await rights_commands.mode(ports, strict)
        await turn_commands.pause(ports, paused)
        after = await turn_commands.queue(ports, replace(paused, rest="after_turn"))
        now = await conversation(host)
        assert "Queue mode of this conversation" in after
        assert (now.permission_mode, now.paused, now.queue_mode) == (PermissionMode.STRICT, True, QueueMode.AFTER_TURN)


async def test_a_member_of_a_group_does_not_undo_an_owners_pause(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "/pause", who=ALICE)
        await mentions(host, "waits")
        old = await host.conversation_id(GROUP)
        for command in ("/resume", "/new"):
            await mentions(host, command, who=BOB)
        assert await host.conversation_id(GROUP) == old
        assert (await conversation(host, GROUP)).paused
