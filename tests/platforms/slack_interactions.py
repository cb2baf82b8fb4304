"""What a person's act on a fake Slack entitles the app to: a trigger for 3 seconds, a response URL for 30 minutes.

After docs.slack.dev/interactivity/handling-user-interaction as read on 2026-11-30.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.slack_deliveries import VERIFICATION_TOKEN
from tests.platforms.slack_message import Message
from tests.platforms.slack_messages import Messages, content_of
from tests.platforms.slack_refusals import Refusal, required
from tests.platforms.slack_workspace import APP, BOT, BOT_USER, Channel, Json, Workspace

TRIGGER_TTL = timedelta(seconds=3)
RESPONSE_TTL = timedelta(minutes=30)
RESPONSE_USES = 5


@dataclass
class Trigger:
    """The right to open one view for a person. `issued_at` is seconds of the server's clock."""

    user: str
    issued_at: float
    is_used: bool = False


@dataclass
class ResponseUrl:
    """The right to answer one act. `message` is what the person acted on, if it was a message."""

    user: str
    channel: Channel
    issued_at: float
    message: Message | None = None
    uses: int = 0


class Interactions:
    """Triggers and response URLs that were given out. `base` returns where this server listens."""

    def __init__(self, clock: Clock, workspace: Workspace, messages: Messages, base: Callable[[], str]) -> None:
        self._clock = clock
        self._workspace = workspace
        self._messages = messages
        self._base = base
        self._numbers = itertools.count(1)
        self._triggers: dict[str, Trigger] = {}
        self._responses: dict[str, ResponseUrl] = {}

    def act(self, kind: str, user: str) -> Json:
        """Return the fields that every interaction has."""
        person = self._workspace.people.get(user) or self._workspace.add_person(user)
        shown = {"id": user, "username": person.name, "name": person.name, "team_id": person.team_id}
        return {
            "type": kind,
            "user": shown,
            "api_app_id": APP,
            "token": VERIFICATION_TOKEN,
            "team": self._workspace.team,
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def trigger(self, user: str) -> str:
        """Return a new trigger of a person's act."""
        trigger_id = f"{next(self._numbers)}.1234567890.{secrets.token_hex(8)}"
        self._triggers[trigger_id] = Trigger(user, self._clock.monotonic())
        return trigger_id

    def exchange(self, params: Json) -> Trigger:
        """Use the trigger of a call up.

        Raises:
            Refusal: `invalid_trigger_id`, `exchanged_trigger_id` or `expired_trigger_id`.
        """
        trigger = self._triggers.get(required(params, "trigger_id"))
        if trigger is None:
            raise Refusal("invalid_trigger_id")
        if trigger.is_used:
            raise Refusal("exchanged_trigger_id")
        if self._clock.monotonic() - trigger.issued_at > TRIGGER_TTL.total_seconds():
            raise Refusal("expired_trigger_id")
        trigger.is_used = True
        return trigger

    def response_url(self, user: str, channel: Channel, message: Message | None = None) -> str:
        """Return a new URL that answers an act of a person in a channel."""
        key = f"{next(self._numbers)}/{secrets.token_hex(12)}"
        self._responses[key] = ResponseUrl(user, channel, self._clock.monotonic(), message)
        return f"{self._base()}/actions/{key}"

    def respond(self, key: str, params: Json) -> None:
        """Carry out what was posted to a response URL.

        Raises:
            Refusal: `expired_url`, `used_url`, or what is wrong with the content.
        """
        given = self._responses.get(key)
        if given is None or self._clock.monotonic() - given.issued_at > RESPONSE_TTL.total_seconds():
            raise Refusal("expired_url", status=404)
        if given.uses >= RESPONSE_USES:
            raise Refusal("used_url", status=404)
        given.uses += 1
        self.answer(given, params)

    def answer(self, given: ResponseUrl, params: Json) -> None:
        """Show what answers a person's act: to that person alone, unless it says `in_channel`."""
        channel, message = given.channel, given.message
        if params.get("delete_original"):
            self._delete(channel, message)
        elif params.get("replace_original") and message is not None:
            self._replace(channel, message, params)
        else:
            self._show(given, params)

    def answered_by_ack(self, user: str, channel: Channel) -> Callable[[Json], Any]:
        """Return what shows the message that may come with the acknowledgement of a command."""

        def show(answer: Json) -> None:
            if answer.get("text") or answer.get("blocks"):
                self.answer(ResponseUrl(user, channel, self._clock.monotonic()), answer)

        return show

    def _show(self, given: ResponseUrl, params: Json) -> None:
        content = content_of(params)
        in_channel = params.get("response_type") == "in_channel"
        message = Message(
            ts=self._workspace.next_ts(),
            channel=given.channel.id,
            user=BOT_USER,
            bot_id=BOT,
            text=content.text,
            blocks=content.blocks,
            thread_ts=params.get("thread_ts"),
            shown_to="" if in_channel else given.user,
        )
        if in_channel:
            self._messages.add(given.channel, message)
        else:
            given.channel.ephemeral.append(message)

    def _replace(self, channel: Channel, message: Message, params: Json) -> None:
        content = content_of(params)
        message.blocks = content.blocks
        message.say(content.text)

    def _delete(self, channel: Channel, message: Message | None) -> None:
        if message is None:
            return
        if message in channel.ephemeral:
            channel.ephemeral.remove(message)
        else:
            self._messages.remove(channel, message)
