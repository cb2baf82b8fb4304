"""Presses, commands and modals of a fake Discord: one first response in time, and what may follow it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from core.contracts.clock import Clock
from tests.platforms import discord_refusals as refusals
from tests.platforms.discord_calls import Call
from tests.platforms.discord_components import check_modal
from tests.platforms.discord_content import EPHEMERAL, LOADING, Body, Content
from tests.platforms.discord_files import Upload
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_message import COMMAND_ANSWER, CONTEXT_ANSWER, PLAIN, Message
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_refusals import invalid_form

RESPONSE_DEADLINE = timedelta(seconds=3)
TOKEN_LIFE = timedelta(minutes=15)
ORIGINAL = "@original"


class Asked(IntEnum):
    """What somebody did."""

    COMMAND = 2
    COMPONENT = 3
    MODAL = 5


class Reply(IntEnum):
    """What a first response does."""

    MESSAGE = 4
    DEFERRED_MESSAGE = 5
    DEFERRED_UPDATE = 6
    UPDATE = 7
    MODAL = 9


_ALLOWED = {
    Asked.COMMAND: {Reply.MESSAGE, Reply.DEFERRED_MESSAGE, Reply.MODAL},
    Asked.COMPONENT: set(Reply),
    Asked.MODAL: {Reply.MESSAGE, Reply.DEFERRED_MESSAGE},
}


@dataclass
class Interaction:
    """Something that somebody did and that waits for a response.

    `message` is what was pressed; `original` is what the first response shows or changes;
    `was_told`: there was a session that heard, or will hear, of it. `is_private`: only whoever
    did it sees `original`.
    """

    id: int
    token: str
    asked: Asked
    user_id: int
    channel_id: int
    made_at: datetime
    clock: Clock = field(repr=False)
    was_told: bool
    data: dict[str, Any] = field(default_factory=dict)
    message: Message | None = None
    target: Message | None = None
    reply: Reply | None = None
    responded_at: datetime | None = None
    original: Message | None = None
    modal: dict[str, Any] | None = None
    followups: list[Message] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether whoever did it sees that the interaction failed."""
        is_late = self.clock.now() - self.made_at > RESPONSE_DEADLINE
        return self.reply is None and (is_late or not self.was_told)

    @property
    def is_private(self) -> bool:
        return self.original is not None and bool(self.original.content.flags & EPHEMERAL)

    @property
    def is_loading(self) -> bool:
        """Whether whoever did it sees that the bot still thinks."""
        return self.original is not None and bool(self.original.content.flags & LOADING)

    @property
    def texts(self) -> list[str]:
        """What whoever did it was told: the response's own message, if it has one, and what followed."""
        has_own = self.reply in {Reply.MESSAGE, Reply.DEFERRED_MESSAGE} and not self.is_loading
        own = [self.original] if has_own and self.original is not None else []
        return [message.text for message in [*own, *self.followups]]


