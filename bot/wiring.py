"""The one place that names concrete classes and puts a host together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from bot.agents import access_rules, agent_model, agents_of_channels, ensure_agents
from bot.config.model import NetworkAccess, Settings
from bot.conversations.access import AccessDesk
from bot.conversations.commands import CommandDesk, CommandPorts
from bot.conversations.headless import Headless
from bot.conversations.memory_commands import MemoryCommands
from bot.conversations.observer import TurnBus
from bot.conversations.opening import Openings
from bot.conversations.outbox import Deliverer
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk, PressDesk
from bot.conversations.router import InboxSink, Router, RouterPorts
from bot.conversations.turn_host import ChatTurnHost, MemoryDoubts
from bot.conversations.worker import HEADLESS, ConversationWorker, WorkerPorts
from bot.folders import open_data_dir
from bot.health import Health
from bot.host import Host
from bot.host_service import HostService, ServicePorts
from channels.contract import Channel
from channels.feed import FeedChannel
from core.backends.local.backend import LocalBackend
from core.contracts.agents import ModelSettings
from core.contracts.clock import Clock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE
from core.contracts.sandbox import Sandbox
from core.contracts.secrets import Redactor
from core.contracts.tools import Toolset
from core.engines.embedded import EmbeddedEngine
from core.memory.store import GitMemoryStore
from core.models.demo import DemoModel
from core.models.direct import DirectClient
from core.models.litellm_client import LiteLLMClient
from core.models.routing import ModelRouter
from core.permissions.policy import RulePolicy
from core.sandbox.detection import open_sandbox
from core.sandbox.paths import BeneathFiles
from core.sandbox.workspaces import make_workspace
from core.stores.connection import Database
from core.stores.directory_lock import DirectoryLock
from core.stores.sql import Stores, sql_stores
from core.stores.work_items import SqlWorkItems
from core.tools.locks import WorkspaceLocks
from core.tools.output import clean_text
from core.tools.overflow import OverflowFiles
from core.tools.shell import ShellSettings
from core.tools.toolsets import ToolPorts, default_toolset
from core.tools.wrappers import perform
from core.turns.loop import TurnLoop
from core.turns.services import TurnLimits, TurnServices


@asynccontextmanager
async def open_host(settings: Settings, *, clock: Clock, redactor: Redactor, channels: bool) -> AsyncIterator[Host]:
    """Open everything a host stands on, and close it in reverse order.

    Args:
        settings: A valid configuration.
        clock: The host's time.
        redactor: Knows every secret of the configuration already.
        channels: Whether to build the configured platforms; false for a command's own host.

    Raises:
        UnusableFolder, DirectoryInUse, StoreError: The host cannot start; nothing is left open.
    """
    data_dir = settings.host.data_dir
    async with AsyncExitStack() as stack:
        open_data_dir(data_dir)
        stack.enter_context(DirectoryLock(data_dir))
        database = await asyncio.to_thread(Database.open, data_dir / "host.db")
        stack.push_async_callback(database.close)
        engine = EmbeddedEngine(SqlWorkItems(database), clock)
        stores = sql_stores(database, submit=engine.submit, clock=clock)
        memory = GitMemoryStore(data_dir / "memory", clock, redactor.mask)
        sandbox = await open_sandbox(settings.sandbox.kind, scratch=data_dir / "scratch")
        model = await stack.enter_async_context(_models(settings, redactor))
        backend = await stack.enter_async_context(
            LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=redactor.mask)
        )
        await ensure_agents(settings, backend, partial(make_workspace, report=sandbox.report))
        local_and_platforms = await stack.enter_async_context(_channels(settings, clock, redactor, platforms=channels))
        yield assemble(
            settings,
            Parts(
                clock=clock,
                redactor=redactor,
                engine=engine,
                stores=stores,
                memory=memory,
                sandbox=sandbox,
                model=model,
                backend=backend,
                channels=local_and_platforms,
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChannels:
    """The local channels, and the platforms that are configured."""

    web: FeedChannel
    terminal: FeedChannel
    headless: FeedChannel
    platforms: tuple[Channel, ...]

    @property
    def by_name(self) -> dict[str, Channel]:
        """All channels by name."""
        return {channel.name: channel for channel in (self.web, self.terminal, self.headless, *self.platforms)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What is open when the host is assembled."""

    clock: Clock
    redactor: Redactor
    engine: EmbeddedEngine
    stores: Stores
    memory: GitMemoryStore
    sandbox: Sandbox
    model: ModelRouter
    backend: LocalBackend
    channels: HostChannels


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desks:
    """What several parts of the application ask."""

    zone: ZoneInfo
    access: AccessDesk
    pairings: PairingDesk
    decisions: DecisionDesk
    bus: TurnBus


