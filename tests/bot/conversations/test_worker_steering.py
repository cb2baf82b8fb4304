"""Messages that come while a turn of their conversation runs: which of them enter it, and which wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from core.contracts.addresses import PressBody
from core.contracts.agents import AgentSpec, QueueMode
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, InboxState
from core.contracts.errors import StoreUnavailable
from core.contracts.messages import Role
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.turns.loop import TurnLoop
from core.turns.outcomes import OUTCOMES
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, OPAL, chat, hosting
from tests.bot.conversations.queueing import fresh_worker, heard, looks, open_conversation, queue, row_of, still_queued
from tests.core.turns.dying import Dying

MADE = {"make x": FakeOutcome(output=b"made")}
SHELL = tool_call("sh", "shell", '{"command":"make x"}')


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *steps, **{"outcomes": MADE, **more})

    return open_host


async def test_a_message_of_who_asked_enters_at_the_next_tool_boundary(opened):
    async with opened(asks(looks("a")), says("Both.")) as host:
        await queue(host, "do x")
        key = await queue(host, "and y")
        await host.settle()
        assert host.texts() == ["Both."]
        roles = [message.role for message in await host.transcript()]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
        assert await heard(host) == ["do x", "and y"]
        row, turn = await row_of(host, key), await host.latest_turn()
        assert (row.state, row.turn_id, row.step) == (InboxState.DONE, turn.id, 2)


async def test_all_that_waits_enters_together_in_its_order(opened):
    async with opened(asks(looks("a")), says("All.")) as host:
        for text in ("do x", "and y", "and z"):
            await queue(host, text)
        await host.settle()
        assert host.texts() == ["All."]
        assert "\n".join(await heard(host)) == "do x\nand y\nand z"


@pytest.mark.parametrize(("who", "enters"), [(ALICE, True), (OPAL, True), (MIKE, False)])
async def test_an_operator_and_an_owner_steer_the_turn_of_another_and_a_member_waits(opened, who, enters):
    async with opened(asks(looks("a")), says("One."), says("Two.")) as host:
        sam = replace(MIKE, identity="telegram:777", name="Max")
        await host.stores.people.ensure_person(sam.identity, sam.name)
        await queue(host, "do x", who=sam)
        await queue(host, "stop that", who=who)
        await host.settle()
        assert host.texts() == (["One."] if enters else ["One.", "Two."])
        turns = {row.turn_id for row in await host.stores.delivery.inbox_of(HERE.key)}
        assert len(turns) == (1 if enters else 2)


async def test_a_message_of_another_address_waits_for_its_own_turn(opened):
    there = chat("111", "7")
    async with opened(asks(looks("a")), says("Here."), says("There.")) as host:
        await queue(host, "do x")
        await queue(host, "and y", where=there)
        await host.settle()
        assert (host.texts(), host.texts(there)) == (["Here."], ["There."])


@pytest.mark.parametrize("mode", [QueueMode.AFTER_TURN, QueueMode.INTERRUPT])
@pytest.mark.parametrize("whose", ["agent", "conversation"])
async def test_in_another_queue_mode_nothing_enters(opened, mode, whose):
    async with opened(asks(looks("a")), says("One."), says("Two.")) as host:
        conversation_id = await open_conversation(host)
        if whose == "agent":
            spec = AgentSpec(
                name="lodger",
                model=host.agent.model,
                workspace=host.agent.workspace,
                permission_mode=host.agent.permission_mode,
                queue_mode=mode,
            )
            await host.backend.update_agent(host.agent.id, spec)
        else:
            conversation = await host.backend.get_conversation(conversation_id)
            await host.stores.transcripts.update_conversation(replace(conversation, queue_mode=mode))
        await queue(host, "do x")
        await queue(host, "and y")
        await host.settle()
        assert host.texts() == ["One.", "Two."]


async def test_what_one_may_say_into_a_turn_does_not_wait_for_the_message_of_another(opened):
    """They are turns of different people; each person's own messages keep their order."""
    async with opened(asks(looks("a")), says("One."), says("Two.")) as host:
        await queue(host, "do x")
        await queue(host, "my turn?", who=MIKE)
        await queue(host, "and y")
        await host.settle()
        assert await heard(host) == ["do x", "and y", "my turn?"]


async def test_a_message_never_overtakes_an_earlier_one_of_its_sender(opened):
    """The earlier one is for another address and waits, so the later one waits behind it."""
    there = chat("111", "7")
    async with opened(asks(looks("a")), says("One."), says("Two."), says("Three.")) as host:
        await queue(host, "do x")
        await queue(host, "over there", where=there)
        await queue(host, "and y")
        await host.settle()
        assert await heard(host) == ["do x", "over there", "and y"]
        assert host.texts() == ["One.", "Three."]


async def test_an_edit_counts_until_the_message_enters(opened):
    async with opened(asks(looks("a")), says("Both.")) as host:
        await queue(host, "do x")
        key = await queue(host, "and y")
        await host.stores.delivery.revise(HERE, key, "and z")
        await host.settle()
        assert await heard(host) == ["do x", "and z"]


class WithdrawingLedger:
    """A ledger before whose steering a message is deleted by its sender."""

    def __init__(self, host, key: str) -> None:
        self._inner, self._host, self._key = host.stores.ledger, host, key

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def steer_turn(self, *args, **more):
        await self._host.stores.delivery.withdraw(HERE, self._key)
        await self._inner.steer_turn(*args, **more)


async def test_a_message_that_is_withdrawn_at_the_last_moment_does_not_enter_and_the_others_do(opened):
    async with opened(asks(looks("a")), says("Both.")) as host:
        await queue(host, "do x")
        key = await queue(host, "never mind")
        await queue(host, "and y")
        await fresh_worker(host, ledger=WithdrawingLedger(host, key)).advance(await host.conversation_id())
        assert await heard(host) == ["do x", "and y"]
        assert (await row_of(host, key)).state is InboxState.WITHDRAWN


