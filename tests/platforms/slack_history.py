"""What was said in a conversation of a fake Slack: conversations.history and conversations.replies.

After docs.slack.dev/reference/methods/conversations.history and conversations.replies as read on 2026-11-30.
"""

from __future__ import annotations

import math

from tests.platforms.slack_message import Message, as_json
from tests.platforms.slack_pages import flag, page
from tests.platforms.slack_refusals import Refusal, required
from tests.platforms.slack_workspace import Json, Workspace


class History:
    """Reads messages back; their metadata only where it is asked for."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def channel(self, params: Json) -> Json:
        """Carry out conversations.history: what stands in the channel itself, the newest first."""
        channel = self._workspace.joined(params)
        found = [m for m in channel.messages.values() if not m.is_reply or m.is_broadcast]
        shown, rest = page([m for m in reversed(found) if _is_asked_for(m, params)], params)
        metadata = flag(params, "include_all_metadata")
        messages = [as_json(channel, message, metadata=metadata) for message in shown]
        return {"messages": messages, "pin_count": 0, "has_more": _has_more(rest)} | rest

    def thread(self, params: Json) -> Json:
        """Carry out conversations.replies: the root on every page, then its replies, the oldest first.

        For the ts of a reply it is that reply alone.
        """
        channel = self._workspace.joined(params)
        root = channel.messages.get(required(params, "ts"))
        if root is None:
            raise Refusal("thread_not_found")
        replies = [m for m in channel.replies(root.ts) if m.ts != root.ts and _is_asked_for(m, params)]
        shown, rest = page(replies, params, default=1000 - 1)
        metadata = flag(params, "include_all_metadata")
        messages = [as_json(channel, message, metadata=metadata) for message in (root, *shown)]
        return {"messages": messages, "has_more": _has_more(rest)} | rest


def _is_asked_for(message: Message, params: Json) -> bool:
    """Whether a message lies between `oldest` and `latest`, which are left out unless `inclusive`."""
    ts, inclusive = float(message.ts), flag(params, "inclusive")
    oldest, latest = _instant(params, "oldest", 0.0), _instant(params, "latest", math.inf)
    return oldest <= ts <= latest if inclusive else oldest < ts < latest


def _instant(params: Json, name: str, otherwise: float) -> float:
    try:
        return float(params.get(name) or otherwise)
    except ValueError:
        raise Refusal(f"invalid_ts_{name}") from None


def _has_more(rest: Json) -> bool:
    return bool(rest["response_metadata"]["next_cursor"])
