"""The methods that a fake Slack offers, with the scope and the tier of each.

Scopes and tiers follow docs.slack.dev/reference/methods as read on 2026-11-30; tiers of special
methods are what they come to.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.platforms.slack_agents import Agents
from tests.platforms.slack_directory import Directory
from tests.platforms.slack_files import Files, Share
from tests.platforms.slack_history import History
from tests.platforms.slack_messages import Messages
from tests.platforms.slack_methods import Json, Method
from tests.platforms.slack_streams import Streams
from tests.platforms.slack_views import Views

READ = "channels:read|groups:read|im:read|mpim:read"
HISTORY = "channels:history|groups:history|im:history|mpim:history"
OPEN = "channels:manage|groups:write|im:write|mpim:write"

SCOPES = frozenset(
    (
        "app_mentions:read", "assistant:write", "channels:history", "channels:join", "channels:manage",
        "channels:read", "chat:write", "commands", "files:read", "files:write", "groups:history", "groups:read",
        "groups:write", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "mpim:write",
        "reactions:read", "reactions:write", "usergroups:read", "users:read",
    )
)  # fmt: skip
"""What the app has been given, unless a test takes something away."""


def of_messages(messages: Messages, history: History) -> dict[str, Method]:
    """Return the methods about messages."""
    return {
        "chat.postMessage": Method(messages.post, "chat:write", 60),
        "chat.postEphemeral": Method(messages.post_ephemeral, "chat:write", 100),
        "chat.update": Method(messages.update, "chat:write"),
        "chat.delete": Method(messages.delete, "chat:write"),
        "reactions.add": Method(messages.react, "reactions:write"),
        "reactions.remove": Method(messages.unreact, "reactions:write", 20),
        "conversations.history": Method(history.channel, HISTORY),
        "conversations.replies": Method(history.thread, HISTORY),
    }


def of_directory(directory: Directory) -> dict[str, Method]:
    """Return the methods about people and places."""
    return {
        "auth.test": Method(directory.auth_test, "", 300),
        "bots.info": Method(directory.bot, "users:read"),
        "conversations.info": Method(directory.info, READ),
        "conversations.join": Method(directory.join, "channels:join"),
        "conversations.leave": Method(directory.leave, OPEN),
        "conversations.list": Method(directory.all, READ, 20),
        "conversations.members": Method(directory.members, READ, 100),
        "conversations.open": Method(directory.open, OPEN),
        "usergroups.list": Method(directory.usergroups, "usergroups:read", 20),
        "usergroups.users.list": Method(directory.usergroup_users, "usergroups:read", 20),
        "users.conversations": Method(directory.joined, READ),
        "users.info": Method(directory.user, "users:read", 100),
    }


def of_files(files: Files, share: Share) -> dict[str, Method]:
    """Return the methods about files; `share` posts them."""
    return {
        "files.info": Method(files.describe, "files:read", 100),
        "files.getUploadURLExternal": Method(files.begin, "files:write", 100),
        "files.completeUploadExternal": Method(lambda params: files.complete(params, share), "files:write", 100),
    }


def of_streams(streams: Streams) -> dict[str, Method]:
    """Return the methods about streamed messages."""
    return {
        "chat.startStream": Method(streams.start, "chat:write", 20),
        "chat.appendStream": Method(streams.append, "chat:write", 100),
        "chat.stopStream": Method(streams.stop, "chat:write", 20),
    }


def of_agents(agents: Agents) -> dict[str, Method]:
    """Return the methods about an agent at work."""
    return {
        "agents.sessions.rename": Method(agents.rename, "chat:write"),
        "agents.sessions.setStatus": Method(agents.set_session, "chat:write"),
        "assistant.threads.setStatus": Method(agents.set_status, "chat:write|assistant:write", 600),
        "assistant.threads.setSuggestedPrompts": Method(agents.set_prompts, "assistant:write", 100),
        "assistant.threads.setTitle": Method(agents.set_title, "assistant:write", 100),
    }


def of_views(views: Views) -> dict[str, Method]:
    """Return the methods about modals and homes."""
    return {
        "views.open": Method(views.open, "", 100),
        "views.publish": Method(views.publish, "", 100),
        "views.push": Method(views.push, "", 100),
        "views.update": Method(views.update, "", 100),
    }


def of_sockets(open_connection: Callable[[Json], Json]) -> dict[str, Method]:
    """Return the method that opens a socket."""
    return {"apps.connections.open": Method(open_connection)}
