"""Who administers a group, and when that may have changed; pure."""

from __future__ import annotations

from collections.abc import Mapping

from channels.telegram.inbound_json import Json, id_if_any, part, parts
from channels.telegram.inbound_senders import ADMINISTRATOR, OWNER

_MEMBERS_CHANGED = ("my_chat_member", "chat_member")
"""Updates about one member; the second comes only where the bot is an administrator itself."""

_TOLD_IN_CHAT = frozenset({"left_chat_member", "new_chat_members", "chat_owner_left", "chat_owner_changed"})
"""Service messages about members, as fields of a message."""

_MOVED = ("migrate_to_chat_id", "migrate_from_chat_id")

_ROLES: Mapping[object, tuple[str, ...]] = {"creator": (OWNER, ADMINISTRATOR), "administrator": (ADMINISTRATOR,)}


def changed_chats(update: object) -> tuple[str, ...]:
    """Return the chats whose administrators may be others after an update; never raises.

    Args:
        update: One element of the result of getUpdates, or what a webhook was called with.
    """
    if not isinstance(update, dict):
        return ()
    for kind in _MEMBERS_CHANGED:
        if kind in update:
            return _ids(part(part(update, kind), "chat"), "id")
    message = part(update, "message")
    if moved := _ids(message, *_MOVED):
        return (*_ids(part(message, "chat"), "id"), *moved)
    return _ids(part(message, "chat"), "id") if _TOLD_IN_CHAT & message.keys() else ()


def roles_of_members(members: list[object], channel: str) -> dict[str, tuple[str, ...]]:
    """Return the platform roles of administrators, by identity; what is no administrator is left out.

    Args:
        members: The result of getChatAdministrators.
        channel: The channel's name, with which identities and roles begin.
    """
    known: dict[str, tuple[str, ...]] = {}
    for member in parts({"members": members}, "members"):
        user_id = id_if_any(part(member, "user"), "id")
        if user_id is not None and (roles := _roles(member)):
            known[f"{channel}:{user_id}"] = tuple(f"{channel}:{role}" for role in roles)
    return known


def _roles(member: Json) -> tuple[str, ...]:
    status = member.get("status")
    return _ROLES.get(status, ()) if isinstance(status, str) else ()


def _ids(source: Json, *names: str) -> tuple[str, ...]:
    return tuple(str(found) for name in names if (found := id_if_any(source, name)) is not None)
