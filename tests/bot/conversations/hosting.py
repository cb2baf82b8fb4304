"""A host put together by the real wiring, on stores in memory, with one fake platform and a scripted model.

Without an engine: its doorbells ring when a test asks, one after the other, on a clock that only
tests move. So every order of events can be played, and nothing waits for real.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from bot.agents import ensure_agents
from bot.config.live import LiveSettings
from bot.config.model import (
    AccessSettings,
    AgentSection,
    Channels,
    DirectMessages,
    HostSettings,
    ModelSection,
    PermissionSettings,
    Settings,
    TelegramSettings,
)
from bot.config.secrets import Secret
from bot.host import Host
from bot.reload import ReloadReport
from bot.wiring.assembly import assemble
from bot.wiring.parts import HostChannels, Parts
from channels.contract import Diagnosable, HomeScreen
from channels.fake import FAKE_CAPABILITIES, FakeChannel, FakeMessage
from channels.feed import FeedChannel
from core.backends.local.backend import LocalBackend
from core.contracts.addresses import Address, EditBody, InboundEvent, MessageBody, PressBody, Privacy, Sender
from core.contracts.agents import Agent, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.engine import Again, Transaction, WorkItem
from core.contracts.ids import ConversationId
from core.contracts.messages import Message, ReminderPart, ToolReturn
from core.contracts.models import ModelClient
from core.contracts.permissions import Approval
from core.contracts.runs import Turn
from core.memory.fake import FakeMemoryStore
from core.models.routing import ModelRouter
from core.models.scripted import ScriptedModel, Step
from core.sandbox.fake import FakeOutcome, FakeSandbox
from core.secrets.redaction import ValueRedactor
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores

BOUND_SECONDS = 60
CHANNEL = "telegram"
ALICE = Sender(identity="telegram:111", name="Alice")
"""The owner."""
OPAL = Sender(identity="telegram:222", name="Opal")
"""An operator."""
MIKE = Sender(identity="telegram:333", name="Mike")
"""A member: on the allow list."""
SAM = Sender(identity="telegram:444", name="Sam")
"""A stranger."""
SECRET = "hunter" + "2" * 12

_KEYS = itertools.count(1)


def chat(name: str, thread: str | None = None) -> Address:
    return Address(channel=CHANNEL, account="bot", chat=name, thread=thread)


HERE = chat("111")


@dataclass(repr=False)
class Hosted:
    """What people do, and what comes of it: messages, requests, rows."""

    app: Host
    stores: Stores
    memory: FakeMemoryStore
    backend: LocalBackend
    model: ScriptedModel
    channel: FakeChannel
    clock: FakeClock
    bells: list[WorkItem]
    agent: Agent
    answers: dict[tuple[str, str], Again] = field(default_factory=dict)
    """The wishes of handlers to be rung again, by queue and key."""

    async def says(self, text: str, *, who: Sender = ALICE, where: Address = HERE, **more) -> None:
        """Let a person write, and the host do all that follows."""
        await self.arrives(MessageBody(text=text), who=who, where=where, **more)
        await self.settle()

    async def edits(self, text: str, *, who: Sender = ALICE, where: Address = HERE) -> None:
        await self.arrives(EditBody(message_key="event-1", text=text), who=who, where=where)
        await self.settle()

    async def presses(self, label: str, *, who: Sender = ALICE, where: Address = HERE) -> str:
        """Let a person press the newest button of that label; return what they are told."""
        card = self.card_with(label, where=where)
        return await self.sends_press(card.buttons[label], card=card.external_id, who=who, where=where)

    async def sends_press(self, token: str, *, card: str = "1", who: Sender = ALICE, where: Address = HERE) -> str:
        """Let a press arrive as it is, forged or not; return what its presser is told."""
        before = len(self.channel.acknowledgements)
        await self.arrives(PressBody(token=token, card=card, acknowledge="q1"), who=who, where=where)
        await self.settle()
        told = self.channel.acknowledgements[before:]
        assert told, "every press is answered"
        return told[-1][1]

    async def arrives(
        self, body, *, who: Sender = ALICE, where: Address = HERE, privacy: Privacy = Privacy.DIRECT, key: str = ""
    ) -> None:
        """Commit an event as the channel does, and do nothing more."""
        event = InboundEvent(
            address=where,
            key=key or f"event-{next(_KEYS)}",
            sender=who,
            body=body,
            privacy=privacy,
            sent_at=self.clock.now(),
            external_id="m1",
        )
        await self.app.sink.accept(event)

    async def settle(self, *queues: str) -> None:
        """Answer every doorbell that is due, of these queues or of all, until it is quiet."""
        async with asyncio.timeout(BOUND_SECONDS):
            while due := self._due(queues):
                self.bells.remove(due[0])
                await self.ring(due[0].queue, due[0].key)

    async def ring(self, queue: str, key: str) -> Again | None:
        """Answer one doorbell, as an engine does."""
        again = await self.app.handlers[queue](key)
        if again is not None:
            self.answers[queue, key] = again
        return again

    def _due(self, queues: Iterable[str]) -> list[WorkItem]:
        now = self.clock.now()
        return [bell for bell in self.bells if bell.due_at <= now and (not queues or bell.queue in queues)]

    async def passes(self, duration: timedelta) -> None:
        """Let time pass, and the host do all that has become due."""
        await self.clock.advance(duration)
        await self.settle()

    async def time_passes(self) -> None:
        """Let the clock go on until cancelled, so that previews and batches come."""
        while True:
            await asyncio.sleep(0.001)
            await self.clock.advance(timedelta(milliseconds=100))

    async def until(self, condition) -> None:
        """Wait until a condition over what happened in memory holds."""
        async with asyncio.timeout(BOUND_SECONDS):
            while not condition():
                await asyncio.sleep(0.001)

    def seen(self, where: Address = HERE) -> list[FakeMessage]:
        return [message for message in self.channel.messages.values() if message.address == where]

    def texts(self, where: Address = HERE) -> list[str]:
        return [message.text for message in self.seen(where)]

    def card_with(self, label: str, where: Address = HERE) -> FakeMessage:
        return next(message for message in reversed(self.seen(where)) if label in message.buttons)

    async def conversation_id(self, where: Address = HERE) -> ConversationId:
        return (await self.stores.delivery.binding(where.key)).conversation_id

    async def transcript(self, where: Address = HERE) -> tuple[Message, ...]:
        return await self.backend.list_messages(await self.conversation_id(where))

    async def returns(self, where: Address = HERE) -> list[ToolReturn]:
        return [p for message in await self.transcript(where) for p in message.parts if isinstance(p, ToolReturn)]

    async def reminders(self, where: Address = HERE) -> list[list[str]]:
        """Return the kinds of reminders of each user message that has any."""
        kinds = [
            [p.kind for p in message.parts if isinstance(p, ReminderPart)] for message in await self.transcript(where)
        ]
        return [found for found in kinds if found]

    async def open_turn(self, where: Address = HERE) -> Turn | None:
        return await self.stores.ledger.open_turn(await self.conversation_id(where))

    async def latest_turn(self, where: Address = HERE) -> Turn:
        return await self.stores.ledger.latest_turn(await self.conversation_id(where))

    async def open_approvals(self) -> tuple[Approval, ...]:
        return await self.stores.ledger.open_approvals_of()

    async def audited(self) -> list[str]:
        """Return what was done, oldest first."""
        return [entry.what for entry in reversed(await self.stores.people.audit())]

    @property
    def commands(self) -> list[str]:
        """The shell lines that ran."""
        return [command.argv[-1] for command in self.app.sandbox.commands]


def make_settings(directory: Path, **changes) -> Settings:
    """Return the configuration of a host with one agent on one platform."""
    base = Settings(
        host=HostSettings(data_dir=directory / "data"),
        models={"main": ModelSection(model="scripted/test")},
        agents={"lodger": AgentSection(model="main", workspace=directory / "workspace")},
        channels=Channels(telegram=TelegramSettings(token=Secret("123456789:" + "D" * 35), agent="lodger")),
        access=AccessSettings(
            owners=(ALICE.identity,),
            operators=(OPAL.identity,),
            allow=(MIKE.identity,),
            direct_messages=DirectMessages.PAIRING,
        ),
        permissions=PermissionSettings(),
    )
    return replace(base, **changes)


@asynccontextmanager
async def hosting(
    directory: Path,
    *steps: Step,
    mode: PermissionMode = PermissionMode.ASK,
    outcomes: Mapping[str, FakeOutcome] | None = None,
    channel: FakeChannel | None = None,
    database: Database | None = None,
    memory: FakeMemoryStore | None = None,
    clock: FakeClock | None = None,
    model: ModelClient | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[Hosted]:
    """Open a host under `directory`; give the parts of an earlier one to restart it.

    `model` stands for every client: a scripted one, or one that speaks to a server.
    """
    clock = clock or FakeClock()
    settings = settings or make_settings(directory)
    agents = {name: replace(agent, permission_mode=mode) for name, agent in settings.agents.items()}
    settings = replace(settings, agents=agents)
    bells: list[WorkItem] = []

    def submit(tx: Transaction, item: WorkItem) -> None:
        tx.after_commit(lambda: bells.append(item))

    async with AsyncExitStack() as stack:
        if database is None:
            database = Database.open(":memory:")
            stack.push_async_callback(database.close)
        stores = sql_stores(database, submit=submit, clock=clock)
        redactor = ValueRedactor([("password", SECRET)])
        memory = memory or FakeMemoryStore(clock, redactor.mask)
        model = model or ScriptedModel(steps)
        channel = channel or FakeChannel(
            CHANNEL, capabilities=replace(FAKE_CAPABILITIES, code_limit=8_000), clock=clock
        )
        backend = await stack.enter_async_context(
            LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=redactor.mask)
        )
        await ensure_agents(settings, backend, lambda path: path.mkdir(parents=True, exist_ok=True))
        sandbox = FakeSandbox(outcomes or {}, clock=clock)
        parts = _parts(stores, memory, sandbox, model, backend, channel, redactor, clock)
        yield Hosted(
            app=assemble(LiveSettings(settings), parts),
            stores=stores,
            memory=memory,
            backend=backend,
            model=model,
            channel=channel,
            clock=clock,
            bells=bells,
            agent=await backend.find_agent("lodger"),
        )


async def _reloaded() -> ReloadReport:
    return ReloadReport(applied=("access.owners",))


@asynccontextmanager
async def no_platforms() -> AsyncIterator[Mapping[str, Diagnosable]]:
    yield {}


def _screens(channel) -> dict[str, HomeScreen]:
    return {channel.name: channel} if hasattr(channel, "show_home") else {}


def _parts(stores, memory, sandbox, model, backend, channel, redactor, clock) -> Parts:
    """Return what the wiring assembles a host from; doorbells are rung by the test, so there is no engine."""
    local = {name: FeedChannel(name, clock) for name in ("web", "terminal", "headless", "session")}
    return Parts(
        clock=clock,
        redactor=redactor,
        engine=None,
        stores=stores,
        memory=memory,
        sandbox=sandbox,
        model=ModelRouter(direct=model, litellm=model, scripted={"test": model}),
        backend=backend,
        channels=HostChannels(**local, platforms=(channel,), screens=_screens(channel)),
        transcriber=None,
        reload=_reloaded,
        diagnosed=no_platforms,
    )
