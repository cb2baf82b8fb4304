"""Streamed messages of a fake Slack: started, appended to, stopped, and over after a while by themselves.

After docs.slack.dev/reference/methods/chat.startStream, appendStream and stopStream as read on
2026-11-30. That a stream ends minutes after its start, and how much it may hold, is documented
nowhere: slackapi/python-slack-sdk#1859 and slackapi/node-slack-sdk#2702 tell of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.slack_blocks import decoded, message_blocks
from tests.platforms.slack_message import EXPIRED, STREAMED, STREAMING, Message, as_event, as_json
from tests.platforms.slack_messages import Messages, check_markdown, metadata_of
from tests.platforms.slack_refusals import Refusal, invalid_arguments, required
from tests.platforms.slack_workspace import BOT, BOT_USER, Channel, Json, Workspace

LIFETIME = timedelta(minutes=5)
LIMIT_CHARS = 4000

_TASK_STATES = {"pending", "in_progress", "complete", "error"}
_CARD_TEXTS = ("title", "details", "output")


class Streams:
    """Carries out the three methods of a stream.

    `limit_chars` bounds what one message may hold: its text and the texts of its task cards.
    `on_status` is told the session status that a stop sets, with channel and thread.
    """

    def __init__(
        self,
        clock: Clock,
        workspace: Workspace,
        messages: Messages,
        on_status: Callable[[Channel, str, str], Any],
    ) -> None:
        self.lifetime = LIFETIME
        self.limit_chars = LIMIT_CHARS
        self._clock = clock
        self._workspace = workspace
        self._messages = messages
        self._on_status = on_status

    def start(self, params: Json) -> Json:
        """Carry out chat.startStream."""
        channel = self._workspace.writable(params)
        self._check_recipient(channel, params)
        mode = params.get("task_display_mode")
        if mode not in {None, "timeline", "plan", "dense"}:
            raise invalid_arguments("must be one of: timeline, plan, dense [json-pointer:/task_display_mode]")
        message = Message(
            thread_ts=self._messages.thread_of(channel, params),
            ts=self._workspace.next_ts(),
            channel=channel.id,
            user=BOT_USER,
            bot_id=BOT,
            is_markdown=True,
            stream=STREAMING,
            stream_ends_at=self._clock.monotonic() + self.lifetime.total_seconds(),
        )
        self._write(message, params)
        channel.messages[message.ts] = message
        self._messages.tell(channel, as_event(channel, message))
        return {"channel": channel.id, "ts": message.ts}

    def append(self, params: Json) -> Json:
        """Carry out chat.appendStream."""
        channel, message = self._streaming(params)
        if not params.get("markdown_text") and not params.get("chunks"):
            raise Refusal("no_text")
        self._write(message, params)
        return {"channel": channel.id, "ts": message.ts}

    def stop(self, params: Json) -> Json:
        """Carry out chat.stopStream; what it says comes behind what was streamed."""
        channel, message = self._streaming(params)
        blocks, metadata = message_blocks(params.get("blocks")), metadata_of(params)
        previous = as_json(channel, message)
        self._write(message, params)
        message.blocks = [*message.blocks, *blocks]
        message.metadata = metadata or message.metadata
        message.stream = STREAMED
        self._messages.changed(channel, message, previous)
        if params.get("session_status") and message.thread_ts:
            self._on_status(channel, message.thread_ts, str(params["session_status"]))
        return {"channel": channel.id, "ts": message.ts, "message": as_json(channel, message, metadata=True)}

    def _check_recipient(self, channel: Channel, params: Json) -> None:
        if channel.kind == "im":
            return
        for name in ("recipient_team_id", "recipient_user_id"):
            if not params.get(name):
                raise Refusal(f"missing_{name}")
        self._workspace.person(params["recipient_user_id"])

    def _streaming(self, params: Json) -> tuple[Channel, Message]:
        channel = self._workspace.joined(params)
        message = self._messages.own(channel, required(params, "ts"), "message_not_owned_by_app")
        if message.stream == STREAMING and not message.is_streaming(self._clock.monotonic()):
            message.stream = EXPIRED
        if message.stream != STREAMING:
            raise Refusal("message_not_in_streaming_state")
        return channel, message

    def _write(self, message: Message, params: Json) -> None:
        """Put the text and the chunks of a call behind what is there, all of it or nothing."""
        chunks = _chunks(params)
        written = str(params.get("markdown_text") or "")
        check_markdown(written)
        text = message.text + written + "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
        shown = [*message.chunks, *(chunk for chunk in chunks if chunk["type"] != "markdown_text")]
        if len(text) + _size(shown) > self.limit_chars:
            raise Refusal("msg_too_long")
        streamed = [block for chunk in shown if chunk["type"] == "blocks" for block in chunk["blocks"]]
        message.blocks = message_blocks(streamed)
        message.chunks = shown
        message.say(text)


def _chunks(params: Json) -> list[Json]:
    chunks = decoded(params.get("chunks") or [])
    if not isinstance(chunks, list) or not all(map(_fits, chunks)):
        raise Refusal("invalid_chunks")
    return chunks


def _fits(chunk: Any) -> bool:
    match chunk:
        case {"type": "markdown_text", "text": str()} | {"type": "plan_update", "title": str()}:
            return True
        case {"type": "task_update", "id": str(), "title": str(), "status": status}:
            return status in _TASK_STATES
        case {"type": "blocks", "blocks": list()}:
            return True
        case _:
            return False


def _size(chunks: list[Json]) -> int:
    """Return how many characters the cards hold; the last update of a task is what stands there."""
    cards = {(chunk["type"], chunk.get("id")): chunk for chunk in chunks}
    return sum(len(str(card.get(name) or "")) for card in cards.values() for name in _CARD_TEXTS)
