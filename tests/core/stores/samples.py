"""Domain values and open stores for the tests of stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.contracts.addresses import Address, InboundEvent, MessageBody, OutboundItem, Privacy, Sender, TextContent
from core.contracts.agents import Agent, Audience, CompiledPrompt, Conversation, ModelSettings, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.engine import Transaction, WorkItem
from core.contracts.events import MessageStored, RunEvent, RunEventBody, RunFinished
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, MessageId, PersonId, RunId, TurnId, new_id
from core.contracts.messages import Message, ReturnOutcome, Role, TextPart, ToolCall, ToolReturn
from core.contracts.permissions import Approval, ApprovalState
from core.contracts.runs import Claim, StopReason, Turn, TurnState, Usage
from core.contracts.store import NewMessage, RunEnd, RunStart
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores

ROOT = Path(__file__).parents[3]
"""Where programs started by tests find the packages."""
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
AGENT = AgentId("agent-1")
CONVERSATION = ConversationId("conv-1")
TURN = TurnId("turn-1")
RUN = RunId("run-1")
ADDRESS = Address(channel="telegram", account="bot", chat="111")
CHAT = "telegram/bot/111"


@dataclass
class World:
    """Open stores, the time they live in, and the doorbells they rang."""

    stores: Stores
    clock: FakeClock
    rings: list[WorkItem] = field(default_factory=list)

    def rung(self) -> list[tuple[str, str]]:
        """Return (queue, key) of the doorbells since the last call."""
        seen = [(item.queue, item.key) for item in self.rings]
        self.rings.clear()
        return seen


@asynccontextmanager
async def open_world(path: Path | str, clock: FakeClock | None = None) -> AsyncIterator[World]:
    clock = clock or FakeClock(START)
    rings: list[WorkItem] = []

    def submit(tx: Transaction, item: WorkItem) -> None:
        tx.after_commit(lambda: rings.append(item))

    database = Database.open(path)
    try:
        yield World(sql_stores(database, submit=submit, clock=clock), clock, rings)
    finally:
        await database.close()


def agent(name: str = "lodger", agent_id: str = AGENT) -> Agent:
    return Agent(
        id=AgentId(agent_id),
        name=name,
        model=ModelSettings(name="main", model="scripted/demo", fallbacks=("other",), window_tokens=8000),
        permission_mode=PermissionMode.ASK,
        toolset="default",
        workspace="/srv/space",
        memory_id="memory-1",
        created_at=START,
    )


def conversation(conversation_id: str = CONVERSATION, *, at: datetime = START, hidden: bool = False) -> Conversation:
    return Conversation(
        id=ConversationId(conversation_id),
        agent_id=AGENT,
        audience=Audience(words=frozenset({"everyone", "person:p1"})),
        permission_mode=PermissionMode.STRICT,
        epoch=0,
        created_at=at,
        title="A title",
        hidden=hidden,
    )


def prompt(text: str = "You are Lodger.", *, reason: str = "new conversation") -> CompiledPrompt:
    return CompiledPrompt(
        text=text, revision="a" * 40, seen_revision="b" * 40, stamp="stamp", tools_json="[]", reason=reason
    )


async def seed(world: World, conversation_id: str = CONVERSATION) -> Claim:
    """Store the agent once, a conversation, and claim it."""
    if not await world.stores.transcripts.agents():
        await world.stores.transcripts.insert_agent(agent())
    await world.stores.transcripts.insert_conversation(conversation(conversation_id))
    return await world.stores.transcripts.claim(ConversationId(conversation_id))


def user_message(text: str, message_id: str | None = None) -> NewMessage:
    return NewMessage(id=MessageId(message_id or new_id("msg")), role=Role.USER, parts=(TextPart(text=text),))


def assistant_message(*parts: TextPart | ToolCall, cut: bool = False) -> NewMessage:
    return NewMessage(id=MessageId(new_id("msg")), role=Role.ASSISTANT, parts=parts, cut=cut)


def tool_message(call_id: str, text: str = "done") -> NewMessage:
    return NewMessage(id=MessageId(new_id("msg")), role=Role.TOOL, parts=(tool_return(call_id, text),))


def tool_return(call_id: str, text: str = "done", outcome: str = "ok") -> ToolReturn:
    return ToolReturn(call_id=CallId(call_id), parts=(TextPart(text=text),), outcome=ReturnOutcome(outcome))


def call(call_id: str, name: str = "shell") -> ToolCall:
    return ToolCall(id=CallId(call_id), name=name, arguments='{"command":"echo x"}')


def run_start(run_id: str = RUN, *messages: NewMessage, request_id: str = "", with_prompt: bool = False) -> RunStart:
    return RunStart(
        run_id=RunId(run_id),
        request_id=request_id or f"request of {run_id}",
        messages=messages,
        prompt=prompt() if with_prompt else None,
    )


def as_row(message: NewMessage, *, conversation_id: str = CONVERSATION, run_id: str = RUN) -> Message:
    """Return a message as a backend guesses it in its MessageStored event."""
    return Message(
        id=message.id,
        conversation_id=ConversationId(conversation_id),
        seq=0,
        role=message.role,
        parts=message.parts,
        created_at=START,
        run_id=RunId(run_id),
        cut=message.cut,
    )


def events(run_id: str, first_seq: int, *bodies: RunEventBody) -> tuple[RunEvent, ...]:
    return tuple(RunEvent(run_id=RunId(run_id), seq=seq, body=body) for seq, body in enumerate(bodies, first_seq))


def run_end(
    message: NewMessage | None,
    *,
    run_id: str = RUN,
    first_seq: int = 1,
    stop_reason: StopReason = StopReason.END_TURN,
    usage: Usage = Usage(),
) -> RunEnd:
    bodies: list[RunEventBody] = []
    if message is not None:
        bodies.append(MessageStored(message=as_row(message, run_id=run_id)))
    bodies.append(RunFinished(stop_reason=stop_reason))
    return RunEnd(
        run_id=RunId(run_id),
        message=message,
        stop_reason=stop_reason,
        error="",
        usage=usage,
        events=events(run_id, first_seq, *bodies),
    )


async def step(world: World, claim: Claim, *parts: TextPart | ToolCall, run_id: str = RUN) -> Message:
    """Take one whole model step that says `parts`; return its message."""
    await world.stores.transcripts.begin_run(claim, run_start(run_id))
    message = assistant_message(*parts)
    _, stored = await world.stores.transcripts.finish_run(claim, run_end(message, run_id=run_id))
    assert stored is not None
    return stored


def turn(turn_id: str = TURN, conversation_id: str = CONVERSATION, *, at: datetime = START) -> Turn:
    return Turn(
        id=TurnId(turn_id),
        conversation_id=ConversationId(conversation_id),
        agent_id=AGENT,
        requester=PersonId("person-1"),
        origin=ADDRESS,
        state=TurnState.RUNNING,
        started_at=at,
    )


def text_item(item_id: str, text: str = "Hello", *, address: Address = ADDRESS) -> OutboundItem:
    return OutboundItem(id=item_id, address=address, content=TextContent(markdown=text))


def inbound(key: str, text: str = "hi", *, address: Address = ADDRESS) -> InboundEvent:
    return InboundEvent(
        address=address,
        key=key,
        sender=Sender(identity="telegram:111", name="Alice"),
        body=MessageBody(text=text),
        privacy=Privacy.DIRECT,
        sent_at=START,
        external_id="m1",
    )


def approval(
    approval_id: str,
    call_id: str,
    *,
    turn_id: str = TURN,
    conversation_id: str = CONVERSATION,
    expires_at: datetime = START + timedelta(hours=24),
) -> Approval:
    return Approval(
        id=ApprovalId(approval_id),
        turn_id=TurnId(turn_id),
        conversation_id=ConversationId(conversation_id),
        agent_id=AGENT,
        call_id=CallId(call_id),
        tool="shell",
        shown="echo x >> out.txt",
        hash=f"hash of {call_id}",
        rule="default",
        reason="asks by default",
        remember="shell: echo",
        state=ApprovalState.OPEN,
        requester=PersonId("person-1"),
        origin=ADDRESS,
        created_at=START,
        expires_at=expires_at,
    )
