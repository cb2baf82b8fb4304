"""The manifest of a Slack app that is all this channel needs; pure.

docs.slack.dev/reference/app-manifest, read on 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from channels.slack.limits import (
    AGENT_DESCRIPTION_LIMIT_CHARS,
    APP_DESCRIPTION_LIMIT_CHARS,
    APP_NAME_LIMIT_CHARS,
)

Json = dict[str, Any]

ASK_ABOUT_THIS = "ask_about_this"
"""The callback id of the shortcut of a message."""

COMMAND = "/lodger"

SCOPES: Mapping[str, str] = {
    "app_mentions:read": "hear that it is mentioned",
    "assistant:write": "show what it does and suggest prompts",
    "channels:history": "hear and read public channels",
    "channels:manage": "leave public channels",
    "channels:read": "know which channels are public",
    "chat:write": "write",
    "commands": f"take {COMMAND} and the shortcut",
    "files:read": "read files that people send",
    "files:write": "send files",
    "groups:history": "hear and read private channels",
    "groups:read": "know private channels",
    "groups:write": "leave private channels",
    "im:history": "hear and read direct messages",
    "im:read": "know direct messages",
    "im:write": "open direct messages",
    "mpim:history": "hear and read group messages",
    "mpim:read": "know group messages",
    "mpim:write": "leave group messages",
    "reactions:read": "hear of reactions",
    "reactions:write": "react",
    "usergroups:read": "know who is in a group of people",
    "users:read": "know people by name, and guests as such",
}
"""What the app is given, each with what it cannot do without."""

EVENTS = (
    "agent_session_stopped",
    "app_context_changed",
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "channel_left",
    "group_left",
    "member_joined_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
    "reaction_removed",
    "tokens_revoked",
)
"""What the app is told of."""


def manifest(name: str, description: str, *, socket_mode: bool, request_url: str = "") -> Json:
    """Return the manifest of an app; as JSON it can be pasted where an app is created.

    Args:
        name: What the app and its bot are called, cut to 35 characters.
        description: What it is for, cut to 140 characters and, for the agent view, to 300.
        socket_mode: Whether the app opens sockets; otherwise Slack posts everything to `request_url`.
        request_url: The public address of this host, with HTTPS.

    Raises:
        ValueError: Without Socket Mode there is no `request_url`.
    """
    if not (socket_mode or request_url):
        raise ValueError("without Socket Mode Slack needs an address to post to")
    shown_name = _clipped(name, APP_NAME_LIMIT_CHARS)
    posted_to: Json = {} if socket_mode else {"request_url": request_url}
    command = {
        "command": COMMAND,
        "description": f"Ask {shown_name} for its state, or tell it what to do",
        "usage_hint": "help",
        "should_escape": False,
    }
    shortcut = {
        "name": "Ask about this",
        "type": "message",
        "callback_id": ASK_ABOUT_THIS,
        "description": f"Ask {shown_name} about a message",
    }
    return {
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {
            "name": shown_name,
            "description": _clipped(description, APP_DESCRIPTION_LIMIT_CHARS),
        },
        "features": {
            "agent_view": {"agent_description": _clipped(description, AGENT_DESCRIPTION_LIMIT_CHARS)},
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": shown_name, "always_online": True},
            "shortcuts": [shortcut],
            "slash_commands": [command | ({} if socket_mode else {"url": request_url})],
        },
        "oauth_config": {"scopes": {"bot": sorted(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS), **posted_to},
            "interactivity": {"is_enabled": True, **posted_to},
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket_mode,
            "token_rotation_enabled": False,
        },
    }


def _clipped(text: str, limit_chars: int) -> str:
    return text if len(text) <= limit_chars else f"{text[: limit_chars - 1]}…"