async def test_a_message_that_waited_for_a_decision_enters_with_its_results(opened):
    async with opened(asks(SHELL), says("Made, and yes.")) as host:
        await host.says("do it")
        await host.says("are you there?")
        assert await still_queued(host) == ["are you there?"]
        await host.presses("Approve")
        assert host.texts()[-1] == "Made, and yes."
        assert await heard(host) == ["do it", "are you there?"]
        assert await still_queued(host) == []


async def test_what_was_chosen_to_be_read_afterwards_is_a_turn_of_its_own(opened):
    async with opened(asks(SHELL), asks(looks("b")), says("I did not."), says("Yes.")) as host:
        await host.says("do it")
        await host.says("wait, use make y")
        await host.presses("Deny and read my message")
        assert host.texts()[-2:] == ["I did not.", "Yes."]


async def test_after_that_choice_others_may_still_steer_and_its_sender_waits_in_order(opened):
    async with opened(asks(SHELL), says("I did not."), says("Yes."), says("Sure.")) as host:
        await host.says("do it")
        await host.says("wait, use make y")
        card = host.card_with("Deny and read my message")
        press = PressBody(token=card.buttons["Deny and read my message"], card=card.external_id, acknowledge="q1")
        await host.arrives(press)
        await host.settle(INBOX_QUEUE)
        await host.clock.advance(timedelta(seconds=1))
        await queue(host, "please")
        await queue(host, "leave x alone", who=OPAL)
        await host.settle()
        assert await heard(host) == ["do it", "leave x alone", "wait, use make y", "please"]


async def test_a_turn_that_nobody_watches_is_not_steered(opened):
    """Who started it waits for one answer to each message."""
    nowhere = replace(HERE, channel="headless")
    async with opened(asks(looks("a")), says("One."), says("Two.")) as host:
        for text in ("do x", "and y"):
            await queue(host, text, where=nowhere, bound=nowhere)
        await host.settle()
        assert await heard(host, nowhere) == ["do x", "and y"]
        assert len({row.turn_id for row in await host.stores.delivery.inbox_of(nowhere.key)}) == 2


async def test_what_is_left_over_becomes_the_next_turn_at_once(opened):
    """Without a tool boundary nothing can enter; nobody has to ring again for what waits."""
    async with opened(says("One."), says("Two.")) as host:
        await queue(host, "do x")
        await queue(host, "and y")
        assert await host.ring(CONVERSATION_QUEUE, await host.conversation_id()) is None
        assert await still_queued(host) == []


async def test_a_stop_keeps_what_waits_and_it_goes_next(opened):
    async with opened(asks(SHELL), says("Yes.")) as host:
        await host.says("do it")
        await host.says("are you there?")
        await host.says("/cancel")
        assert OUTCOMES[TurnOutcome.CANCELLED].notice in host.texts()
        assert host.texts()[-1] == "Yes."
        assert len({row.turn_id for row in await host.stores.delivery.inbox_of(HERE.key) if row.turn_id}) == 2


async def advance_dying(host, port: str, name: str, *, behind: bool, passes: int) -> None:
    """Advance the conversation with a worker that dies at one of its ports."""
    ports = host.app.worker._ports
    dying = Dying(getattr(ports, port), name, behind=behind, passes=passes)
    loop = TurnLoop(replace(ports.loop._services, **{port: dying}))
    await fresh_worker(host, loop=loop, **{port: dying}).advance(await host.conversation_id())


async def test_text_that_was_said_before_a_message_entered_outlives_a_crash_behind_it(opened):
    script = (asks(looks("a"), text="Let me look."), ScriptedStep(pieces=("a", "b"), gate=asyncio.Event()))
    async with opened(*script, says("It is tea.")) as host:
        await queue(host, "what is it?")
        await queue(host, "quickly, please")
        dying = asyncio.create_task(host.settle(CONVERSATION_QUEUE))
        await host.until(lambda: len(host.model.requests) == 2)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        await fresh_worker(host).advance(await host.conversation_id())
        await host.settle()
        assert host.texts() == ["Let me look.\n\nIt is tea."]
        assert await heard(host) == ["what is it?", "quickly, please"]


CRASHES = [
    ("ledger", "steer_turn", False),
    ("ledger", "steer_turn", True),
    ("backend", "start_run", False),
    ("backend", "start_run", True),
    ("ledger", "finish_call", True),
    ("ledger", "add_progress", False),
    ("ledger", "add_progress", True),
    ("ledger", "finish_turn", False),
]


@pytest.mark.parametrize("passes", [0, 1, 2])
@pytest.mark.parametrize(("port", "name", "behind"), CRASHES)
async def test_no_crash_loses_a_message_that_enters_or_lets_it_in_twice(opened, port, name, behind, passes):
    """Invariant 3 and 11: the next worker finds on record what has entered, and with which step."""
    script = [asks(looks("a")), asks(looks("b")), asks(looks("c")), says("Done.")]
    async with opened(*script, *script) as host:
        await queue(host, "do x")
        await queue(host, "and y")
        conversation_id = await host.conversation_id()
        with suppress(StoreUnavailable, ExceptionGroup):
            await advance_dying(host, port, name, behind=behind, passes=passes)
        await queue(host, "and z")
        await fresh_worker(host).advance(conversation_id)
        await host.settle()
        said = "\n".join(await heard(host))
        assert said == "do x\nand y\nand z"
        assert {row.state for row in await host.stores.delivery.inbox_of(HERE.key)} == {InboxState.DONE}
        assert await still_queued(host) == []
        assert host.texts()[-1] == "Done."
