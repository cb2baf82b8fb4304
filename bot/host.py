"""A host put together; `bot.wiring` makes it, `bot.app` runs it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

from bot.config.model import Settings
from bot.conversations.outbox import Deliverer
from bot.conversations.router import InboxSink, Router
from bot.conversations.worker import ConversationWorker
from bot.health import Health
from bot.host_service import HostService
from channels.contract import Channel
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
    engine: Engine
    handlers: Mapping[str, Handler]
    worker: ConversationWorker
    router: Router
    deliverer: Deliverer
    sink: InboxSink
    channels: Mapping[str, Channel]
    web: FeedChannel
    terminal: FeedChannel
    warm: Callable[[], Coroutine[None, None, None]]
    health: Health
    sandbox: Sandbox
    redactor: Redactor
    clock: Clock
