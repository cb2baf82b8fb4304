"""A turn loop on real stores, memory and tools in memory, with a scripted model: what tests of turns drive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from core.backends.local.backend import LocalBackend
from core.contracts.addresses import Address, CardContent, OutboundItem, TextContent
from core.contracts.agents import Agent, AgentSpec, Audience, Conversation, ModelSettings, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.ids import PersonId, TurnId, new_id
from core.contracts.messages import TextPart, ToolCall, ToolReturn, UserPart
from core.contracts.models import ModelClient
from core.contracts.permissions import (
    Approval,
    ApprovalState,
    Decision,
    PersonRole,
    Subject,
)
from core.contracts.runs import Turn, TurnState, UserInput
from core.contracts.tools import Access, ToolContext, ToolSchema
from core.memory.fake import FakeMemoryStore
from core.permissions.policy import RulePolicy
from core.permissions.rules import Rule
from core.stores.inmemory import open_in_memory
from core.stores.sql import Stores
from core.tools.locks import WorkspaceLocks
from core.tools.overflow import OverflowFiles
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from core.tools.wrappers import perform
from core.turns.loop import TurnLoop
from core.turns.observer import TurnEvent
from core.turns.services import Parked, Steering, TurnLimits, TurnResult, TurnServices, TurnWork

WORKSPACE = Path("/workspace")
ALICE = PersonId("person-alice")
CHAT = Address(channel="telegram", account="bot", chat="111")


class NoSecrets:
    """A redactor that knows none."""

    def mask(self, text: str) -> str:
        return text

    def stream(self):
        raise NotImplementedError


@dataclass
class RecordingTool:
    """A tool that notes its calls; `gate` holds every call until it is set."""

    name: str = "shell"
    reach: Callable[[dict], Access | None] = lambda arguments: Access(command=str(arguments.get("command", "")))
    gate: asyncio.Event | None = None
    calls: list[str] = field(default_factory=list)
    arguments: list[dict] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description="A test tool.", parameters={"type": "object", "properties": {}})

    def access(self, arguments, context) -> Access | None:
        return self.reach(arguments)

    async def call(self, arguments, context: ToolContext):
        self.calls.append(context.call_id)
        self.arguments.append(arguments)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.started.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.running -= 1
        return (TextPart(text=f"ran {arguments.get('command', '')}".strip()),)


class PlainHost:
    """A host with one mode and a card that shows nothing but ids."""

    def __init__(self, mode: PermissionMode) -> None:
        self.mode = mode

    async def subject(self, turn, agent, conversation) -> Subject:
        return Subject(
            agent_id=agent.id,
            conversation_id=conversation.id,
            mode=self.mode,
            workspace=WORKSPACE,
            requester=turn.requester,
            role=PersonRole.OWNER,
        )

    async def approval_card(self, turn: Turn, approvals: Sequence[Approval], *, said: str) -> OutboundItem | None:
        return OutboundItem(id=f"{turn.id}/ask/{approvals[0].id}", address=CHAT, content=CardContent(text="may I?"))

    def overflow(self, conversation) -> Path:
        return Path("/overflow") / conversation.id


class Notes:
    """An observer that keeps every event."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    async def observe(self, turn: Turn, event: TurnEvent) -> None:
        self.events.append(event)


class Quiet:
    """Steering where nobody says anything."""

    async def has_entered(self, step: int) -> bool:
        return False

    async def take(self, step: int, *, more: bool) -> tuple[UserPart, ...]:
        return ()


