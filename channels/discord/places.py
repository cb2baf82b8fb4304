"""Where something happens on Discord, and which address that is; pure."""

from __future__ import annotations

from dataclasses import dataclass

from channels.discord.inbound_json import Json, id_if_any, id_of
from core.contracts.addresses import Address, Privacy

_DIRECT_TYPES = frozenset({1, 3})
_THREAD_TYPES = frozenset({10, 11, 12})
_PRIVATE_THREAD = 12
_POST_TYPES = frozenset({15, 16})
_WITH_THREADS = frozenset({0, 5})
"""docs.discord.com/developers/resources/channel#channel-object-channel-types, read on 2026-11-30.

Direct and group messages; threads of announcements, public and private ones; forums and media
channels, where everything is a post; text and announcements, where a message can begin a thread.
"""

THREAD = "thread"
CHAT = "chat"
"""What a conversation in a text channel is: a thread, or the channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotAccount:
    """The bot itself, under the channel's name. `in_threads`: who mentions it in a text channel gets a thread."""

    channel: str
    id: str
    in_threads: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One channel, thread, post or direct conversation.

    `parent` is set for threads and posts, `guild` for all but direct conversations. `is_open`:
    everybody in the guild can read it. `can_begin_threads`: a message there can begin one.
    `has_messages` false: a forum, which has posts instead.
    """

    id: str
    guild: str | None = None
    parent: str | None = None
    is_open: bool = False
    can_begin_threads: bool = False
    has_messages: bool = True

    @property
    def chat(self) -> str:
        """Return what the place belongs to: the parent of a thread, else itself."""
        return self.id if self.parent is None else self.parent

    @property
    def privacy(self) -> Privacy:
        """Return who can read it."""
        if self.guild is None:
            return Privacy.DIRECT
        return Privacy.PUBLIC if self.is_open else Privacy.PRIVATE_GROUP


def place_of(channel: Json, *, guild: str | None, is_open: bool) -> Place:
    """Return a channel as Discord describes it.

    Args:
        channel: A channel object, whole or as it comes with an interaction.
        guild: The guild that it is in; None: it is a direct conversation.
        is_open: Whether everybody in the guild can read the channel, or the parent of the thread.

    Raises:
        MalformedEvent: It has no id.
    """
    kind = channel.get("type")
    is_thread = kind in _THREAD_TYPES
    return Place(
        id=id_of(channel),
        guild=guild,
        parent=id_if_any(channel, "parent_id") if is_thread else None,
        is_open=is_open and kind != _PRIVATE_THREAD,
        can_begin_threads=kind in _WITH_THREADS,
        has_messages=kind not in _POST_TYPES,
    )


def is_thread(channel: Json) -> bool:
    """Whether a channel object is a thread or a post."""
    return channel.get("type") in _THREAD_TYPES


def is_direct(channel: Json) -> bool:
    """Whether a channel object is a direct conversation."""
    return channel.get("type") in _DIRECT_TYPES


def address_in(place: Place, account: BotAccount, *, begun_by: str | None = None) -> Address:
    """Return the address of a place.

    Args:
        place: Where something happened.
        account: Whose address it is.
        begun_by: The message that begins a conversation there; its thread has the same id.
    """
    begins = place.can_begin_threads and account.in_threads
    thread = place.id if place.parent is not None else begun_by if begins else None
    return Address(channel=account.channel, account=account.id, chat=place.chat, thread=thread, space=place.guild)
