"""The channels and threads of a fake Discord, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any

from tests.platforms.discord_permissions import Overwrite
from tests.platforms.discord_snowflakes import timestamp

REQUIRES_TAG = 1 << 4
ARCHIVE_MINUTES = (60, 1440, 4320, 10080)


class Kind(IntEnum):
    """What a channel is, in Discord's numbers."""

    TEXT = 0
    DM = 1
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


THREADS = frozenset({Kind.PUBLIC_THREAD, Kind.PRIVATE_THREAD})


@dataclass
class Thread:
    """What a thread has beyond a channel; `changed_at` is when it was made, archived or un-archived."""

    owner_id: int
    created_at: datetime
    changed_at: datetime
    archive_minutes: int = 1440
    archived: bool = False
    locked: bool = False
    tags: list[int] = field(default_factory=list)
    members: dict[int, datetime] = field(default_factory=dict)


@dataclass
class Channel:
    """One channel, thread, forum or direct conversation.

    `recipient_id` is the person of a direct conversation; `tags` are a forum's, name by id.
    """

    id: int
    kind: Kind
    name: str = ""
    guild_id: int | None = None
    parent_id: int | None = None
    position: int = 0
    topic: str | None = None
    overwrites: list[Overwrite] = field(default_factory=list)
    recipient_id: int | None = None
    tags: dict[int, str] = field(default_factory=dict)
    requires_tag: bool = False
    thread: Thread | None = None
    last_message_id: int | None = None
    message_count: int = 0

    def as_json(self, *, recipient: dict[str, Any] | None = None, reader: int | None = None) -> dict[str, Any]:
        """Return the channel as the API shows it.

        Args:
            recipient: The person of a direct conversation.
            reader: Who sees it: a thread shows them their own membership.
        """
        shown: dict[str, Any] = {
            "id": str(self.id),
            "type": int(self.kind),
            "flags": REQUIRES_TAG if self.requires_tag else 0,
            "last_message_id": _text(self.last_message_id),
        }
        if self.kind is Kind.DM:
            return shown | {"recipients": [recipient]}
        shown |= {
            "guild_id": _text(self.guild_id),
            "name": self.name,
            "parent_id": _text(self.parent_id),
            "rate_limit_per_user": 0,
        }
        if self.thread is not None:
            return shown | self._thread_json(self.thread, reader)
        shown |= {
            "position": self.position,
            "topic": self.topic,
            "nsfw": False,
            "permission_overwrites": [overwrite.as_json() for overwrite in self.overwrites],
        }
        return shown | (self._forum_json() if self.kind is Kind.FORUM else {})

    def _thread_json(self, thread: Thread, reader: int | None) -> dict[str, Any]:
        shown = {
            "owner_id": str(thread.owner_id),
            "message_count": self.message_count,
            "total_message_sent": self.message_count,
            "member_count": len(thread.members),
            "applied_tags": [str(tag) for tag in thread.tags],
            "thread_metadata": {
                "archived": thread.archived,
                "locked": thread.locked,
                "auto_archive_duration": thread.archive_minutes,
                "archive_timestamp": timestamp(thread.changed_at),
                "create_timestamp": timestamp(thread.created_at),
            },
        }
        joined_at = thread.members.get(reader) if reader is not None else None
        if joined_at is not None:
            member = {"id": str(self.id), "user_id": str(reader), "join_timestamp": timestamp(joined_at), "flags": 1}
            shown["member"] = member
        return shown

    def _forum_json(self) -> dict[str, Any]:
        tags = [
            {"id": str(tag), "name": name, "moderated": False, "emoji_id": None, "emoji_name": None}
            for tag, name in self.tags.items()
        ]
        return {
            "available_tags": tags,
            "default_reaction_emoji": None,
            "default_sort_order": None,
            "default_forum_layout": 0,
            "default_thread_rate_limit_per_user": 0,
        }


def _text(snowflake: int | None) -> str | None:
    return None if snowflake is None else str(snowflake)
