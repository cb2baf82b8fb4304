"""The messages of a fake Slack, under its rules: posted, changed, deleted, reacted to; no HTTP here.

Limits and errors follow docs.slack.dev/reference/methods/chat.postMessage and chat.update as read on 2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.slack_blocks import MARKDOWN_LIMIT_CHARS, Blocks, decoded, message_blocks, texts
from tests.platforms.slack_files import StoredFile
from tests.platforms.slack_message import Message, as_change, as_event, as_json
from tests.platforms.slack_pages import flag
from tests.platforms.slack_refusals import Refusal, required
from tests.platforms.slack_workspace import BOT, BOT_USER, Channel, Json, Workspace

TEXT_LIMIT_CHARS = 40_000
UPDATE_LIMIT_BYTES = 4000
"""Documented as characters; counted as UTF-8 where it was measured, so the stricter of both holds here."""

_EMOJI = re.compile(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?")

Emit = Callable[[Json], Any]


@dataclass
class Content:
    """What a call says: text, blocks, attachments; `warnings` go into the answer."""

    text: str
    blocks: Blocks = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    is_markdown: bool = False
    warnings: list[str] = field(default_factory=list)


class Messages:
    """Carries out what is done to messages. `emit` gets the events of it.

    `edit_window` is how long a message may be changed, as a workspace can set it; None: for ever.
    """

    def __init__(self, clock: Clock, workspace: Workspace, emit: Emit) -> None:
        self.edit_window: timedelta | None = None
        self._clock = clock
        self._workspace = workspace
        self._emit = emit

    # What the app does

    def post(self, params: Json) -> Json:
        """Carry out chat.postMessage."""
        channel = self._workspace.writable(params)
        content = content_of(params)
        message = self._new(channel, params, content)
        self.add(channel, message)
        return self._answer(channel, message) | _warned(content)

    def post_ephemeral(self, params: Json) -> Json:
        """Carry out chat.postEphemeral; nothing is kept of it that could be read again."""
        channel = self._workspace.writable(params)
        user = required(params, "user")
        if user not in channel.members:
            raise Refusal("user_not_in_channel")
        message = self._new(channel, params, content_of(params))
        message.shown_to, message.metadata = user, {}
        channel.ephemeral.append(message)
        return {"message_ts": message.ts}

    def share(self, params: Json, files: list[StoredFile]) -> None:
        """Post files of the app, as files.completeUploadExternal does; `initial_comment` is the text."""
        channel = self._workspace.writable(params)
        content = Content(str(params.get("initial_comment") or ""))
        message = self._new(channel, params, content)
        message.files, message.subtype = files, "file_share"
        for file in files:
            file.shares.append((channel.id, message.ts))
        self.add(channel, message)

    def update(self, params: Json) -> Json:
        """Carry out chat.update; a text without blocks takes the blocks away."""
        channel = self._workspace.joined(params)
        message = self.own(channel, required(params, "ts"), "cant_update_message")
        if message.is_streaming(self._clock.monotonic()):
            raise Refusal("streaming_state_conflict")
        if channel.is_archived:
            raise Refusal("is_inactive")
        self._check_edit_window(message)
        if len(str(params.get("text") or "").encode()) > UPDATE_LIMIT_BYTES:
            raise Refusal("msg_too_long")
        content = content_of(params)
        if "metadata" in params:
            message.metadata = metadata_of(params)
        previous = as_json(channel, message)
        message.blocks, message.attachments = content.blocks, content.attachments
        message.is_markdown = content.is_markdown
        message.say(content.text)
        self.changed(channel, message, previous, by=BOT_USER)
        return self._answer(channel, message) | {"text": message.text} | _warned(content)

    def delete(self, params: Json) -> Json:
        """Carry out chat.delete."""
        channel = self._workspace.joined(params)
        message = self.own(channel, required(params, "ts"), "cant_delete_message")
        self.remove(channel, message)
        return {"channel": channel.id, "ts": message.ts}

    def react(self, params: Json) -> Json:
        """Carry out reactions.add."""
        channel, message, name = self._reacted(params)
        users = message.reactions.setdefault(name, [])
        if BOT_USER in users:
            raise Refusal("already_reacted")
        self.add_reaction(channel, message, name, BOT_USER)
        return {}

    def unreact(self, params: Json) -> Json:
        """Carry out reactions.remove."""
        channel, message, name = self._reacted(params)
        if BOT_USER not in message.reactions.get(name, []):
            raise Refusal("no_reaction")
        self.remove_reaction(channel, message, name, BOT_USER)
        return {}

    # What anybody does

    def add(self, channel: Channel, message: Message) -> None:
        """Keep a new message, and tell of it."""
        message.versions.append(message.text)
        channel.messages[message.ts] = message
        self.tell(channel, as_event(channel, message))

    def changed(self, channel: Channel, message: Message, previous: Json, *, by: str = "") -> None:
        """Tell that a message is not what it was; `by` edited it, or nobody did."""
        ts = self._workspace.next_ts()
        if by:
            message.edited = {"user": by, "ts": ts}
        now = as_json(channel, message)
        self.tell(channel, as_change(channel, "message_changed", ts, message=now, previous_message=previous))

    def remove(self, channel: Channel, message: Message) -> None:
        """Delete a message and tell of it; a root with replies leaves its place."""
        previous = as_json(channel, message)
        if any(reply is not message for reply in channel.replies(message.ts)):
            message.become_tombstone()
            self.changed(channel, message, previous)
            return
        del channel.messages[message.ts]
        ts = self._workspace.next_ts()
        gone = as_change(channel, "message_deleted", ts, deleted_ts=message.ts, previous_message=previous)
        self.tell(channel, gone)

    def add_reaction(self, channel: Channel, message: Message, name: str, user: str) -> None:
        message.reactions.setdefault(name, []).append(user)
        self._tell_reaction("reaction_added", channel, message, name, user)

    def remove_reaction(self, channel: Channel, message: Message, name: str, user: str) -> None:
        message.reactions[name].remove(user)
        if not message.reactions[name]:
            del message.reactions[name]
        self._tell_reaction("reaction_removed", channel, message, name, user)

    def tell(self, channel: Channel, event: Json) -> None:
        """Tell an event of a channel, if the bot is in it."""
        if channel.has_bot:
            self._emit(event)

    def of(self, channel: Channel, ts: str) -> Message:
        """Return a message that is there.

        Raises:
            Refusal: `message_not_found`.
        """
        message = channel.messages.get(ts)
        if message is None or message.is_gone:
            raise Refusal("message_not_found")
        return message

    def own(self, channel: Channel, ts: str, otherwise: str) -> Message:
        """Return a message of this app; one of somebody else is refused as `otherwise`."""
        message = self.of(channel, ts)
        if not message.from_bot:
            raise Refusal(otherwise)
        return message

    def thread_of(self, channel: Channel, params: Json) -> str | None:
        """Return the root that a call replies to.

        Raises:
            Refusal: `thread_not_found`, or `cannot_reply_to_message` for what is itself a reply.
        """
        thread = params.get("thread_ts")
        if not thread:
            return None
        root = channel.messages.get(str(thread))
        if root is None:
            raise Refusal("thread_not_found")
        if root.is_reply:
            raise Refusal("cannot_reply_to_message")
        return root.ts

    def _new(self, channel: Channel, params: Json, content: Content) -> Message:
        is_broadcast = flag(params, "reply_broadcast")
        return Message(
            thread_ts=self.thread_of(channel, params),
            ts=self._workspace.next_ts(),
            channel=channel.id,
            user=BOT_USER,
            bot_id=BOT,
            text=content.text,
            blocks=content.blocks,
            attachments=content.attachments,
            is_markdown=content.is_markdown,
            is_broadcast=is_broadcast,
            subtype="thread_broadcast" if is_broadcast else "",
            unfurls=flag(params, "unfurl_links") or flag(params, "unfurl_media", default=True),
            metadata=metadata_of(params),
        )

    def _answer(self, channel: Channel, message: Message) -> Json:
        return {"channel": channel.id, "ts": message.ts, "message": as_json(channel, message, metadata=True)}

    def _check_edit_window(self, message: Message) -> None:
        if self.edit_window is None:
            return
        age = self._clock.now() - datetime.fromtimestamp(float(message.ts), self._clock.now().tzinfo)
        if age > self.edit_window:
            raise Refusal("edit_window_closed")

    def _reacted(self, params: Json) -> tuple[Channel, Message, str]:
        channel = self._workspace.joined(params)
        if not params.get("timestamp"):
            raise Refusal("no_item_specified")
        name = str(params.get("name", "")).strip(":")
        if not _EMOJI.fullmatch(name):
            raise Refusal("invalid_name")
        return channel, self.of(channel, str(params["timestamp"])), name

    def _tell_reaction(self, kind: str, channel: Channel, message: Message, name: str, user: str) -> None:
        item = {"type": "message", "channel": channel.id, "ts": message.ts}
        ts = self._workspace.next_ts()
        event = {"type": kind, "user": user, "reaction": name, "item": item, "item_user": message.user, "event_ts": ts}
        self.tell(channel, event)


def content_of(params: Json) -> Content:
    """Return what a call says.

    Raises:
        Refusal: `no_text`, `markdown_text_conflict`, `msg_too_long`, `invalid_blocks`, `msg_blocks_too_long`.
    """
    text, written = str(params.get("text") or ""), str(params.get("markdown_text") or "")
    if written:
        if text or params.get("blocks"):
            raise Refusal("markdown_text_conflict")
        check_markdown(written)
        return Content(written, is_markdown=True)
    blocks = message_blocks(params.get("blocks"))
    attachments = decoded(params.get("attachments")) or []
    if not (text.strip() or blocks or attachments):
        raise Refusal("no_text")
    warnings = ["message_truncated"] if len(text) > TEXT_LIMIT_CHARS else []
    shown = text[:TEXT_LIMIT_CHARS] or " ".join(texts(blocks))
    return Content(shown, blocks, attachments, warnings=warnings)


def check_markdown(text: str) -> None:
    """Hold a `markdown_text` to its limit."""
    if len(text) > MARKDOWN_LIMIT_CHARS:
        raise Refusal("msg_too_long")


def metadata_of(params: Json) -> Json:
    """Return the metadata of a call.

    Raises:
        Refusal: `invalid_metadata_format`.
    """
    metadata = decoded(params.get("metadata") or {})
    if not isinstance(metadata, dict):
        raise Refusal("invalid_metadata_format")
    fits = isinstance(metadata.get("event_type"), str) and isinstance(metadata.get("event_payload"), dict)
    if metadata and not fits:
        raise Refusal("invalid_metadata_format")
    return metadata


def _warned(content: Content) -> Json:
    if not content.warnings:
        return {}
    return {"warning": ",".join(content.warnings), "response_metadata": {"warnings": content.warnings}}
