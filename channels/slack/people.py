"""Who people are, as the workspace knows them: asked once, and remembered for a while."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from channels.slack.payload import Json, item, text
from channels.slack.transport import SlackApi
from core.contracts.addresses import Sender
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendRejected

logger = logging.getLogger(__name__)

REMEMBERED_FOR = timedelta(minutes=10)
ASK_AGAIN_AFTER = timedelta(minutes=1)
"""After an answer that did not come."""
PATIENCE_SECONDS = 1.5
"""How long an event may wait for a name, of the machine's own time: Slack wants its acknowledgement within 3."""
_MOST_KNOWN = 2_000


@dataclass(frozen=True, slots=True)
class _Known:
    """What Slack said, None where it did not, and until when that holds, in seconds of the clock."""

    found: Json | None
    until: float


@dataclass(frozen=True, slots=True)
class _Question:
    """A question that is under way, and until when it is waited for, in seconds of the machine's own time."""

    task: asyncio.Task[None]
    patience_ends: float


class People:
    """Answers who somebody is. What Slack does not tell in time is left out: an event never waits for a name long."""

    def __init__(
        self, api: SlackApi, clock: Clock, *, name: str, team: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._api = api
        self._clock = clock
        self._name = name
        self._team = team
        self._patience_seconds = patience_seconds
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, _Question] = {}

    async def sender(self, user: str, *, team: str = "", name: str = "") -> Sender:
        """Return a person by their id; `team` and `name` are what the event itself says."""
        person, groups = await asyncio.gather(self._person(user), self._groups_of(user))
        own_team = text(person, "team_id") or team or self._team
        is_guest = bool(person.get("is_restricted") or person.get("is_ultra_restricted")) or own_team != self._team
        return Sender(
            identity=f"{self._name}:{own_team}/{user}",
            name=_name_of(person) or name or user,
            is_bot=person.get("is_bot") is True,
            is_guest=is_guest,
            roles=tuple(f"{self._name}:{group}" for group in groups),
        )

    async def name(self, user: str) -> str:
        """Return what somebody is called; their id where that is not known."""
        return _name_of(await self._person(user)) or user

    def bot(self, bot: str, name: str) -> Sender:
        """Return another bot, which posts under an id of its own."""
        return Sender(identity=f"{self._name}:{self._team}/{bot}", name=name or bot, is_bot=True)

    async def _person(self, user: str) -> Json:
        return await self._ask(f"user/{user}", lambda: self._api.user(user)) or {}

    async def room(self, channel: str) -> Json:
        """Return a channel as conversations.info shows it; empty where that is not known."""
        return await self._ask(f"room/{channel}", lambda: self._api.channel(channel)) or {}

    async def _groups_of(self, user: str) -> tuple[str, ...]:
        members = await self._ask("groups", self._user_groups) or {}
        return tuple(members.get(user, ()))

    async def _user_groups(self) -> Json:
        """Return the ids of the groups of each member."""
        members: Json = {}
        for group in await self._api.user_groups():
            users = group.get("users")
            for user in users if isinstance(users, list) else ():
                members.setdefault(str(user), []).append(text(group, "id"))
        return members

    async def _ask(self, key: str, call: Callable[[], Awaitable[Json]]) -> Json | None:
        known = self._known.get(key)
        if known is None or known.until <= self._clock.monotonic():
            await self._settled(self._asked(key, call))
            known = self._known.get(key)
        return None if known is None else known.found

    def _asked(self, key: str, call: Callable[[], Awaitable[Json]]) -> _Question:
        """Return the one question that is under way for a key."""
        if key not in self._asking:
            task = asyncio.create_task(self._fetch(key, call), name=f"slack-{key}")
            self._asking[key] = _Question(task, asyncio.get_running_loop().time() + self._patience_seconds)
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return self._asking[key]

    async def _settled(self, question: _Question) -> None:
        """Return when the answer is noted, or patience is over; it is noted later then."""
        left = question.patience_ends - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({question.task}, timeout=max(0.0, left))
        if done and not question.task.cancelled():
            question.task.result()

    async def _fetch(self, key: str, call: Callable[[], Awaitable[Json]]) -> None:
        before = self._known.get(key)
        found, holds = None, ASK_AGAIN_AFTER
        try:
            found, holds = await call(), REMEMBERED_FOR
        except ChannelError as error:
            logger.info("slack_not_told", extra={"what": key.partition("/")[0], "detail": error.detail})
            # A no of Slack's counts; where it only cannot be asked now, what it said last holds on.
            found = before.found if before is not None and not isinstance(error, SendRejected) else None
        self._known[key] = _Known(found, self._clock.monotonic() + holds.total_seconds())
        self._known.move_to_end(key)
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    async def aclose(self) -> None:
        """End what is being asked."""
        tasks = tuple(question.task for question in self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _name_of(person: Json) -> str:
    profile = item(person, "profile")
    names = (text(profile, "display_name"), text(person, "real_name"), text(profile, "real_name"), text(person, "name"))
    return next((name for name in names if name.strip()), "")
