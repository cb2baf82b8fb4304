"""Telegram's errors, translated once into those that every channel raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
)

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

_FLOOD_WITHOUT_TIME = timedelta(seconds=5)
_DETAIL_CHARS = 300

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""No connection stood, so no byte of the request left."""

_TOO_LONG = ("message is too long", "message_too_long", "text is too long")
_GONE = ("message to edit not found", "message_id_invalid", "message can't be edited")


class FloodLimit(TelegramError):
    """429. Stands for the library's `RetryAfter`, which warns whenever it is made or read."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__(f"Too many requests: retry after {retry_after.total_seconds():g} seconds")
        self.retry_after = retry_after


class PollConflict(ChannelError):
    """409: another program polls with this token, or a webhook is set."""

    def __init__(self, detail: str, *, webhook: bool) -> None:
        super().__init__(detail)
        self.webhook = webhook


class NotModified(ChannelError):
    """An edit changed nothing: the message shows it already."""


class MessageGone(SendRejected):
    """The message to edit is not there any more."""


class ThreadGone(SendRejected):
    """The topic to send to is not there any more."""


def flood_limit(payload: bytes) -> FloodLimit:
    """Read how long a 429 asks to wait."""
    try:
        answer = json.loads(payload)
        return FloodLimit(as_duration(answer["parameters"]["retry_after"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        return FloodLimit(_FLOOD_WITHOUT_TIME)


def as_duration(retry_after: float | timedelta) -> timedelta:
    """Return a waiting time, given in seconds or as a duration, as a duration."""
    return retry_after if isinstance(retry_after, timedelta) else timedelta(seconds=retry_after)


def translate(error: TelegramError, mask: Callable[[str], str]) -> ChannelError:
    """Return what `error` means; an outcome counts as known only where it surely is.

    A connection that could not be made is `SendLimited`: nothing was sent and trying again soon
    is right. A lost answer, a 5xx and an answer that is not JSON are `SendUnknown`.
    """
    detail = mask(str(error))[:_DETAIL_CHARS]
    meaning: ChannelError
    match error:
        case FloodLimit():
            meaning = SendLimited(detail, retry_after=error.retry_after)
        case InvalidToken():
            meaning = ChannelDown(f"the bot token is refused: {detail}")
        case Conflict():
            meaning = PollConflict(detail, webhook="webhook" in detail.lower())
        case BadRequest():
            meaning = _refusal(detail)
        case Forbidden() | ChatMigrated():
            meaning = SendRejected(detail)
        case NetworkError() if isinstance(error.__cause__, _NEVER_SENT):
            meaning = SendLimited(f"cannot be reached: {detail}", retry_after=RETRY_SOON)
        case _:
            meaning = SendUnknown(detail)
    return meaning


def _refusal(detail: str) -> ChannelError:
    wording = detail.lower()
    if "message is not modified" in wording:
        return NotModified(detail)
    if any(phrase in wording for phrase in _TOO_LONG):
        return TextTooLong(detail)
    if any(phrase in wording for phrase in _GONE):
        return MessageGone(detail)
    if "message thread not found" in wording:
        return ThreadGone(detail)
    return SendRejected(detail)
