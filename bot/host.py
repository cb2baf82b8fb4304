"""A host put together; `bot.wiring` makes it, `bot.app` runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass

from bot.alerts import OwnerAlerts
from bot.config.model import Settings
from bot.conversations.outbox import Deliverer
from bot.conversations.router import Router
from bot.conversations.worker import ConversationWorker
from bot.health import Health
from bot.host_service import HostService
from bot.metrics import HostMetrics
from bot.reload import ReloadReport
from bot.retention import Retention
from bot.session_api import SessionApi
from bot.watch import ChannelWatch
from channels.contract import Asgi, Channel, Sink
from channels.feed import FeedChannel
from core.contracts.clock import Clock
from core.contracts.engine import Engine, Handler
from core.contracts.sandbox import Sandbox
from core.contracts.secrets import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host put together: what runs, and what the console and the command line may ask."""

    settings: Settings
    api: HostService
    sessions: SessionApi
    engine: Engine
    handlers: Mapping[str, Handler]
    worker: ConversationWorker
    router: Router
    deliverer: Deliverer
    sink: Sink
    channels: Mapping[str, Channel]
    webhooks: Mapping[str, Asgi]
    """What platforms call, by the address to listen on."""
    web: FeedChannel
    terminal: FeedChannel
    warm: Callable[[], Coroutine[None, None, None]]
    health: Health
    metrics: HostMetrics
    alerts: OwnerAlerts
    watch: ChannelWatch
    draw_homes: Callable[[], Coroutine[None, None, None]]
    """Draws home screens again that have changed, until cancelled."""
    retention: Retention
    reload: Callable[[], Awaitable[ReloadReport]]
    sandbox: Sandbox
    redactor: Redactor
    clock: Clock