def assemble(settings: Settings, parts: Parts) -> Host:
    """Put a host together from open parts; does no I/O."""
    desks = _desks(settings, parts)
    worker = _worker(settings, parts, desks)
    router = _router(settings, parts, desks, worker)
    deliverer = Deliverer(
        store=parts.stores.delivery,
        channels=parts.channels.by_name,
        clock=parts.clock,
        card_failed=desks.decisions.card_failed,
        mask=parts.redactor.mask,
    )
    sink = InboxSink(router, parts.stores.delivery, parts.channels.by_name, _cleaner(parts.redactor))
    health = Health(
        transcripts=parts.stores.transcripts,
        sink=sink,
        sandbox=parts.sandbox,
        channels=parts.channels.by_name,
    )
    return Host(
        settings=settings,
        api=_api(parts, desks, health),
        engine=parts.engine,
        handlers={
            INBOX_QUEUE: router.route_address,
            CONVERSATION_QUEUE: worker.advance,
            OUTBOX_QUEUE: deliverer.deliver_chat,
        },
        worker=worker,
        router=router,
        deliverer=deliverer,
        sink=sink,
        channels=parts.channels.by_name,
        web=parts.channels.web,
        terminal=parts.channels.terminal,
        warm=partial(parts.model.warm, [agent_model(settings, agent) for agent in settings.agents.values()]),
        health=health,
        sandbox=parts.sandbox,
        redactor=parts.redactor,
        clock=parts.clock,
    )


def _desks(settings: Settings, parts: Parts) -> _Desks:
    zone = ZoneInfo(settings.host.time_zone)
    access = AccessDesk(parts.stores.people, access_rules(settings))
    return _Desks(
        zone=zone,
        access=access,
        pairings=PairingDesk(people=parts.stores.people, access=access, clock=parts.clock),
        decisions=DecisionDesk(
            ledger=parts.stores.ledger,
            delivery=parts.stores.delivery,
            people=parts.stores.people,
            approvers=tuple(settings.permissions.approvers),
            clock=parts.clock,
            zone=zone,
            clean=_cleaner(parts.redactor),
        ),
        bus=TurnBus(),
    )


def _worker(settings: Settings, parts: Parts, desks: _Desks) -> ConversationWorker:
    return ConversationWorker(
        WorkerPorts(
            backend=parts.backend,
            ledger=parts.stores.ledger,
            delivery=parts.stores.delivery,
            memory=parts.memory,
            loop=_loop(settings, parts, desks),
            access=desks.access,
            decisions=desks.decisions,
            openings=Openings(
                backend=parts.backend, clock=parts.clock, zone=desks.zone, clean=_cleaner(parts.redactor)
            ),
            channels=parts.channels.by_name,
            toolsets={"default": _toolset(settings, parts)},
            clock=parts.clock,
            bus=desks.bus,
            mask=parts.redactor.mask,
            conceal=lambda text: parts.redactor.stream().feed(text),
            remind_after=settings.permissions.remind_after,
        )
    )


def _api(parts: Parts, desks: _Desks, health: Health) -> HostService:
    stores = parts.stores
    headless = Headless(
        backend=parts.backend,
        transcripts=stores.transcripts,
        ledger=stores.ledger,
        delivery=stores.delivery,
        access=desks.access,
        channel=parts.channels.headless,
        bus=desks.bus,
        redactor=parts.redactor,
    )
    return HostService(
        ServicePorts(
            backend=parts.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            memory=parts.memory,
            access=desks.access,
            decisions=desks.decisions,
            pairings=desks.pairings,
            headless=headless,
            readiness=health.checks,
            mask=parts.redactor.mask,
        )
    )