class Interactions:
    """All interactions, oldest first in `made`."""

    def __init__(self, *, clock: Clock, directory: Directory, messages: Messages) -> None:
        self.made: list[Interaction] = []
        self._clock = clock
        self._directory = directory
        self._messages = messages

    def begin(
        self, interaction_id: int, asked: Asked, user_id: int, channel_id: int, *, was_told: bool, **fields: Any
    ) -> Interaction:
        """Keep that somebody did something."""
        interaction = Interaction(
            id=interaction_id,
            token=secrets.token_urlsafe(48),
            asked=asked,
            user_id=user_id,
            channel_id=channel_id,
            made_at=self._clock.now(),
            clock=self._clock,
            was_told=was_told,
            **fields,
        )
        self.made.append(interaction)
        return interaction

    def private_message(self, message_id: int) -> Message | None:
        """Return a message that only one person sees."""
        shown = [message for made in self.made for message in (made.original, *made.followups)]
        return next((message for message in shown if message is not None and message.id == message_id), None)

    # Requests

    def respond(self, call: Call) -> dict[str, Any] | None:
        """Carry out the first response."""
        interaction = next((made for made in self.made if made.id == call.number("interaction_id")), None)
        if interaction is None or interaction.token != call.ids["token"]:
            raise refusals.unknown_interaction()
        if interaction.reply is not None:
            raise refusals.already_acknowledged()
        if self._clock.now() - interaction.made_at > RESPONSE_DEADLINE:
            raise refusals.unknown_interaction()
        reply = _reply_of(interaction, call.body)
        self._show(interaction, reply, call.body.get("data") or {}, call.files)
        interaction.reply, interaction.responded_at = reply, self._clock.now()
        with_response = call.query.get("with_response", "false").lower() in {"1", "true"}
        return self._response_json(interaction) if with_response else None

    def follow_up(self, call: Call) -> dict[str, Any]:
        """Carry out the request for a further message; the first one after a deferral takes its place.

        It is answered by the message also where `wait` is not asked for, unlike other webhooks.
        """
        interaction = self._open(call)
        original = interaction.original
        if interaction.is_loading and original is not None:
            self._change(interaction, original, call.body, call.files)
            message = original
        else:
            message = self._post(interaction, call.body, call.files)
            interaction.followups.append(message)
        return self._messages.json.rest(message)

    def get(self, call: Call) -> dict[str, Any]:
        """Carry out the request for a message of a response."""
        return self._messages.json.rest(self._message(self._open(call), call))

    def edit(self, call: Call) -> dict[str, Any]:
        """Carry out the request to change a message of a response."""
        interaction = self._open(call)
        message = self._message(interaction, call)
        self._change(interaction, message, call.body, call.files)
        return self._messages.json.rest(message)

    def delete(self, call: Call) -> None:
        """Carry out the request to delete a message of a response."""
        interaction = self._open(call)
        message = self._message(interaction, call)
        if message.id in self._messages.by_channel[message.channel_id]:
            self._messages.remove(message)
        if message is interaction.original:
            interaction.original = None
        else:
            interaction.followups.remove(message)

    # What they do

    def _show(self, interaction: Interaction, reply: Reply, data: Body, uploads: list[Upload]) -> None:
        match reply:
            case Reply.MESSAGE:
                interaction.original = self._post(interaction, data, uploads, path="data.")
            case Reply.DEFERRED_MESSAGE:
                flags = int(data.get("flags") or 0) & EPHEMERAL | LOADING
                interaction.original = self._add(interaction, Content(flags=flags))
            case Reply.DEFERRED_UPDATE:
                interaction.original = interaction.message
            case Reply.UPDATE:
                interaction.original = interaction.message
                if interaction.message is not None:
                    self._change(interaction, interaction.message, data, uploads, path="data.")
            case Reply.MODAL:
                check_modal(data)
                interaction.modal = data

    def _post(self, interaction: Interaction, body: Body, uploads: list[Upload], path: str = "") -> Message:
        channel = self._directory.channel(interaction.channel_id)
        unsent = {name: value for name, value in body.items() if name not in {"nonce", "enforce_nonce"}}
        is_private = bool(int(body.get("flags") or 0) & EPHEMERAL)
        fields = self._fields(interaction)
        return self._messages.create(channel, unsent, uploads, path=path, is_private=is_private, **fields)

    def _add(self, interaction: Interaction, content: Content) -> Message:
        channel = self._directory.channel(interaction.channel_id)
        is_private = bool(content.flags & EPHEMERAL)
        return self._messages.add(channel, BOT, content, is_private=is_private, **self._fields(interaction))

    def _fields(self, interaction: Interaction) -> dict[str, Any]:
        user = self._directory.users[interaction.user_id]
        metadata = {
            "id": str(interaction.id),
            "type": int(interaction.asked),
            "user": user.as_json(),
            "authorizing_integration_owners": {},
        }
        if interaction.asked is not Asked.COMMAND:
            return {"kind": PLAIN, "interaction": metadata}
        metadata["name"] = interaction.data.get("name")
        if interaction.target is None:
            return {"kind": COMMAND_ANSWER, "interaction": metadata}
        target = (interaction.channel_id, interaction.target.id)
        return {"kind": CONTEXT_ANSWER, "reply_to": target, "interaction": metadata}

    def _change(
        self, interaction: Interaction, message: Message, body: Body, uploads: list[Upload], path: str = ""
    ) -> None:
        channel = self._directory.channel(interaction.channel_id)
        if "flags" in body:
            own = message.content.flags & EPHEMERAL  # who sees a message is settled when it is posted
            body = body | {"flags": int(body["flags"] or 0) & ~EPHEMERAL | own}
        self._messages.change(channel, message, body, uploads, path=path)

    def _open(self, call: Call) -> Interaction:
        """Return the interaction whose token a request has, if more can be said to it."""
        interaction = next((made for made in self.made if made.token == call.ids["token"]), None)
        if interaction is None or call.number("app_id") != BOT:
            raise refusals.invalid_webhook_token()
        if self._clock.now() - interaction.made_at > TOKEN_LIFE:
            raise refusals.invalid_webhook_token()
        if interaction.reply is None:
            raise refusals.unknown_webhook()
        return interaction

    def _message(self, interaction: Interaction, call: Call) -> Message:
        wanted = call.ids["message"]
        message = interaction.original if wanted == ORIGINAL else None
        for other in (interaction.original, *interaction.followups):
            if other is not None and str(other.id) == wanted:
                message = other
        if message is None:
            raise refusals.unknown_message()
        return message

    def _response_json(self, interaction: Interaction) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": str(interaction.id), "type": int(interaction.asked)}
        resource: dict[str, Any] = {"type": int(interaction.reply or 0)}
        if interaction.original is not None:
            shown |= {
                "response_message_id": str(interaction.original.id),
                "response_message_loading": interaction.is_loading,
                "response_message_ephemeral": interaction.is_private,
            }
            if interaction.reply in {Reply.MESSAGE, Reply.UPDATE}:
                resource["message"] = self._messages.json.rest(interaction.original)
        return {"interaction": shown, "resource": resource}


def _reply_of(interaction: Interaction, body: Body) -> Reply:
    try:
        reply = Reply(int(body.get("type") or 0))
    except ValueError:
        raise invalid_form("type", "BASE_TYPE_CHOICES", f"Value must be one of {sorted(Reply)}.") from None
    possible = set(_ALLOWED[interaction.asked])
    if interaction.asked is Asked.MODAL and interaction.message is not None:
        possible |= {Reply.DEFERRED_UPDATE, Reply.UPDATE}
    if reply not in possible:
        raise invalid_form("type", "INTERACTION_APPLICATION_COMMAND_INVALID_RESPONSE_TYPE", "Not allowed here")
    return reply
