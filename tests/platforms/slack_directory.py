"""What an app can ask a fake Slack about people, bots and conversations.

After docs.slack.dev/reference/methods as read on 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.platforms.slack_pages import flag, page
from tests.platforms.slack_refusals import Refusal, required
from tests.platforms.slack_workspace import APP, BOT, BOT_USER, TEAM, Channel, Json, Workspace

_TYPES = {"channel": "public_channel", "group": "private_channel", "im": "im", "mpim": "mpim"}


class Directory:
    """Looks people and conversations up, and leaves, opens and joins them."""

    def __init__(self, workspace: Workspace, emit: Callable[[Json], Any]) -> None:
        self._workspace = workspace
        self._emit = emit

    def auth_test(self, _: Json) -> Json:
        """Carry out auth.test."""
        return {
            "url": f"https://{self._workspace.domain}.slack.com/",
            "team": self._workspace.domain.title(),
            "user": self._workspace.people[BOT_USER].name,
            "team_id": TEAM,
            "user_id": BOT_USER,
            "bot_id": BOT,
            "is_enterprise_install": False,
        }

    def user(self, params: Json) -> Json:
        """Carry out users.info."""
        return {"user": self._workspace.person(required(params, "user")).as_json()}

    def bot(self, params: Json) -> Json:
        """Carry out bots.info."""
        wanted = str(params.get("bot") or BOT)
        person = next((p for p in self._workspace.people.values() if p.bot_id == wanted), None)
        if person is None:
            raise Refusal("bot_not_found")
        app = APP if wanted == BOT else "A0OTHER"
        return {"bot": {"id": wanted, "deleted": False, "name": person.name, "app_id": app, "user_id": person.id}}

    def usergroups(self, _: Json) -> Json:
        """Carry out usergroups.list."""
        groups = [
            {"id": group, "team_id": TEAM, "is_usergroup": True, "name": handle, "handle": handle, "users": users}
            for group, (handle, users) in self._workspace.usergroups.items()
        ]
        return {"usergroups": groups}

    def usergroup_users(self, params: Json) -> Json:
        """Carry out usergroups.users.list."""
        group = self._workspace.usergroups.get(required(params, "usergroup"))
        if group is None:
            raise Refusal("no_such_subteam")
        return {"users": group[1]}

    def info(self, params: Json) -> Json:
        """Carry out conversations.info."""
        return {"channel": self._workspace.seen(params).as_json()}

    def members(self, params: Json) -> Json:
        """Carry out conversations.members."""
        members, rest = page(self._workspace.seen(params).members, params)
        return {"members": members} | rest

    def all(self, params: Json) -> Json:
        """Carry out conversations.list."""
        return self._listed(params, [c for c in self._workspace.channels.values() if c.has_bot or not c.is_private])

    def joined(self, params: Json) -> Json:
        """Carry out users.conversations, of the bot."""
        return self._listed(params, [c for c in self._workspace.channels.values() if c.has_bot])

    def open(self, params: Json) -> Json:
        """Carry out conversations.open: a direct channel for one person, a group one for several."""
        if params.get("channel"):
            channel = self._workspace.seen(params)
        else:
            users = [self._workspace.person(user).id for user in required(params, "users").split(",")]
            channel = self._workspace.direct(users[0]) if len(users) == 1 else self._group(users)
        was_open, channel.is_open = channel.is_open, True
        shown = channel.as_json() if flag(params, "return_im") else {"id": channel.id}
        return {"channel": shown, "no_op": was_open, "already_open": was_open}

    def join(self, params: Json) -> Json:
        """Carry out conversations.join."""
        channel = self._workspace.seen(params)
        if channel.is_private:
            raise Refusal("method_not_supported_for_channel_type")
        if not channel.has_bot:
            channel.members.append(BOT_USER)
        return {"channel": channel.as_json()}

    def leave(self, params: Json) -> Json:
        """Carry out conversations.leave; having left already is, as documented, neither ok nor an error."""
        channel = self._workspace.seen(params)
        if channel.kind == "im":
            raise Refusal("method_not_supported_for_channel_type")
        if not channel.has_bot:
            return {"ok": False, "not_in_channel": True}
        self.remove_bot(channel, BOT_USER)
        return {}

    def remove_bot(self, channel: Channel, actor: str) -> None:
        """Let the bot be in a channel no more, and tell it."""
        channel.members.remove(BOT_USER)
        kind = "group_left" if channel.is_private else "channel_left"
        self._emit({"type": kind, "channel": channel.id, "actor_id": actor})

    def _group(self, users: list[str]) -> Channel:
        members = {BOT_USER, *users}
        known = (c for c in self._workspace.channels.values() if c.kind == "mpim" and set(c.members) == members)
        name = f"G{len(self._workspace.channels):05d}"
        return next(known, None) or self._workspace.add_channel(name, kind="mpim", members=tuple(sorted(members)))

    def _listed(self, params: Json, channels: list[Channel]) -> Json:
        types = str(params.get("types") or "public_channel").split(",")
        wanted = [c for c in channels if _TYPES[c.kind] in types]
        if flag(params, "exclude_archived"):
            wanted = [c for c in wanted if not c.is_archived]
        shown, rest = page(wanted, params)
        return {"channels": [c.as_json() for c in shown]} | rest
