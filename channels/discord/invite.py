"""The link by which an owner lets the bot into a server; pure.

Bits: docs.discord.com/developers/topics/permissions, read on 2026-11-30.
"""

from __future__ import annotations

import base64
import binascii
from enum import IntFlag
from urllib.parse import urlencode

_AUTHORIZE = "https://discord.com/oauth2/authorize"
_SCOPES = ("bot", "applications.commands")


class Permission(IntFlag):
    """What the bot may be allowed in a server or a channel."""

    ADMINISTRATOR = 1 << 3
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    CREATE_PUBLIC_THREADS = 1 << 35
    SEND_MESSAGES_IN_THREADS = 1 << 38


NEEDED = (
    Permission.ADD_REACTIONS
    | Permission.VIEW_CHANNEL
    | Permission.SEND_MESSAGES
    | Permission.EMBED_LINKS
    | Permission.ATTACH_FILES
    | Permission.READ_MESSAGE_HISTORY
    | Permission.CREATE_PUBLIC_THREADS
    | Permission.SEND_MESSAGES_IN_THREADS
)
"""All that the bot uses; nothing by which it could change a server."""


def invite_link(application_id: str) -> str:
    """Return the address where whoever manages a server lets the bot in, with what it needs and no more."""
    wanted = {"client_id": application_id, "scope": " ".join(_SCOPES), "permissions": str(int(NEEDED))}
    return f"{_AUTHORIZE}?{urlencode(wanted)}"


def application_of(token: str) -> str | None:
    """Return the id that a bot's token names, which is its application's too; None where there is none.

    A few bots from before 2016 have an application of another id; ask Discord for these.
    """
    first = token.strip().partition(".")[0]
    try:
        named = base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return named if named.isdecimal() else None
