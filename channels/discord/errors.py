"""Discord's refusals, translated once into the errors that every channel raises.

Codes: docs.discord.com/developers/topics/opcodes-and-status-codes#json, read on 2026-11-30.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import httpx

from core.contracts.errors import (
    ChannelDown,
    ChannelError,
    SendLimited,
    SendRejected,
    SendUnknown,
    TextTooLong,
)

RETRY_SOON = timedelta(seconds=2)
"""When to try again what did surely not take effect, or takes effect only once."""

BAN_WITHOUT_TIME = timedelta(seconds=60)
"""How long to keep quiet when not Discord but what stands before it refuses, and names no time."""

_LIMIT_WITHOUT_TIME = timedelta(seconds=5)
_LONGEST_LIMIT = timedelta(days=30)
_DETAIL_CHARS = 300

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.WriteTimeout)
"""No connection stood, or the request did not leave whole: it cannot have been carried out."""


class MessageGone(SendRejected):
    """The message is not there any more."""


class PlaceGone(SendRejected):
    """The channel or thread is not there any more."""


class NotInGuild(SendRejected):
    """The bot is in no such guild."""


class ThreadExists(SendRejected):
    """The message has a thread already; its id is the message's."""


class ThreadArchived(SendRejected):
    """The thread is archived: nothing in it can be changed until it is opened again."""


class ReactionGone(SendRejected):
    """There is no such reaction, or no such emoji."""


class InteractionGone(SendRejected):
    """A press or command can be answered no more: it is older than Discord waits, or unknown."""


class InteractionAnswered(SendRejected):
    """A press or command was answered already."""


class OldEditsLimited(SendLimited):
    """Messages that are older than an hour were edited too often; others are not concerned."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a code means; `words` say it to people."""

    error: type[ChannelError]
    words: str = ""


_MEANINGS: Mapping[int, _Meaning] = {
    10003: _Meaning(PlaceGone, "there is no such channel any more"),
    10004: _Meaning(NotInGuild, "the bot is not in that server"),
    10008: _Meaning(MessageGone, "the message is not there any more"),
    10014: _Meaning(ReactionGone, "Discord does not know this emoji"),
    10015: _Meaning(InteractionGone),
    10062: _Meaning(InteractionGone),
    30010: _Meaning(SendRejected, "the message has as many reactions as Discord allows"),
    30033: _Meaning(SendRejected, "the server has as many open threads as Discord allows"),
    40005: _Meaning(SendRejected, "the file is too large for Discord"),
    40060: _Meaning(InteractionAnswered),
    50001: _Meaning(SendRejected, "the bot cannot see the channel: it needs the permission View Channel"),
    50007: _Meaning(SendRejected, "the person takes no direct messages from the bot"),
    50008: _Meaning(SendRejected, "no messages can be sent to such a channel"),
    50013: _Meaning(SendRejected, "the bot lacks a permission there"),
    50027: _Meaning(InteractionGone),
    50083: _Meaning(ThreadArchived, "the thread is archived"),
    90001: _Meaning(SendRejected, "the person has blocked the bot from reacting"),
    160004: _Meaning(ThreadExists),
    160005: _Meaning(SendRejected, "the thread is locked"),
    160006: _Meaning(SendRejected, "the server has as many open threads as Discord allows"),
    200000: _Meaning(SendRejected, "the server's automatic moderation blocked the message"),
    200001: _Meaning(SendRejected, "the server's automatic moderation blocked the title"),
    240000: _Meaning(SendRejected, "Discord blocked the message for a harmful link"),
}

_OLD_EDITS = 30046
_LIMITS = frozenset({_OLD_EDITS, 20016, 20028, 20029})
"""Edits of old messages; slowmode; writes to a channel and to a server."""

_TOO_LONG = "BASE_TYPE_MAX_LENGTH"
_EMPTY_ANSWER = "the answer is none of Discord's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A 429: for how long, and whether for everything the bot does."""

    retry_after: timedelta
    everywhere: bool


def limit_of(response: httpx.Response) -> Limit:
    """Read how long a 429 asks to wait, and where.

    One that is no JSON comes from what stands before Discord and concerns the whole host.
    """
    body = _json(response)
    if not isinstance(body, dict):
        return Limit(retry_after=_duration(response.headers.get("retry-after"), BAN_WITHOUT_TIME), everywhere=True)
    named = body.get("retry_after", response.headers.get("retry-after"))
    is_global = body.get("global") is True or response.headers.get("x-ratelimit-global") == "true"
    return Limit(retry_after=_duration(named, _LIMIT_WITHOUT_TIME), everywhere=is_global)


