"""Permission bits of a fake Discord, and what somebody may do in a channel.

Bits and the order of overwrites follow Discord's page on permissions, as read on 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ADMINISTRATOR = 1 << 3
ADD_REACTIONS = 1 << 6
VIEW_CHANNEL = 1 << 10
SEND_MESSAGES = 1 << 11
MANAGE_MESSAGES = 1 << 13
EMBED_LINKS = 1 << 14
ATTACH_FILES = 1 << 15
READ_MESSAGE_HISTORY = 1 << 16
MENTION_EVERYONE = 1 << 17
USE_APPLICATION_COMMANDS = 1 << 31
MANAGE_THREADS = 1 << 34
CREATE_PUBLIC_THREADS = 1 << 35
CREATE_PRIVATE_THREADS = 1 << 36
SEND_MESSAGES_IN_THREADS = 1 << 38

ALL = (1 << 50) - 1
PLAIN = (
    ADD_REACTIONS
    | VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | CREATE_PUBLIC_THREADS
    | SEND_MESSAGES_IN_THREADS
)

ROLE = 0
MEMBER = 1


@dataclass
class Overwrite:
    """What a channel allows and denies a role or a member (`kind`)."""

    id: int
    kind: int = ROLE
    allow: int = 0
    deny: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"id": str(self.id), "type": self.kind, "allow": str(self.allow), "deny": str(self.deny)}


def overwritten(base: int, overwrites: Iterable[Overwrite], *, everyone: int, roles: Iterable[int], member: int) -> int:
    """Return what is left of `base` permissions in a channel.

    Args:
        everyone: Id of the role that everybody has.
        roles: Ids of the member's other roles.
    """
    if base & ADMINISTRATOR:
        return ALL
    by_target = {(overwrite.kind, overwrite.id): overwrite for overwrite in overwrites}
    of_roles = [by_target[ROLE, role] for role in roles if (ROLE, role) in by_target]
    steps = [by_target.get((ROLE, everyone)), _merged(of_roles), by_target.get((MEMBER, member))]
    for step in steps:
        if step is not None:
            base = base & ~step.deny | step.allow
    return base if base & VIEW_CHANNEL else 0


def _merged(overwrites: list[Overwrite]) -> Overwrite:
    """Return the overwrites of several roles as one: they are taken together, and an allow wins."""
    merged = Overwrite(id=0)
    for overwrite in overwrites:
        merged.allow |= overwrite.allow
        merged.deny |= overwrite.deny
    return merged
