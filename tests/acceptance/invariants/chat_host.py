"""A host on files with one chat channel, a scripted model and no engine: its doorbells ring when asked.

Opened twice on one directory it is two processes on one database; closed and opened again, a restart.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from bot.conversations.access import AccessDesk, AccessRules
from bot.conversations.commands import CommandDesk, CommandPorts
from bot.conversations.memory_commands import MemoryCommands
from bot.conversations.observer import TurnBus
from bot.conversations.opening import Openings
from bot.conversations.outbox import Deliverer
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk, PressDesk
from bot.conversations.router import InboxSink, Router, RouterPorts
from bot.conversations.turn_host import ChatTurnHost, MemoryDoubts
from bot.conversations.worker import ConversationWorker, WorkerPorts
from channels.fake import FakeChannel, FakeMessage
from core.backends.local.backend import LocalBackend
from core.contracts.addresses import Address, InboundEvent, MessageBody, PressBody, Privacy, Sender
from core.contracts.agents import Agent, AgentSpec, ModelSettings, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE
from core.contracts.engine import Transaction, WorkItem
from core.contracts.ids import ConversationId
from core.contracts.messages import Message, ToolReturn
from core.contracts.models import ModelClient
from core.memory.store import GitMemoryStore
from core.permissions.policy import RulePolicy
from core.permissions.rules import Rule
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores
from core.tools.locks import WorkspaceLocks
from core.tools.memory import MemoryReadTool, MemoryWriteTool
from core.tools.overflow import OverflowFiles
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from core.tools.wrappers import perform
from core.turns.loop import TurnLoop
from core.turns.services import TurnLimits, TurnServices
from tests.core.turns.workbench import NoSecrets

CHANNEL = "chat"
UTC = ZoneInfo("UTC")
OWNER = Sender(identity=f"{CHANNEL}:alice", name="Alice")
GUEST = Sender(identity=f"{CHANNEL}:bob", name="Bob")
_EVENT_KEYS = itertools.count(1)
"""Keys go on over restarts, as a platform's do."""


def chat(name: str) -> Address:
    return Address(channel=CHANNEL, account="bot", chat=name)


HERE = chat("here")


@dataclass(repr=False)
class ChatHost:
    """What tests do and see: people write and press; messages, requests and rows come of it."""

    clock: FakeClock
    directory: Path
    stores: Stores
    memory: GitMemoryStore
    backend: LocalBackend
    agent: Agent
    channel: FakeChannel
    bells: list[WorkItem]
    worker: ConversationWorker = field(init=False)
    sink: InboxSink = field(init=False)
    handlers: dict[str, Callable] = field(init=False)

    @property
    def workspace(self) -> Path:
        return self.directory / "workspace"

    async def says(self, text: str, *, where: Address = HERE, who: Sender = OWNER) -> None:
        """Let a person write, and the host do all that follows."""
        await self.arrives(MessageBody(text=text), where=where, who=who)
        await self.settle()

    async def presses(self, label: str, *, where: Address = HERE, who: Sender = OWNER) -> str:
        """Let a person press the newest button of that label; return what they are told."""
        card = next(m for m in reversed(self.seen_in(where)) if label in m.buttons)
        await self.arrives(PressBody(token=card.buttons[label], card=card.external_id), where=where, who=who)
        await self.settle()
        return self.channel.acknowledgements[-1][1]

    async def arrives(self, body, *, where: Address, who: Sender) -> None:
        """Commit an event as the channel does, and do nothing more."""
        event = InboundEvent(
            address=where,
            key=f"event-{next(_EVENT_KEYS)}",
            sender=who,
            body=body,
            privacy=Privacy.DIRECT,
            sent_at=self.clock.now(),
        )
        await self.sink.accept(event)

    async def settle(self) -> None:
        """Answer every doorbell that is due, one after the other, until it is quiet."""
        async with asyncio.timeout(20):
            while due := [bell for bell in self.bells if bell.due_at <= self.clock.now()]:
                self.bells.remove(due[0])
                again = await self.handlers[due[0].queue](due[0].key)
                if again is not None:
                    self.bells.append(replace(due[0], due_at=self.clock.now() + again.wait))

    async def passes(self, duration: timedelta) -> None:
        """Let time pass, and the host do all that has become due."""
        await self.clock.advance(duration)
        await self.settle()

    def seen_in(self, where: Address = HERE) -> list[FakeMessage]:
        return [message for message in self.channel.messages.values() if message.address == where]

    def texts_in(self, where: Address = HERE) -> list[str]:
        return [message.text for message in self.seen_in(where)]

    async def conversation_of(self, where: Address = HERE) -> ConversationId:
        binding = await self.stores.delivery.binding(where.key)
        return binding.conversation_id

    async def transcript(self, where: Address = HERE) -> tuple[Message, ...]:
        return await self.backend.list_messages(await self.conversation_of(where))

    async def returns(self, where: Address = HERE) -> list[ToolReturn]:
        rows = await self.transcript(where)
        return [part for message in rows for part in message.parts if isinstance(part, ToolReturn)]


