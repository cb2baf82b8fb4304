"""Telegram's errors, translated once into those that every channel raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
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
    ChatMoved,
    SendLimited,
    SendRejected,
    SendUnknown,
    TextTooLong,
)

RETRY_SOON = timedelta(seconds=2)
"""When to try again what did surely not take effect, or takes effect only once."""

_FLOOD_WITHOUT_TIME = timedelta(seconds=5)
_DETAIL_CHARS = 300

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.WriteTimeout)
"""No connection stood, or the request did not leave whole: it cannot have been carried out."""

_TOO_LARGE = "request entity too large"


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


class TooOldToDelete(SendRejected):
    """The message is there and will stay: bots delete within 48 hours only."""


class EntitiesRefused(SendRejected):
    """The formatting is refused, the text itself is not."""


class MediaRefused(SendRejected):
    """The file cannot be shown as what it was sent as; as a document it can be sent."""


class NotInChat(SendRejected):
    """The bot is not in the chat: put out of it, never in it, or there is no such chat."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a refusal means that holds one of `phrases`; `words` say it to people."""

    error: type[ChannelError]
    phrases: tuple[str, ...]
    words: str = ""


_REFUSALS = (
    _Meaning(NotModified, ("message is not modified",)),
    _Meaning(TextTooLong, ("message is too long", "message_too_long", "text is too long")),
    _Meaning(
        MessageGone,
        ("message to edit not found", "message to delete not found", "message_id_invalid", "message can't be edited"),
    ),
    _Meaning(TooOldToDelete, ("message can't be deleted",)),
    _Meaning(ThreadGone, ("message thread not found", "topic_deleted")),
    _Meaning(
        EntitiesRefused,
        (
            "can't parse entities",
            "wrong message entity",
            "entity beginning at utf-16",
            "entity begins after",
            "entity with incorrect",
            "entity_",
        ),
    ),
    _Meaning(MediaRefused, ("photo_", "image_process_failed", "voice_messages_forbidden")),
    _Meaning(SendRejected, ("reaction_",), "Telegram does not offer this emoji as a reaction here"),
    _Meaning(SendRejected, ("message to react not found",), "the message to react to is not there any more"),
    _Meaning(SendRejected, ("file is too big", _TOO_LARGE), "the file is too large for Telegram"),
    _Meaning(SendRejected, ("topic_closed",), "the topic is closed"),
    _Meaning(
        SendRejected, ("not enough rights", "have no rights", "chat_write_forbidden"), "the bot may not write there"
    ),
    _Meaning(NotInChat, ("chat not found",), "there is no such chat for this bot"),
    _Meaning(NotInChat, ("bot was kicked",), "the bot was removed from the chat"),
    _Meaning(NotInChat, ("bot is not a member",), "the bot is not in the chat"),
    _Meaning(SendRejected, ("bot was blocked",), "the person has blocked the bot"),
    _Meaning(SendRejected, ("user is deactivated",), "the person's account does not exist any more"),
    _Meaning(SendRejected, ("can't initiate conversation",), "the person has never written to the bot"),
)
"""First match counts. Wordings as tdlib/telegram-bot-api sends them; case differs between versions."""


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
        case BadRequest() | Forbidden():
            meaning = _refusal(detail)
        case ChatMigrated():
            meaning = ChatMoved(detail, chat=str(error.new_chat_id))
        case NetworkError() if _TOO_LARGE in detail.lower():
            meaning = _refusal(detail)
        case NetworkError() if isinstance(error.__cause__, _NEVER_SENT):
            meaning = SendLimited(f"cannot be reached: {detail}", retry_after=RETRY_SOON)
        case _:
            meaning = SendUnknown(detail)
    return meaning


def _refusal(detail: str) -> ChannelError:
    wording = detail.lower()
    for meaning in _REFUSALS:
        if any(phrase in wording for phrase in meaning.phrases):
            return meaning.error(f"{meaning.words} ({detail})" if meaning.words else detail)
    return SendRejected(detail)
