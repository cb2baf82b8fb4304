"""What people write, as it reads on Discord: names in the place of ids, and without the mention of the bot; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Protocol

from channels.discord.inbound_json import Json, clean, id_if_any, ids, part, parts
from channels.discord.inbound_senders import name_of
from channels.discord.places import BotAccount

_CODE = re.compile(r"(```[\s\S]*?```|``[^\n]*?``|`[^`\n]*`)")
_PERSON = re.compile(r"<@!?(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")
_CHANNEL = re.compile(r"<#(\d{1,20})>")
_EMOJI = re.compile(r"<a?(:\w{1,64}:)\d{1,20}>")
_COMMAND = re.compile(r"<(/[^:<>\n]{1,100}):\d{1,20}>")
_TIME = re.compile(r"<t:(-?\d{1,12})(?::[a-zA-Z])?>")
"""docs.discord.com/developers/reference#message-formatting, read on 2026-11-30."""


class Names(Protocol):
    """What roles and channels are called; empty where that is not known."""

    def role(self, guild: str | None, role: str) -> str:
        """Return the name of a role."""
        ...

    def channel(self, channel: str) -> str:
        """Return the name of a channel or thread."""
        ...

    def own_role(self, guild: str | None) -> str | None:
        """Return the id of the role that is the bot's alone, which people take for the bot."""
        ...


def written(message: Json, account: BotAccount, guild: str | None, names: Names) -> str:
    """Return the text of a message as its reader sees it, without the mention of the bot; code stays as it is."""
    people = {
        found: name_of(user, part(user, "member"))
        for user in parts(message, "mentions")
        if (found := id_if_any(user, "id")) is not None
    }
    own = _own_mention(account, names.own_role(guild))

    def name_all(text: str) -> str:
        text = own.sub("", text)
        text = _PERSON.sub(lambda found: _named("@", people.get(found[1], ""), found), text)
        text = _ROLE.sub(lambda found: _named("@", names.role(guild, found[1]), found), text)
        text = _CHANNEL.sub(lambda found: _named("#", names.channel(found[1]), found), text)
        text = _COMMAND.sub(r"\1", _EMOJI.sub(r"\1", text))
        return _TIME.sub(_time_in_words, text)

    return outside_code(without_greeting(_content(message), own), name_all).strip()


def mentions_bot(message: Json, account: BotAccount, guild: str | None, names: Names) -> bool:
    """Whether the text of a message mentions the bot, or the role that is the bot's alone.

    Who answers somebody notifies them, too; that alone is no mention.
    """
    own_role = names.own_role(guild)
    named = {id_if_any(user, "id") for user in parts(message, "mentions")}
    if account.id not in named and own_role not in ids(message, "mention_roles"):
        return False
    own = _own_mention(account, own_role)
    return any(own.search(text) for text in _CODE.split(_content(message))[::2])


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text with a change made everywhere but in its code."""
    pieces = _CODE.split(text)
    return "".join(piece if number % 2 else change(piece) for number, piece in enumerate(pieces))


def without_greeting(text: str, own: re.Pattern[str]) -> str:
    """Return a text without the mention it begins with, and what stands between that and the words."""
    match = own.match(text.lstrip())
    return text if match is None else text.lstrip()[match.end() :].lstrip(" \t,:;")


def names_in(message: Json) -> Mapping[str, str]:
    """Return what those are called who wrote a message or are mentioned in it, by their ids."""
    people = (
        (part(message, "author"), part(message, "member")),
        *((user, part(user, "member")) for user in parts(message, "mentions")),
    )
    named = {id_if_any(user, "id"): name_of(user, member) for user, member in people}
    return {user_id: name for user_id, name in named.items() if user_id is not None and name}


def _content(message: Json) -> str:
    content = message.get("content")
    return clean(content) if isinstance(content, str) else ""


def _own_mention(account: BotAccount, own_role: str | None) -> re.Pattern[str]:
    """Return what finds the bot's mention, with one blank before it."""
    as_role = "" if own_role is None else f"|@&{own_role}"
    return re.compile(rf"[ \t]?<(?:@!?{account.id}{as_role})>")


def _named(mark: str, name: str, found: re.Match[str]) -> str:
    return f"{mark}{name}" if name else found[0]


def _time_in_words(found: re.Match[str]) -> str:
    try:
        return datetime.fromtimestamp(int(found[1]), UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return found[0]
