"""The platform roles of people in groups: asked of Telegram, kept for a while, never waited for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from channels.supervision import guarded
from channels.telegram.inbound_members import roles_of_members
from channels.telegram.limits import Timing
from channels.telegram.places import number
from channels.telegram.transport import BotApi
from core.contracts.addresses import InboundEvent, MembershipBody, MigrationBody, Privacy
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited

logger = logging.getLogger(__name__)

GROUPS_LIMIT = 1_000
"""Ours: above this many groups the one that was silent for longest is forgotten."""

REQUESTS_AT_ONCE = 8
"""Ours: an eighth of the connections, so that a start among many groups holds up nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What Telegram answered: roles by identity, and when."""

    roles: Mapping[str, tuple[str, ...]]
    at: datetime
    at_monotonic: float


@dataclass(slots=True, eq=False)
class _Group:
    """One group. Times are seconds of the clock's monotonic time."""

    known: _Known | None = None
    asking: asyncio.Task[None] | None = None
    waited: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request has ended, or was waited for long enough."""
    has_changed: bool = False
    """Its members changed after the request went out: the answer may be an old one."""
    next_at: float = 0.0
    """When the next request may go out."""
    failed_until: float = 0.0
    is_failing: bool = False


class Administrators:
    """Adds the roles `<channel>:owner` and `<channel>:administrator` to the senders of a group's events.

    What Telegram answers is kept for some minutes, and forgotten when an update tells that the
    group's members changed. Roles come in time or not at all: an event waits for two seconds at
    most, counted from the request, and goes on without roles when there is no answer by then,
    while the request goes on for those that follow. After a failure a group is not asked about for
    a minute. A 429 stops the requests about all groups for as long as it says, and nothing else:
    Telegram limits each method by itself, and asking posts nothing, so the chats' pace is not used.

    Bots have no roles, because Telegram leaves other bots out; nor has a chat in whose name
    somebody writes, but for an anonymous administrator, see `inbound_senders.sender_of`. Who is
    an anonymous administrator presses buttons under their own name, and Telegram may then not
    name them to a bot that is no administrator itself: such a press comes without roles.

    Enter it to use it; leaving ends what is under way and forgets everything.
    """

    def __init__(
        self, api: BotApi, *, channel: str, clock: Clock, timing: Timing, groups_limit: int = GROUPS_LIMIT
    ) -> None:
        self._groups_limit = groups_limit
        self._api = api
        self._channel = channel
        self._clock = clock
        self._timing = timing
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._limited_until = 0.0
        self._groups: dict[str, _Group] = {}
        """By chat id, the one that was silent for longest first."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [group.asking for group in self._groups.values() if group.asking is not None]
        self._groups.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, chats: Iterable[str]) -> None:
        """Take what is known of these chats as outdated."""
        for chat in chats:
            if (group := self._groups.get(chat)) is not None:
                group.known = None
                group.has_changed = True

    def expect(self, event: InboundEvent) -> None:
        """Ask about an event's group, if that is needed, before `with_roles` waits for the answer."""
        if _comes_from_a_person_in_a_group(event):
            self._group(event.address.chat)

    async def with_roles(self, event: InboundEvent) -> InboundEvent:
        """Return the event with the roles of its sender; as it is where there are none, or none are known in time."""
        if not _comes_from_a_person_in_a_group(event):
            return event
        group = self._group(event.address.chat)
        if group is not None and group.asking is not None:
            await group.waited.wait()
        if group is None or group.known is None:
            return event
        roles = group.known.roles.get(event.sender.identity, ())
        return replace(event, sender=replace(event.sender, roles=roles))

    def _group(self, chat: str) -> _Group | None:
        """Return a group, which is asked about unless it is known or must not be asked about; None: no room."""
        group = self._groups.pop(chat, None)
        if group is None:
            if len(self._groups) >= self._groups_limit and not self._forget_silent():
                return None
            group = _Group()
        self._groups[chat] = group
        if group.known is not None and not self._is_fresh(group.known):
            group.known = None
        now = self._clock.monotonic()
        if group.known is None and group.asking is None and max(group.failed_until, self._limited_until) <= now:
            group.waited = asyncio.Event()
            group.asking = asyncio.create_task(self._ask(chat, group))
            group.asking.add_done_callback(lambda _: _end(group))
        return group

    def _forget_silent(self) -> bool:
        """Make room for a group; return whether there was one that is not being asked about."""
        silent = next((chat for chat, group in self._groups.items() if group.asking is None), None)
        return silent is not None and self._groups.pop(silent, None) is not None

    def _is_fresh(self, known: _Known) -> bool:
        # A machine that was suspended has seen no time pass but on the wall.
        elapsed = timedelta(seconds=self._clock.monotonic() - known.at_monotonic)
        return max(elapsed, self._clock.now() - known.at) < self._timing.roles_kept

    async def _ask(self, chat: str, group: _Group) -> None:
        """Ask until there is an answer that is not outdated, or no answer."""
        async with asyncio.TaskGroup() as tasks:
            patience = tasks.create_task(self._lose_patience(group.waited))
            is_answered = True
            while is_answered and group.known is None:
                await self._clock.sleep(timedelta(seconds=group.next_at - self._clock.monotonic()))
                async with self._slots:
                    is_answered = await self._request(chat, group)
            patience.cancel()

    async def _lose_patience(self, waited: asyncio.Event) -> None:
        await self._clock.sleep(self._timing.roles_patience)
        waited.set()

    async def _request(self, chat: str, group: _Group) -> bool:
        """Make one request and note what comes of it; return whether it was answered."""
        now = self._clock.monotonic()
        if self._limited_until > now:
            return False
        group.has_changed = False
        group.next_at = now + self._timing.roles_interval.total_seconds()
        roles = await self._answer(chat, group)
        now = self._clock.monotonic()
        group.is_failing = roles is None
        if roles is None:
            group.failed_until = now + self._timing.roles_retry.total_seconds()
        elif not group.has_changed:
            group.known = _Known(roles=roles, at=self._clock.now(), at_monotonic=now)
        return roles is not None

    async def _answer(self, chat: str, group: _Group) -> Mapping[str, tuple[str, ...]] | None:
        """Return the roles of a group's people by identity; None after a failure, the first of which is told."""
        told = "telegram_administrators_crashed"
        try:
            asked = self._api.administrators(number(chat))
            members = await guarded(asked, unless=ChannelError, told=told, channel=self._channel)
        except ChannelError as error:
            if isinstance(error, SendLimited):
                limited_until = self._clock.monotonic() + error.retry_after.total_seconds()
                self._limited_until = max(self._limited_until, limited_until)
            if not group.is_failing:
                facts = {"channel": self._channel, "chat": chat, "detail": error.detail}
                logger.warning("telegram_administrators_unknown", extra=facts)
            return None
        return None if members is None else roles_of_members(members, self._channel)


def _end(group: _Group) -> None:
    group.asking = None
    group.waited.set()


def _comes_from_a_person_in_a_group(event: InboundEvent) -> bool:
    """Whether its sender may have roles, and the bot may ask: it may not in a group it has left or that has moved."""
    match event.body:
        case MigrationBody() | MembershipBody(present=False):
            return False
        case _:
            # Ids of chats in whose name somebody writes are negative.
            is_user = event.sender.identity.rpartition(":")[2].isdecimal()
            return is_user and not event.sender.is_bot and event.privacy is not Privacy.DIRECT
