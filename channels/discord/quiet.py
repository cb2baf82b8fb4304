"""What makes a message notify nobody and unfold no link, whoever wrote its text; pure.

Mentions, on every path (previews, finals, edits, cards, notices, answers to interactions): none is
allowed, so that what an agent writes never notifies a person, a role or everybody. Discord forgets
the rule with each edit, so it goes out with each. An answer does not notify the one it answers either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SUPPRESS_EMBEDS = 1 << 2
EPHEMERAL = 1 << 6
SUPPRESS_NOTIFICATIONS = 1 << 12
"""docs.discord.com/developers/resources/message#message-object-message-flags, read on 2026-11-30."""

_MESSAGE_ANSWERS = frozenset({4, 7})
"""Interaction callbacks whose data is a message: a new one, or what the old one becomes."""

Payload = Mapping[str, Any]


def quieted(message: Payload) -> dict[str, Any]:
    """Return a message's payload (create, edit, follow-up) with no mentions allowed and no links unfolded."""
    quiet: dict[str, Any] = {**message, "allowed_mentions": {"parse": [], "replied_user": False}}
    if "://" in (message.get("content") or ""):
        quiet["flags"] = int(message.get("flags") or 0) | SUPPRESS_EMBEDS
    return quiet


def quieted_answer(callback: Payload) -> dict[str, Any]:
    """Return the answer to an interaction, with the message in it quiet; others have none."""
    if callback.get("type") not in _MESSAGE_ANSWERS:
        return dict(callback)
    return {**callback, "data": quieted(callback.get("data") or {})}
