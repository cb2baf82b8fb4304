"""How soon a session may be started: Discord counts starts, and takes a bot's token away when there are too many; pure.

docs.discord.com/developers/events/gateway#session-start-limits, read on 2026-11-30: 1,000 in 24 hours.
"""

from __future__ import annotations

from datetime import timedelta

from channels.discord.transport import GatewayState

_FREE_SHARE = 0.5
"""Ours: of all starts, so many can be made without a pause. A host that is restarted all the time is slowed then."""


def pause_before_start(state: GatewayState) -> timedelta:
    """Return how long to wait before a session is started, so that what is left lasts until more is allowed."""
    if state.starts_left > state.starts_total * _FREE_SHARE or not state.starts_total:
        return timedelta(0)
    return state.resets_after / max(1, state.starts_left)