def is_old_edits_limit(response: httpx.Response) -> bool:
    """Return whether a refusal is about edits of old messages, and about no budget of the route."""
    return _code(_json(response)) == _OLD_EDITS


def unreached(error: httpx.HTTPError, mask: Callable[[str], str]) -> ChannelError:
    """Return what a failed request means; `SendLimited` where it surely had no effect."""
    detail = _short(mask(f"{type(error).__name__}: {error}"))
    if isinstance(error, _NEVER_SENT):
        return SendLimited(f"Discord cannot be reached: {detail}", retry_after=RETRY_SOON)
    return SendUnknown(f"the answer was lost: {detail}")


def refusal_of(response: httpx.Response, mask: Callable[[str], str]) -> ChannelError:
    """Return what an answer means that is not a success; an outcome counts as known only where it surely is.

    5xx is `SendUnknown`.
    """
    body = _json(response)
    if response.is_server_error or response.is_redirect:
        return SendUnknown(f"Discord answered {response.status_code}")
    return _refusal(response, body, mask) if isinstance(body, dict) else _refusal_on_the_way(response)


def _refusal(response: httpx.Response, body: Mapping[str, Any], mask: Callable[[str], str]) -> ChannelError:
    """Return what Discord's own refusal means."""
    detail = _short(mask(_wording(body, response.status_code)))
    code = _code(body)
    meaning = _MEANINGS.get(code)
    if response.status_code == HTTPStatus.TOO_MANY_REQUESTS or code in _LIMITS:
        limited = OldEditsLimited if code == _OLD_EDITS else SendLimited
        return limited(detail, retry_after=limit_of(response).retry_after)
    if meaning is not None:
        return meaning.error(f"{meaning.words} ({detail})" if meaning.words else detail)
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        return ChannelDown(f"the bot token is refused: {detail}")
    is_long_text = any(_is_long_text(path, name) for path, name, _ in _form_errors(body))
    return (TextTooLong if is_long_text else SendRejected)(detail)


def no_json(response: httpx.Response) -> SendUnknown:
    """Return what a success means that holds no JSON: a captive portal, a proxy's page."""
    return SendUnknown(f"{_EMPTY_ANSWER} ({response.status_code}, {response.headers.get('content-type', 'no type')!r})")


def _refusal_on_the_way(response: httpx.Response) -> ChannelError:
    """Return what a refusal means that is none of Discord's words: nothing was carried out."""
    status = response.status_code
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return SendRejected("the file is too large for Discord")
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_TIMEOUT}:
        wait = _duration(response.headers.get("retry-after"), BAN_WITHOUT_TIME)
        return SendLimited(f"refused on the way to Discord ({status})", retry_after=wait)
    return SendRejected(f"{_EMPTY_ANSWER} ({status}); is api_base right?")


def _json(response: httpx.Response) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def _code(body: Any) -> int:
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, int) else 0


def _wording(body: Mapping[str, Any], status: int) -> str:
    """Return a refusal in Discord's words, with the fields that it names."""
    fields = "; ".join(f"{path}: {words}" for path, _, words in _form_errors(body))
    told = f"{body.get('message', status)}"
    return f"{told} [{_code(body)}]" + (f" {fields}" if fields else "")


def _form_errors(body: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the errors of a form as (path, code, words)."""
    waiting: list[tuple[str, Any]] = [("", body.get("errors"))]
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue
        for name, inner in node.items():
            if name != "_errors":
                waiting.append((f"{path}.{name}" if path else str(name), inner))
                continue
            for error in inner if isinstance(inner, list) else ():
                if isinstance(error, dict):
                    yield path, str(error.get("code", "")), str(error.get("message", ""))


def _is_long_text(path: str, code: str) -> bool:
    return code == _TOO_LONG and path.rpartition(".")[2] == "content"


def _duration(named: Any, otherwise: timedelta) -> timedelta:
    """Return a waiting time that was named in seconds, as a number or in writing."""
    try:
        seconds = float(named)
    except (TypeError, ValueError):
        return otherwise
    if not math.isfinite(seconds) or seconds < 0:
        return otherwise
    return timedelta(seconds=min(seconds, _LONGEST_LIMIT.total_seconds()))


def _short(detail: str) -> str:
    return detail if len(detail) <= _DETAIL_CHARS else detail[: _DETAIL_CHARS - 1] + "…"
