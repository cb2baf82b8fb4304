"""What people see of an agent at work: the line below a thread, its session, prompts to begin with.

All of it is pleasant to have and no more: an app or a workspace may be without it, so a method that
Slack refuses is tried no further, and what fails is never anybody's concern.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from channels.chunking import safe_end
from channels.contract import TextUnit
from channels.slack.errors import MessageGone, NotInChannel, ThreadGone
from channels.slack.limits import PROMPTS_LIMIT, SESSION_TITLE_LIMIT_CHARS, STATUS_LIMIT_CHARS
from channels.slack.mrkdwn import defused, encodable
from channels.slack.transport import SlackApi
from core.contracts.addresses import Address
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendRejected

logger = logging.getLogger(__name__)

_ONLY_HERE = (MessageGone, NotInChannel, ThreadGone)
"""Refusals that say nothing about other places."""
_NO_SESSION = "session_not_found"
"""docs.slack.dev/reference/methods/agents.sessions.rename: it begins with the first status of it."""
_MOST_UNTITLED = 500


@dataclass(slots=True)
class _Ability:
    """Whether a method can be used, as far as it was tried."""

    is_refused: bool = False
    not_before: float = 0.0


class Statuses:
    """Shows what an agent does, in threads. No method raises `ChannelError`."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._abilities: dict[tuple[str, str], _Ability] = {}
        self._titles: OrderedDict[Address, str] = OrderedDict()
        """Of sessions that have to begin first."""

    async def show(self, address: Address, status: str) -> None:
        """Show a line below a thread, as `is <status>…` behind the app's name; empty clears it."""
        if address.thread is not None:
            line = f"is {_clipped(defused(status), STATUS_LIMIT_CHARS)}…" if status else ""
            await self._try("status", address.chat, partial(self._api.set_status, address.chat, address.thread, line))

    async def begin(self, address: Address) -> None:
        """Let the session of a thread be at work; Slack shows a button that stops it."""
        if address.thread is None:
            return
        call = partial(self._api.set_session, address.chat, address.thread, "processing")
        if await self._try("session", address.chat, call) and address in self._titles:
            await self._rename(address, address.thread)

    async def end(self, address: Address) -> None:
        """Let the session of a thread wait for its people."""
        if address.thread is not None:
            await self._try(
                "session", address.chat, partial(self._api.set_session, address.chat, address.thread, "active")
            )

    async def entitle(self, address: Address, title: str) -> None:
        """Give the session of a thread a title, its first line cut to what fits; now, or when it begins."""
        first = _clipped(next(iter(encodable(title).strip().splitlines()), ""), SESSION_TITLE_LIMIT_CHARS)
        if address.thread is not None and first:
            # Before the call: the session may begin while it is under way.
            self._titles[address] = first
            while len(self._titles) > _MOST_UNTITLED:
                self._titles.popitem(last=False)
            await self._rename(address, address.thread)

    async def suggest(self, channel: str, prompts: Sequence[str]) -> None:
        """Offer what people may ask in a direct channel, the first four of `prompts`."""
        shown = [(prompt, prompt) for prompt in map(str.strip, prompts) if prompt][:PROMPTS_LIMIT]
        if shown:
            await self._try("prompts", channel, partial(self._api.suggest, channel, shown))

    async def _rename(self, address: Address, thread: str) -> None:
        title = self._titles[address]
        if await self._try("title", address.chat, partial(self._api.rename_session, address.chat, thread, title)):
            self._titles.pop(address, None)

    async def _try(self, name: str, channel: str, call: Callable[[], Awaitable[None]]) -> bool:
        """Make a call, unless Slack refused the like of it in that kind of channel, or asked to wait; tell success."""
        ability = self._abilities.setdefault((name, channel[:1]), _Ability())
        if ability.is_refused or self._clock.monotonic() < ability.not_before:
            return False
        try:
            await call()
        except SendLimited as error:
            ability.not_before = self._clock.monotonic() + error.retry_after.total_seconds()
        except SendRejected as error:
            ability.is_refused = not _says_nothing_elsewhere(error)
            event = "slack_status_refused" if ability.is_refused else "slack_status_failed"
            logger.info(event, extra={"what": name, "detail": error.detail})
        except ChannelError as error:
            logger.debug("slack_status_failed", extra={"what": name, "reason": type(error).__name__})
        else:
            return True
        return False


def _says_nothing_elsewhere(error: SendRejected) -> bool:
    return isinstance(error, _ONLY_HERE) or error.detail.startswith(_NO_SESSION)


def _clipped(text: str, limit_chars: int) -> str:
    return text if len(text) <= limit_chars else f"{text[: safe_end(text, limit_chars - 1, TextUnit.CHARS)]}…"
