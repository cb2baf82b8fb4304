"""What clients ask for: sessions, messages, decisions, stops; each durable or refused with a reason."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import pytest

from bot.conversations.access import AccessDesk, AccessRules
from bot.conversations.local import local_address
from bot.conversations.presses import DecisionDesk
from bot.conversations.sessions.desk import DeskPorts, SessionDesk
from core.backends.local.backend import LocalBackend
from core.contracts.agents import QueueMode
from core.contracts.delivery import Binding, InboxState
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId
from core.contracts.messages import TextPart
from core.contracts.permissions import ApprovalState
from core.memory.fake import FakeMemoryStore
from core.models.scripted import ScriptedModel
from core.secrets.redaction import ValueRedactor
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from core.turns.observer import ApprovalsOpened
from tests.bot.conversations.sessions.notebook import BOUND_SECONDS, HERE, SECRET, Notebook, opened
from tests.core.stores.samples import ADDRESS, AGENT, CONVERSATION, TURN, call, inbound, seed, turn

OTHER = ConversationId("conv-2")
WEATHER = {"name": "weather", "description": "d", "parameters": {"type": "object"}}


@dataclass
class Office:
    """A desk over the stores of a notebook; `woken` is whose turns were told to stop."""

    notebook: Notebook
    desk: SessionDesk
    woken: list[str]

    @property
    def stores(self):
        return self.notebook.world.stores

    async def says(self, **said) -> list[dict]:
        return list(await self.desk.take(CONVERSATION, said))

    async def state(self) -> dict:
        return dict(await self.desk.state(CONVERSATION))

    async def last(self) -> dict:
        return (await self.notebook.lines())[-1]

    async def queued(self) -> list[str]:
        return [row.event.key for row in await self.stores.delivery.queued(CONVERSATION)]

    async def asking_turn(self):
        """Return a parked turn with one open question."""
        turn = await self.notebook.begin()
        await turn.hears(*await turn.step(1, call("a")))
        asked = await turn.asks("a")
        await turn.hears(ApprovalsOpened(approvals=(asked,)))
        assert await self.stores.ledger.park_turn(turn.claim, turn.turn.id)
        return turn


@asynccontextmanager
async def staffed():
    async with opened() as notebook:
        stores, clock = notebook.world.stores, notebook.world.clock
        redactor = ValueRedactor([("password", SECRET)])
        backend = LocalBackend(
            store=stores.transcripts,
            memory=FakeMemoryStore(clock),
            model=ScriptedModel(()),
            clock=clock,
            mask=redactor.mask,
        )
        woken: list[str] = []
        access = AccessDesk(stores.people, AccessRules)
        decisions = DecisionDesk(
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            approvers=lambda: ("owner",),
            clock=clock,
            zone=ZoneInfo("UTC"),
        )
        ports = DeskPorts(
            books=notebook.books,
            backend=backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            access=access,
            decisions=decisions,
            toolsets={"default": StaticToolset("default", (StaySilent(),))},
            clock=clock,
            redactor=redactor,
            clean=redactor.mask,
            wake_cancel=woken.append,
        )
        async with backend:
            yield Office(notebook, SessionDesk(ports), woken)


@pytest.fixture
async def office():
    async with staffed() as office:
        yield office


async def test_a_session_without_a_name_is_a_new_conversation_of_the_owner(office):
    session = await office.desk.open(agent="lodger", conversation="")
    conversation = await office.stores.transcripts.conversation(session["conversation_id"])
    assert any(word.startswith("person:") for word in conversation.audience.words)
    binding = await office.stores.delivery.binding_of(conversation.id)
    assert binding.address == local_address("session", conversation.id)
    told = {name: session[name] for name in ("type", "protocol", "agent", "last_seq", "state", "turn_id")}
    assert told == {
        "type": "session", "protocol": 1, "agent": "lodger", "last_seq": 0, "state": "idle", "turn_id": "",
    }  # fmt: skip


async def test_a_conversation_that_is_held_elsewhere_stays_there(office):
    await office.stores.delivery.bind(Binding(address=ADDRESS, agent_id=AGENT, conversation_id=CONVERSATION))
    await office.desk.open(agent="", conversation=CONVERSATION)
    assert (await office.stores.delivery.binding_of(CONVERSATION)).address == ADDRESS


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"agent": "nobody", "conversation": ""}, NotFound),
        ({"agent": "", "conversation": "conv-x"}, NotFound),
        ({"agent": "nobody", "conversation": CONVERSATION}, InvalidInput),
    ],
)
async def test_a_wrong_name_opens_nothing(office, wrong, error):
    with pytest.raises(error):
        await office.desk.open(**wrong)


async def test_a_message_is_queued_under_the_clients_id_once(office):
    for _ in range(2):
        await office.says(type="user", id="m1", text=f"/new and {SECRET}")
    (row,) = await office.stores.delivery.queued(CONVERSATION)
    assert (row.event.key, row.event.address) == (f"{CONVERSATION}/m1", HERE)
    assert row.event.body.text == "/new and [secret password]", "no command, and no secret"
    assert [line["duplicate"] for line in await office.notebook.lines()] == [False, True]


async def test_the_same_id_in_another_conversation_is_another_message(office):
    await seed(office.notebook.world, OTHER)
    await office.says(type="user", id="m1", text="here")
    await office.desk.take(OTHER, {"type": "user", "id": "m1", "text": "there"})
    assert await office.queued() == [f"{CONVERSATION}/m1"]
    assert len(await office.stores.delivery.queued(OTHER)) == 1


async def test_a_message_without_an_id_is_given_one(office):
    await office.says(type="user", text="hi")
    assert (await office.last())["id"].startswith("in-")


@pytest.mark.parametrize("mode", [QueueMode.STEER, QueueMode.AFTER_TURN])
async def test_a_mode_is_the_conversations_from_then_on(office, mode):
    await office.says(type="user", text="hi", mode=mode)
    await office.says(type="user", text="hi")
    assert (await office.stores.transcripts.conversation(CONVERSATION)).queue_mode is mode


async def test_a_message_that_interrupts_stops_the_turn_unless_it_was_sent_before(office):
    await office.says(type="user", id="m1", text="hi")
    await office.notebook.begin("turn-1", "m1")
    await office.says(type="user", id="m1", text="hi", mode="interrupt")
    assert not await office.stores.ledger.cancel_requested(TURN)
    await office.says(type="user", id="m2", text="no, this", mode="interrupt")
    assert await office.stores.ledger.cancel_requested(TURN)
    assert office.woken == [CONVERSATION]
    assert await office.queued() == [f"{CONVERSATION}/m2"]
    assert (await office.stores.transcripts.conversation(CONVERSATION)).queue_mode is None


async def test_a_stop_reaches_the_open_turn_and_is_refused_where_none_is(office):
    with pytest.raises(InvalidInput, match="no turn is open"):
        await office.says(type="cancel")
    await office.notebook.begin()
    await office.says(type="cancel")
    assert await office.stores.ledger.cancel_requested(TURN)
    assert office.woken == [CONVERSATION]


async def test_a_decision_is_the_owners_and_is_told_at_once(office):
    await office.asking_turn()
    await office.says(type="decision", approval_id="apr-a", choice="deny", feedback="no")
    decided = await office.stores.ledger.approval("apr-a")
    assert (decided.state, decided.decision.feedback) == (ApprovalState.DENIED, "no")
    assert {name: (await office.last())[name] for name in ("type", "state", "by")} == {
        "type": "approval_settled", "state": "denied", "by": "owner",
    }  # fmt: skip


async def test_a_decision_is_refused_when_it_comes_late_or_from_another_conversation(office):
    await office.asking_turn()
    await seed(office.notebook.world, OTHER)
    said = {"type": "decision", "approval_id": "apr-a", "choice": "approve"}
    with pytest.raises(NotFound):
        await office.desk.take(OTHER, said)
    await office.says(**said)
    with pytest.raises(InvalidInput, match="is approved already"):
        await office.says(**said)


async def test_a_choice_that_the_policy_refuses_leaves_the_question_open(office):
    turn = await office.asking_turn()
    asked = replace(await office.stores.ledger.approval("apr-a"), id="apr-b", call_id="b", remember="")
    await office.stores.ledger.open_approvals(turn.claim, [asked], None)
    with pytest.raises(InvalidInput, match="No rule can cover this call"):
        await office.says(type="decision", approval_id="apr-b", choice="always")


async def test_tools_are_registered_unless_they_are_named_like_built_in_ones(office):
    await office.says(type="tools", tools=[WEATHER])
    assert (await office.state())["tools"] == ["weather"]
    with pytest.raises(InvalidInput, match="a built-in tool 'stay_silent'"):
        await office.says(type="tools", tools=[{**WEATHER, "name": "stay_silent"}])
    assert (await office.state())["tools"] == ["weather"]


async def test_a_ping_is_answered_to_its_sender_alone(office):
    assert await office.says(type="ping", id="p1") == [{"type": "pong", "id": "p1"}]
    assert await office.says(type="end") == []
    assert await office.notebook.lines() == []


async def test_a_result_nobody_waits_for_is_refused(office):
    with pytest.raises(InvalidInput, match="no tool request 'c' is open"):
        await office.says(type="tool_result", call_id="c", text="x")


async def test_the_state_says_what_a_client_that_comes_back_has_to_know(office):
    await office.says(type="user", id="m1", text="hi")
    assert (await office.state())["state"] == "running"
    await office.asking_turn()
    state = await office.state()
    assert (state["state"], state["turn_id"], state["last_seq"]) == ("parked", TURN, (await office.last())["seq"])
    (question,) = state["approvals"]
    assert (question["type"], question["approval_id"], question["shown"]) == (
        "approval_opened", "apr-a", "echo x >> out.txt",
    )  # fmt: skip


async def test_a_turn_whose_end_is_not_told_yet_still_runs_for_its_clients(office):
    await office.says(type="ping")
    await office.says(type="tools", tools=[])
    turn = await office.notebook.begin()
    await turn.hears(*await turn.step(1, TextPart(text="Hello.")))
    await turn.end()
    assert (await office.state())["state"] == "running"
    await turn.hears(None)
    assert (await office.state())["state"] == "idle"


async def test_a_paused_conversation_with_waiting_messages_is_idle(office):
    await office.says(type="user", text="hi")
    conversation = await office.stores.transcripts.conversation(CONVERSATION)
    await office.stores.transcripts.update_conversation(replace(conversation, paused=True))
    assert (await office.state())["state"] == "idle"


async def test_lines_are_followed_from_a_number_on(office):
    for number in range(3):
        await office.says(type="user", id=f"m{number}", text="hi")
    async with asyncio.timeout(BOUND_SECONDS), aclosing(await office.desk.lines(CONVERSATION, after=1)) as pages:
        assert [json.loads(line)["id"] for line in await anext(pages)] == ["m1", "m2"]
    with pytest.raises(InvalidInput, match="there is no line 4 yet: the last is 3"):
        await office.desk.lines(CONVERSATION, after=4)
    with pytest.raises(NotFound):
        await office.desk.lines("conv-x", after=0)


async def test_a_headless_message_is_withdrawn_or_its_turn_stopped_and_no_other(office):
    here = local_address("headless", CONVERSATION)
    for key in ("first", "second"):
        await office.stores.delivery.accept(inbound(key, address=here), conversation_id=CONVERSATION)
    first, _ = await office.stores.delivery.queued(CONVERSATION)
    await office.stores.ledger.begin_turn(turn(), inbox_ids=[first.id], live=None)
    assert "withdrawn" in await office.desk.cancel_turn(CONVERSATION, "second")
    assert not await office.stores.ledger.cancel_requested(TURN)
    assert await office.desk.cancel_turn(CONVERSATION, "first") == "Stopping."
    assert await office.stores.ledger.cancel_requested(TURN)
    assert await office.desk.cancel_turn(CONVERSATION, "third") == "Its turn does not run."
    states = {row.event.key: row.state for row in await office.stores.delivery.inbox_of(here.key)}
    assert states == {"first": InboxState.TAKEN, "second": InboxState.WITHDRAWN}
