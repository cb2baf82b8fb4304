"""What is open when a host is assembled, and what several of its parts ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from bot.conversations.access import AccessDesk
from bot.conversations.answers import Answers
from bot.conversations.groups import GroupDesk
from bot.conversations.home import HomeDesk
from bot.conversations.observer import TurnBus
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk
from bot.conversations.sessions.books import SessionBooks
from bot.metrics import HostMetrics
from bot.reload import ReloadReport
from channels.contract import Asgi, Channel, Diagnosable, HomeScreen
from channels.feed import FeedChannel
from core.backends.local.backend import LocalBackend
from core.contracts.clock import Clock
from core.contracts.sandbox import Sandbox
from core.contracts.secrets import Redactor
from core.contracts.speech import Transcriber
from core.engines.embedded import EmbeddedEngine
from core.memory.store import GitMemoryStore
from core.models.routing import ModelRouter
from core.stores.sql import Stores
from core.tools.output import clean_text

LOCAL = ("web", "terminal", "headless", "session")
"""The channels of this machine."""

Diagnosed = Callable[[], AbstractAsyncContextManager[Mapping[str, Diagnosable]]]
"""Gives the configured platforms for the doctor: those that run, or opened for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostChannels:
    """The local channels, and the platforms that this host connects."""

    web: FeedChannel
    terminal: FeedChannel
    headless: FeedChannel
    session: FeedChannel
    platforms: tuple[Channel, ...]
    webhooks: Mapping[str, Asgi] = field(default_factory=dict)
    """By the address to listen on, such as `127.0.0.1:8788`."""
    diagnosable: Mapping[str, Diagnosable] = field(default_factory=dict)
    """The platforms that can prove themselves, by name."""
    screens: Mapping[str, HomeScreen] = field(default_factory=dict)
    """The platforms where each person has a screen of the agent's own, by name."""

    @property
    def by_name(self) -> dict[str, Channel]:
        """All channels by name."""
        local = (self.web, self.terminal, self.headless, self.session)
        return {channel.name: channel for channel in (*local, *self.platforms)}


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
    transcriber: Transcriber | None
    reload: Callable[[], Awaitable[ReloadReport]]
    diagnosed: Diagnosed

    def clean(self, text: str) -> str:
        """Return inbound text as it may be stored and sent: cleaned, then masked."""
        return self.redactor.mask(clean_text(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Desks:
    """What several parts of the application ask."""

    zone: ZoneInfo
    access: AccessDesk
    pairings: PairingDesk
    decisions: DecisionDesk
    groups: GroupDesk
    home: HomeDesk
    answers: Answers
    books: SessionBooks
    metrics: HostMetrics
    bus: TurnBus
