"""A host as `lodger up` puts it together, with a fake chat, a scripted model and no engine: bells ring when asked.

Opened twice on one directory it is two processes on one database; closed and opened again, a restart.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from bot.agents import ensure_agents
from bot.config.live import LiveSettings
from bot.config.model import (
    AccessSettings,
    AgentSection,
    DirectMessages,
    HostSettings,
    ModelSection,
    PermissionSettings,
    Settings,
)
from bot.conversations.turn_host import MemoryDoubts
from bot.host import Host
from bot.reload import ReloadReport
from bot.wiring.assembly import assemble
from bot.wiring.parts import HostChannels, Parts
from channels.fake import FakeChannel, FakeMessage
from core.backends.local.backend import LocalBackend
from core.contracts.addresses import Address, InboundEvent, MessageBody, PressBody, Privacy, Sender
from core.contracts.agents import Agent, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.engine import Transaction, WorkItem
from core.contracts.ids import ConversationId
from core.contracts.messages import Message, ToolReturn
from core.contracts.models import ModelClient
from core.memory.store import GitMemoryStore
from core.models.routing import ModelRouter
from core.permissions.rules import Rule
from core.sandbox.fake import FakeSandbox
from core.secrets.redaction import ValueRedactor
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores
from core.tools.memory import MemoryReadTool, MemoryWriteTool
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from tests.bot.conversations.hosting import no_platforms

CHANNEL = "web"
AGENT = "lodger"
OWNER = Sender(identity=f"{CHANNEL}:alice", name="Alice")
GUEST = Sender(identity=f"{CHANNEL}:bob", name="Bob")
_EVENT_KEYS = itertools.count(1)
"""Keys go on over restarts, as a platform's do."""


def chat(name: str) -> Address:
    return Address(channel=CHANNEL, account="bot", chat=name)


HERE = chat("here")


class Bells:
    """What stands for the engine: keeps doorbells until somebody takes them."""

    def __init__(self) -> None:
        self.rung: list[WorkItem] = []

    def submit(self, tx: Transaction, item: WorkItem) -> None:
        tx.after_commit(lambda: self.rung.append(item))

    def take_due(self, clock: FakeClock) -> WorkItem | None:
        due = next((bell for bell in self.rung if bell.due_at <= clock.now()), None)
        if due is not None:
            self.rung.remove(due)
        return due


@dataclass(repr=False)
class ChatHost:
    """What tests do and see: people write and press; messages, requests and rows come of it."""

    clock: FakeClock
    stores: Stores
    memory: GitMemoryStore
    backend: LocalBackend
    agent: Agent
    channel: FakeChannel
    bells: "Bells"
    host: Host

    @property
    def worker(self):
        return self.host.worker

    @property
    def sink(self):
        return self.host.sink

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
        async with asyncio.timeout(60):
            while (bell := self.bells.take_due(self.clock)) is not None:
                again = await self.host.handlers[bell.queue](bell.key)
                if again is not None:
                    self.bells.rung.append(replace(bell, due_at=self.clock.now() + again.wait))

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
    channel: FakeChannel | None = None,
) -> AsyncIterator[ChatHost]:
    """Open a host that keeps its data in `data` and works in `workspace` below a directory.

    Its tools are the given ones, the memory tools and `stay_silent`. For a restart, hand over the
    clock and the channel of the host before: time and platform outlive a process.
    """
    clock = clock or FakeClock()
    channel = channel or FakeChannel(CHANNEL, clock=clock)
    bells, redactor = Bells(), ValueRedactor()
    settings = _settings(directory, mode, rules)
    data = settings.host.data_dir
    data.mkdir(exist_ok=True)
    stores = sql_stores(await asyncio.to_thread(Database.open, data / "host.db"), submit=bells.submit, clock=clock)
    memory = GitMemoryStore(data / "memory", clock)
    router = ModelRouter(direct=model, litellm=model, scripted={"test": model})
    async with LocalBackend(store=stores.transcripts, memory=memory, model=router, clock=clock, mask=str) as backend:
        await ensure_agents(settings, backend, lambda workspace: workspace.mkdir(exist_ok=True))
        parts = Parts(
            clock=clock,
            redactor=redactor,
            engine=bells,
            stores=stores,
            memory=memory,
            sandbox=FakeSandbox(clock=clock),
            model=router,
            backend=backend,
            channels=_channels(channel, clock),
            transcriber=None,
            reload=_no_reload,
            diagnosed=no_platforms,
        )
        host = assemble(LiveSettings(settings), parts)
        doubts = MemoryDoubts(memory, stores.ledger)
        standing = (MemoryReadTool(memory, redactor), MemoryWriteTool(memory, doubts.was_approved), StaySilent())
        toolset = StaticToolset("default", (*tools, *standing))
        host.worker._ports = replace(host.worker._ports, toolsets={toolset.id: toolset})
        yield ChatHost(
            clock=clock,
            stores=stores,
            memory=memory,
            backend=backend,
            agent=await backend.find_agent(AGENT),
            channel=channel,
            bells=bells,
            host=host,
        )
    await stores.database.close()


def _channels(web: FakeChannel, clock: FakeClock) -> HostChannels:
    others = {name: FakeChannel(name, clock=clock) for name in ("terminal", "headless", "session")}
    return HostChannels(web=web, **others, platforms=())


async def _no_reload() -> ReloadReport:
    return ReloadReport()


def _settings(directory: Path, mode: PermissionMode, rules: tuple[Rule, ...]) -> Settings:
    return Settings(
        host=HostSettings(data_dir=directory / "data"),
        models={"main": ModelSection(model="scripted/test")},
        agents={AGENT: AgentSection(model="main", permission_mode=mode, workspace=directory / "workspace")},
        access=AccessSettings(owners=(OWNER.identity,), direct_messages=DirectMessages.OPEN),
        permissions=PermissionSettings(rules=rules, approvers=("owner",)),
    )