@dataclass
class Workbench:
    """Everything a test of turns needs; one agent, one conversation."""

    stores: Stores
    memory: FakeMemoryStore
    backend: LocalBackend
    loop: TurnLoop
    clock: FakeClock
    tools: StaticToolset
    agent: Agent
    conversation: Conversation
    host: PlainHost
    notes: Notes = field(default_factory=Notes)
    steering: Steering = field(default_factory=Quiet)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self, *, interactive: bool = True) -> TurnWork:
        """Start a turn's bookkeeping, as a worker does."""
        turn_id = TurnId(new_id("turn"))
        live = OutboundItem(id=f"{turn_id}/1", address=CHAT, content=TextContent(markdown=""))
        turn = Turn(
            id=turn_id,
            conversation_id=self.conversation.id,
            agent_id=self.agent.id,
            requester=ALICE,
            origin=CHAT,
            state=TurnState.RUNNING,
            started_at=self.clock.now(),
            outbox_id=live.id,
            interactive=interactive,
        )
        claim = await self.stores.ledger.begin_turn(turn, inbox_ids=[], live=live)
        return self._work(claim, turn, "go on")

    async def take_up(self, turn_id: TurnId) -> TurnWork:
        """Claim a turn again, as a worker does after a park or a restart."""
        claim = await self.backend.claim(self.conversation.id)
        turn = await self.stores.ledger.turn(turn_id)
        if turn.state is TurnState.PARKED:
            await self.stores.ledger.resume_turn(claim, turn_id)
        return self._work(claim, turn, "go on")

    def _work(self, claim, turn: Turn, text: str) -> TurnWork:
        return TurnWork(
            claim=claim,
            turn=turn,
            agent=self.agent,
            conversation=self.conversation,
            toolset=self.tools,
            opening=UserInput(parts=(TextPart(text=text),)),
            steering=self.steering,
            observer=self.notes,
            cancel=self.cancel,
        )

    async def run(self, work: TurnWork) -> TurnResult | Parked:
        """Run the loop, bounded."""
        async with asyncio.timeout(60):
            return await self.loop.run(work)

    async def open_approvals(self) -> tuple[Approval, ...]:
        return await self.stores.ledger.open_approvals_of()

    async def decide(self, approval: Approval, *, approve: bool, feedback: str = "", edited: str | None = None) -> bool:
        decision = Decision(approve=approve, by=ALICE, by_name="Alice", feedback=feedback, edited=edited)
        state = ApprovalState.APPROVED if approve else ApprovalState.DENIED
        decided = await self.stores.ledger.decide(approval.id, decision, state, hash_shown=approval.hash, grant=None)
        return decided.won

    async def returns(self) -> list[ToolReturn]:
        """Return every tool return of the transcript, in order."""
        messages = await self.backend.list_messages(self.conversation.id)
        return [part for message in messages for part in message.parts if isinstance(part, ToolReturn)]


async def no_doubt(call: ToolCall, context: ToolContext) -> str | None:
    return None


@asynccontextmanager
async def workbench(
    model: ModelClient,
    *tools,
    mode: PermissionMode = PermissionMode.ASK,
    rules: Sequence[Rule] = (),
    limits: TurnLimits | None = None,
    doubt=no_doubt,
) -> AsyncIterator[Workbench]:
    """Build a workbench around a model and tools; `stay_silent` is always there."""
    clock = FakeClock()
    stores = open_in_memory(clock)
    memory = FakeMemoryStore(clock)
    overflow = OverflowFiles(NoSecrets())

    async def do(toolset, call, context):
        return await perform(toolset, call, context, redactor=NoSecrets(), overflow=overflow)

    host = PlainHost(mode)
    toolset = StaticToolset("default", (*tools, StaySilent()))
    async with LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=str) as backend:
        spec = AgentSpec(
            name="lodger", model=ModelSettings(name="main", model="scripted/test"), workspace=str(WORKSPACE)
        )
        agent = await backend.create_agent(spec)
        conversation = await backend.create_conversation(agent.id, Audience())
        services = TurnServices(
            backend=backend,
            ledger=stores.ledger,
            policy=RulePolicy(rules),
            perform=do,
            doubt=doubt,
            locks=WorkspaceLocks(),
            host=host,
            clock=clock,
            limits=limits or TurnLimits(),
            approval_deadline=lambda: timedelta(hours=24),
        )
        yield Workbench(
            stores=stores,
            memory=memory,
            backend=backend,
            loop=TurnLoop(services),
            clock=clock,
            tools=toolset,
            agent=agent,
            conversation=conversation,
            host=host,
        )
    await stores.database.close()