def _loop(settings: Settings, parts: Parts, desks: _Desks) -> TurnLoop:
    data_dir = settings.host.data_dir
    doubts = MemoryDoubts(parts.memory, parts.stores.ledger)
    return TurnLoop(
        TurnServices(
            backend=parts.backend,
            ledger=parts.stores.ledger,
            policy=RulePolicy(settings.permissions.rules),
            perform=partial(perform, redactor=parts.redactor, overflow=OverflowFiles(parts.redactor)),
            doubt=doubts.question,
            locks=WorkspaceLocks(),
            host=ChatTurnHost(
                access=desks.access,
                delivery=parts.stores.delivery,
                channels=parts.channels.by_name,
                zone=desks.zone,
                overflow_root=data_dir / "overflow",
                forbidden=(data_dir,),
                mask=parts.redactor.mask,
            ),
            clock=parts.clock,
            limits=TurnLimits(approval_deadline=settings.permissions.deadline),
        )
    )


def _toolset(settings: Settings, parts: Parts) -> Toolset:
    doubts = MemoryDoubts(parts.memory, parts.stores.ledger)
    return default_toolset(
        ToolPorts(
            sandbox=parts.sandbox,
            files=BeneathFiles,
            memory=parts.memory,
            redactor=parts.redactor,
            overflow=OverflowFiles(parts.redactor),
            clock=parts.clock,
            was_approved=doubts.was_approved,
            shell=ShellSettings(network=settings.sandbox.network is NetworkAccess.FULL),
        )
    )


def _router(settings: Settings, parts: Parts, desks: _Desks, worker: ConversationWorker) -> Router:
    stores = parts.stores
    commands = CommandDesk(
        CommandPorts(
            backend=parts.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            memory=MemoryCommands(parts.memory),
            clock=parts.clock,
            wake_cancel=worker.wake_cancel,
            pair=desks.pairings.accept,
            decisions=desks.decisions,
        )
    )
    presses = PressDesk(
        decisions=desks.decisions,
        ledger=stores.ledger,
        backend=parts.backend,
        delivery=stores.delivery,
        memory=parts.memory,
        channels=parts.channels.by_name,
    )
    return Router(
        RouterPorts(
            backend=parts.backend,
            delivery=stores.delivery,
            access=desks.access,
            commands=commands,
            presses=presses,
            pairings=desks.pairings,
            channels=parts.channels.by_name,
            agents=agents_of_channels(settings),
            clock=parts.clock,
        )
    )


@asynccontextmanager
async def _models(settings: Settings, redactor: Redactor) -> AsyncIterator[ModelRouter]:
    """Give a router over every way to a model, and close their connections afterwards."""

    def resolve_key(model: ModelSettings) -> str | None:
        key = settings.models[model.name].api_key
        return key.reveal() if key is not None else None

    direct = DirectClient(resolve_key=resolve_key, mask=redactor.mask)
    litellm = LiteLLMClient(resolve_key=resolve_key, mask=redactor.mask)
    try:
        yield ModelRouter(direct=direct, litellm=litellm, scripted={"demo": DemoModel()})
    finally:
        await direct.aclose()
        await litellm.aclose()


@asynccontextmanager
async def _channels(
    settings: Settings, clock: Clock, redactor: Redactor, *, platforms: bool
) -> AsyncIterator[HostChannels]:
    """Give the local channels and, where wanted, the configured platforms; close them afterwards."""
    async with AsyncExitStack() as stack:
        configured: list[Channel] = []
        telegram = settings.channels.telegram
        if platforms and telegram is not None:
            # Half a second that nobody without a Telegram channel should pay.
            from channels.telegram.adapter import TelegramChannel

            channel = TelegramChannel(
                token=telegram.token.reveal(), api_base=telegram.api_base, clock=clock, mask=redactor.mask
            )
            configured.append(await stack.enter_async_context(channel))
        yield HostChannels(
            web=FeedChannel("web", clock),
            terminal=FeedChannel("terminal", clock),
            headless=FeedChannel(HEADLESS, clock),
            platforms=tuple(configured),
        )


def _cleaner(redactor: Redactor) -> Callable[[str], str]:
    """Return what inbound text goes through before it is stored or sent: cleaned, then masked."""
    return lambda text: redactor.mask(clean_text(text))
