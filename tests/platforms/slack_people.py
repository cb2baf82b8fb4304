"""What people do on a fake Slack, and what the app is told of it."""

from __future__ import annotations

import itertools

from tests.platforms.slack_deliveries import VERIFICATION_TOKEN, Deliveries, Delivery
from tests.platforms.slack_directory import Directory
from tests.platforms.slack_files import StoredFile
from tests.platforms.slack_interactions import Interactions
from tests.platforms.slack_message import STREAMED, STREAMING, Message, as_event, as_json, of_person
from tests.platforms.slack_messages import Messages
from tests.platforms.slack_presses import pressed
from tests.platforms.slack_workspace import APP, BOT_USER, TEAM, Channel, Json, Person, Workspace

_MENTION = f"<@{BOT_USER}"
_EVENT_ONLY = ("subtype", "channel_type")


class People:
    """Acts as people do. Channels and people that are not there yet are, from then on."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        messages: Messages,
        directory: Directory,
        deliveries: Deliveries,
        interactions: Interactions,
    ) -> None:
        self._workspace = workspace
        self._messages = messages
        self._directory = directory
        self._deliveries = deliveries
        self._interactions = interactions
        self._numbers = itertools.count(1)

    # Messages

    def says(
        self, channel: str, user: str, text: str, thread_ts: str | None, files: tuple[StoredFile, ...], extra: Json
    ) -> str:
        """Post a message and return its ts; a mention in a channel is told twice, as `message` and `app_mention`."""
        place, person = self.place(channel, user)
        message = Message(
            ts=self._workspace.next_ts(),
            channel=place.id,
            text=text,
            thread_ts=thread_ts,
            files=list(files),
            subtype="file_share" if files else "",
            client_msg_id=f"00000000-0000-4000-8000-{next(self._numbers):012d}",
            **of_person(person, place),
        )
        message.versions.append(text)
        place.messages[message.ts] = message
        for file in files:
            file.shares.append((place.id, message.ts))
        event = as_event(place, message) | self._origin(person, place) | extra
        self._messages.tell(place, event)
        if _MENTION in text and place.kind != "im":
            mention = {name: value for name, value in event.items() if name not in _EVENT_ONLY}
            self._messages.tell(place, mention | {"type": "app_mention"})
        return message.ts

    def edits(self, channel: str, ts: str, text: str) -> None:
        """Let whoever wrote a message change it."""
        place = self._workspace.channels[channel]
        message = place.messages[ts]
        previous = as_json(place, message)
        message.say(text)
        self._messages.changed(place, message, previous, by=message.user)

    def deletes(self, channel: str, ts: str) -> None:
        """Delete a message."""
        place = self._workspace.channels[channel]
        self._messages.remove(place, place.messages[ts])

    def unfurls(self, channel: str, ts: str, url: str) -> None:
        """Put the preview of a link under a message: it changes, and nobody edited it."""
        place = self._workspace.channels[channel]
        message = place.messages[ts]
        previous = as_json(place, message)
        message.attachments = [{"id": 1, "from_url": url, "title": "A page", "fallback": "A page", "original_url": url}]
        self._messages.changed(place, message, previous)

    def reacts(self, channel: str, user: str, ts: str, name: str, *, removed: bool) -> None:
        """Add a reaction to a message, or take it back."""
        place, _ = self.place(channel, user)
        change = self._messages.remove_reaction if removed else self._messages.add_reaction
        change(place, place.messages[ts], name, user)

    # Acts that the app answers

    def presses(self, user: str, channel: str, ts: str, action: str, *, option: str, stale: bool) -> Delivery:
        """Press what has that action id, value or label on a message."""
        place, _ = self.place(channel, user)
        message = place.messages.get(ts) or next((m for m in place.ephemeral if m.ts == ts), None)
        assert message is not None, f"no message {ts} in {channel}"
        action_of = pressed(message.blocks, action, option, self._workspace.next_ts(), stale=stale)
        container = {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": bool(message.shown_to)}
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        payload = self._interactions.act("block_actions", user) | {
            "container": container,
            "trigger_id": self._interactions.trigger(user),
            "channel": {"id": place.id, "name": place.name or "directmessage"},
            "state": {"values": {}},
            "response_url": self._interactions.response_url(user, place, message),
            "actions": [action_of],
        }
        if not message.shown_to:
            payload["message"] = as_json(place, message)
        return self._deliveries.tell("interactive", payload)

    def runs(self, command: str, text: str, user: str, channel: str) -> Delivery:
        """Type a slash command; what comes with the acknowledgement is shown to that person."""
        place, person = self.place(channel, user)
        names = {"im": "directmessage", "mpim": "privategroup", "group": "privategroup"}
        payload = {
            "token": VERIFICATION_TOKEN,
            "team_id": person.team_id,
            "team_domain": self._workspace.domain,
            "channel_id": place.id,
            "channel_name": names.get(place.kind, place.name),
            "user_id": user,
            "user_name": person.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": self._interactions.response_url(user, place),
            "trigger_id": self._interactions.trigger(user),
        }
        return self._deliveries.tell("slash_commands", payload, self._interactions.answered_by_ack(user, place))

    def uses_shortcut(self, callback_id: str, user: str, channel: str, ts: str) -> Delivery:
        """Choose a shortcut: of a message if there is a ts, otherwise the global one."""
        trigger = {"callback_id": callback_id, "trigger_id": self._interactions.trigger(user)}
        if not ts:
            return self._deliveries.tell(
                "interactive", self._interactions.act("shortcut", user) | trigger | self._acted_at()
            )
        place, _ = self.place(channel, user)
        message = place.messages[ts]
        payload = self._interactions.act("message_action", user) | trigger | self._acted_at()
        payload |= {
            "channel": {"id": place.id, "name": place.name or "directmessage"},
            "message_ts": ts,
            "message": as_json(place, message),
            "response_url": self._interactions.response_url(user, place, message),
        }
        return self._deliveries.tell("interactive", payload)

    def stops_session(self, channel: str, user: str, thread_ts: str) -> Delivery:
        """Press the stop button of a session; Slack ends the streams of the thread by itself."""
        place, _ = self.place(channel, user)
        streaming = [m for m in place.replies(thread_ts) if m.stream == STREAMING]
        for message in streaming:
            message.stream = STREAMED
        event = {
            "type": "agent_session_stopped",
            "channel": channel,
            "thread_ts": thread_ts,
            "user": user,
            "streaming_message_ts": [message.ts for message in streaming],
        }
        return self._deliveries.event(event)

    # Membership

    def invites_bot(self, channel: str, user: str) -> None:
        """Bring the bot into a channel."""
        place, _ = self.place(channel, user)
        if not place.has_bot:
            place.members.append(BOT_USER)
        kind = "G" if place.is_private else "C"
        joined = {"type": "member_joined_channel", "user": BOT_USER, "channel": channel, "channel_type": kind}
        self._deliveries.event(joined | {"team": TEAM, "inviter": user})

    def removes_bot(self, channel: str, user: str) -> None:
        """Throw the bot out of a channel."""
        place, _ = self.place(channel, user)
        self._directory.remove_bot(place, user)

    def joins(self, channel: str, user: str) -> None:
        """Become a member of a channel."""
        place, _ = self.place(channel, user)
        kind = "G" if place.is_private else "C"
        joined = {"type": "member_joined_channel", "user": user, "channel": channel, "channel_type": kind, "team": TEAM}
        self._messages.tell(place, joined)

    # Parts

    def place(self, channel: str, user: str) -> tuple[Channel, Person]:
        """Return a channel and a person who is in it."""
        person = self._workspace.people.get(user) or self._workspace.add_person(user)
        place = self._workspace.channels.get(channel) or self._workspace.add_channel(channel, members=(BOT_USER, user))
        if user not in place.members:
            place.members.append(user)
        return place, person

    def _acted_at(self) -> Json:
        return {"action_ts": self._workspace.next_ts()}

    def _origin(self, person: Person, place: Channel) -> Json:
        """Return what an event tells of a stranger in a shared channel."""
        if not (person.is_stranger and place.is_shared):
            return {}
        return {"user_team": person.team_id, "source_team": person.team_id}
