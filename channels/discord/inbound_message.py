"""What a message says, to whom, and what it refers to; pure."""

from __future__ import annotations

from channels.discord.inbound_files import attachments, in_words, unsupported
from channels.discord.inbound_json import Json, id_if_any, part, parts
from channels.discord.inbound_senders import name_of
from channels.discord.inbound_text import Names, mentions_bot, written
from channels.discord.places import BotAccount, Place
from core.contracts.addresses import MessageBody, Quote

_PLAIN = 0
_REPLY = 19
_COMMAND_ANSWERS = frozenset({20, 23})
"""docs.discord.com/developers/resources/message#message-object-message-types, read on 2026-11-30.

What people write, and what bots answer to commands; all others are Discord's own notes.
"""

_FORWARD = 1
"""docs.discord.com/developers/resources/message#message-reference-types."""

_ELSEWHERE = "another channel"


def message_body(message: Json, place: Place, account: BotAccount, names: Names) -> MessageBody | None:
    """Return what a message says; None for Discord's notes and for what says nothing.

    Talk in a guild is addressed to the bot by a mention of it, or by an answer to a message of its.

    Raises:
        MalformedEvent: It has no id.
    """
    if not _is_said(message):
        return None
    passed_on = _passed_on(message)
    text = written(message if passed_on is None else passed_on, account, place.guild, names)
    files = attachments(message, source=passed_on)
    other = unsupported(message if passed_on is None else passed_on)
    is_mentioned = mentions_bot(message, account, place.guild, names)
    if not (text or files or other or is_mentioned):
        return None
    quote = _quote(message, place, account, names)
    return MessageBody(
        text=text,
        attachments=files,
        addressed=place.guild is None or is_mentioned or (quote is not None and quote.by_agent),
        quote=quote,
        forwarded_from="" if passed_on is None else _origin(message, names),
        unsupported=other,
    )


def quote_of(message: Json, place: Place, account: BotAccount, names: Names) -> Quote:
    """Return a message as another one refers to it."""
    passed_on = _passed_on(message)
    source = message if passed_on is None else passed_on
    author = part(message, "author")
    return Quote(
        text=written(source, account, place.guild, names) or in_words(source),
        author=name_of(author, part(message, "member")),
        by_agent=author.get("id") == account.id,
        external_id=id_if_any(message, "id"),
    )


def begins_thread(message: Json) -> bool:
    """Whether a thread was opened at a message."""
    return bool(part(message, "thread"))


def _is_said(message: Json) -> bool:
    kind = message.get("type", _PLAIN)
    is_of_bot = part(message, "author").get("bot") is True
    return kind in {_PLAIN, _REPLY} or (is_of_bot and kind in _COMMAND_ANSWERS)


def _quote(message: Json, place: Place, account: BotAccount, names: Names) -> Quote | None:
    """Return the message that this one answers; None where it answers none, or one that is gone."""
    answered = part(message, "referenced_message")
    if message.get("type") != _REPLY or not answered:
        return None
    quote = quote_of(answered, place, account, names)
    return quote if quote.text or quote.by_agent else None


def _passed_on(message: Json) -> Json | None:
    """Return what a message passes on from elsewhere; None where it speaks for itself."""
    if part(message, "message_reference").get("type") != _FORWARD:
        return None
    return next((part(snapshot, "message") for snapshot in parts(message, "message_snapshots")), None)


def _origin(message: Json, names: Names) -> str:
    channel = id_if_any(part(message, "message_reference"), "channel_id")
    name = "" if channel is None else names.channel(channel)
    return f"#{name}" if name else _ELSEWHERE