@asynccontextmanager
async def chat_host(
    directory: Path,
    model: ModelClient,
    *tools,
    mode: PermissionMode = PermissionMode.ASK,
    rules: tuple[Rule, ...] = (),
    clock: FakeClock | None = None,
) -> AsyncIterator[ChatHost]:
    """Open a host on `directory`; memory tools and `stay_silent` are always there."""
    clock = clock or FakeClock()
    bells: list[WorkItem] = []

    def submit(tx: Transaction, item: WorkItem) -> None:
        tx.after_commit(lambda: bells.append(item))

    database = await asyncio.to_thread(Database.open, directory / "host.db")
    stores = sql_stores(database, submit=submit, clock=clock)
    memory = GitMemoryStore(directory / "memory", clock)
    async with LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=str) as backend:
        host = ChatHost(
            clock=clock,
            directory=directory,
            stores=stores,
            memory=memory,
            backend=backend,
            agent=await _agent(backend, directory / "workspace", mode),
            channel=FakeChannel(CHANNEL, clock=clock),
            bells=bells,
        )
        _assemble(host, tools, rules)
        yield host
    await database.close()


async def _agent(backend: LocalBackend, workspace: Path, mode: PermissionMode) -> Agent:
    workspace.mkdir(exist_ok=True)
    known = await backend.find_agent("lodger")
    if known is not None:
        return known
    settings = ModelSettings(name="main", model="scripted/test")
    return await backend.create_agent(
        AgentSpec(name="lodger", model=settings, permission_mode=mode, workspace=str(workspace))
    )


def _assemble(host: ChatHost, tools: tuple, rules: tuple[Rule, ...]) -> None:
    stores, clock, channels = host.stores, host.clock, {CHANNEL: host.channel}
    access = AccessDesk(stores.people, AccessRules(owners=(OWNER.identity,), direct_messages="open"))
    decisions = DecisionDesk(
        ledger=stores.ledger,
        delivery=stores.delivery,
        people=stores.people,
        approvers=("owner",),
        clock=clock,
        zone=UTC,
    )
    doubts = MemoryDoubts(host.memory, stores.ledger)
    standing = (MemoryReadTool(host.memory, NoSecrets()), MemoryWriteTool(host.memory, doubts.was_approved))
    host.worker = ConversationWorker(
        WorkerPorts(
            backend=host.backend,
            ledger=stores.ledger,
            delivery=stores.delivery,
            memory=host.memory,
            loop=_loop(host, access, doubts, rules),
            access=access,
            decisions=decisions,
            openings=Openings(backend=host.backend, clock=clock, zone=UTC, clean=str),
            channels=channels,
            toolsets={"default": StaticToolset("default", (*tools, *standing, StaySilent()))},
            clock=clock,
            bus=TurnBus(),
            conceal=str,
            remind_after=timedelta(hours=1),
        )
    )
    router = _router(host, access, decisions)
    deliverer = Deliverer(
        store=stores.delivery, channels=channels, clock=clock, card_failed=decisions.card_failed, mask=str
    )
    host.sink = InboxSink(router, stores.delivery)
    host.handlers = {
        INBOX_QUEUE: router.route_address,
        CONVERSATION_QUEUE: host.worker.advance,
        OUTBOX_QUEUE: deliverer.deliver_chat,
    }


def _loop(host: ChatHost, access: AccessDesk, doubts: MemoryDoubts, rules: tuple[Rule, ...]) -> TurnLoop:
    overflow = OverflowFiles(NoSecrets())

    async def do(toolset, call, context):
        return await perform(toolset, call, context, redactor=NoSecrets(), overflow=overflow)

    return TurnLoop(
        TurnServices(
            backend=host.backend,
            ledger=host.stores.ledger,
            policy=RulePolicy(rules),
            perform=do,
            doubt=doubts.question,
            locks=WorkspaceLocks(),
            host=ChatTurnHost(
                access=access,
                zone=UTC,
                overflow_root=host.directory / "overflow",
                forbidden=(host.directory / "memory", host.directory / "host.db"),
            ),
            clock=host.clock,
            limits=TurnLimits(),
        )
    )


def _router(host: ChatHost, access: AccessDesk, decisions: DecisionDesk) -> Router:
    stores, channels = host.stores, {CHANNEL: host.channel}
    pairings = PairingDesk(people=stores.people, access=access, clock=host.clock)
    commands = CommandDesk(
        CommandPorts(
            backend=host.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            memory=MemoryCommands(host.memory),
            clock=host.clock,
            wake_cancel=host.worker.wake_cancel,
            pair=pairings.accept,
        )
    )
    presses = PressDesk(
        decisions=decisions,
        ledger=stores.ledger,
        backend=host.backend,
        delivery=stores.delivery,
        memory=host.memory,
        channels=channels,
    )
    return Router(
        RouterPorts(
            backend=host.backend,
            delivery=stores.delivery,
            access=access,
            commands=commands,
            presses=presses,
            pairings=pairings,
            channels=channels,
            agents={CHANNEL: "lodger"},
            clock=host.clock,
        )
    )
