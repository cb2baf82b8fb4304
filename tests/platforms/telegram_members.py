"""People and bots as members of a fake Telegram's groups, as the Bot API shows them."""

from __future__ import annotations

from typing import Any

ADMINISTERING = frozenset({"creator", "administrator"})
"""The standings that getChatAdministrators lists."""

_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)


def person(user: int) -> dict[str, Any]:
    """Return a person; 111 is Alice and 222 is Bob."""
    names = {111: "Alice", 222: "Bob"}
    return {"id": user, "is_bot": False, "first_name": names.get(user, f"User {user}")}


def member(user: dict[str, Any], status: str) -> dict[str, Any]:
    """Return a ChatMember: somebody with their standing in a group."""
    shown: dict[str, Any] = {"user": user, "status": status}
    if status == "creator":
        return shown | {"is_anonymous": False}
    if status == "administrator":
        return shown | {"can_be_edited": False, "is_anonymous": False} | dict.fromkeys(_RIGHTS, True)
    return shown | ({"until_date": 0} if status == "kicked" else {})
