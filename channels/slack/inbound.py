"""From an event of Slack's, as JSON, to what happened; pure.

Who somebody is and how they are called is asked of Slack, so what comes out here names people by id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from channels.slack.message_ids import message_id
from channels.slack.payload import Json, instant, item, items, text
from core.contracts.addresses import Attachment, DeleteBody, EditBody, InboundBody, MessageBody

_SAID = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
_DIRECT = "im"
_PUBLIC = "channel"
_GONE = "tombstone"
"""What Slack leaves of a deleted message that has replies."""
_GONE_FILES = {"tombstone", "hidden_by_limit", "not_visible"}
_UNSUPPORTED = {"huddle_thread": "a huddle"}
_UNTITLED = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """Who the agent is on Slack."""

    team: str
    user: str
    bot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something that somebody did with a message, people by their ids.

    `kind` is Slack's word for the kind of channel, empty where it does not say; `root` the thread's
    first message, None outside of threads; `bot` the id of a bot that did it, `user` of its user.
    """

    key: str
    channel: str
    kind: str
    ts: str
    root: str | None
    user: str
    bot: str
    team: str
    name: str
    body: InboundBody
    sent_at: datetime
    is_mention: bool
    is_shared: bool

    @property
    def is_direct(self) -> bool:
        """Whether it was said in a direct message."""
        return self.kind == _DIRECT or self.channel.startswith("D")

    @property
    def external_id(self) -> str:
        """The message's own id."""
        return message_id(self.root, self.ts)


def parse_event(payload: Json, own: Own) -> Said | None:
    """Return what was done with a message; None for what is no such thing, or is the agent's own doing.

    A mention in a channel comes as two events; they have one key, as have redeliveries, and the
    same message told by another workspace of a shared channel.
    """
    event = item(payload, "event")
    is_shared = payload.get("is_ext_shared_channel") is True
    match text(event, "type"):
        case "message" | "app_mention":
            return _message(event, own, is_shared=is_shared)
        case _:
            return None


def _message(event: Json, own: Own, *, is_shared: bool) -> Said | None:
    match text(event, "subtype"):
        case "message_changed":
            return _edit(event, own, is_shared=is_shared)
        case "message_deleted":
            return _deletion(event, own, is_shared=is_shared)
        case subtype if subtype in _SAID or subtype in _UNSUPPORTED:
            return said(event, own, is_shared=is_shared)
        case _:
            return None


def said(event: Json, own: Own, *, is_shared: bool = False) -> Said | None:
    """Return a message, told now or read from the history; None for the agent's own and for what says nothing."""
    files = tuple(file for one in items(event, "files") if (file := _attachment(one)) is not None)
    gone = len(items(event, "files")) - len(files)
    unsupported = _UNSUPPORTED.get(text(event, "subtype"), "") or ("a file that Slack does not show" if gone else "")
    if not (text(event, "text") or files or unsupported):
        return None
    body = MessageBody(text=text(event, "text"), attachments=files, unsupported=unsupported)
    return _of(event, own, body, channel=text(event, "channel"), kind=text(event, "channel_type"), is_shared=is_shared)


def _edit(event: Json, own: Own, *, is_shared: bool) -> Said | None:
    """Return a person's edit; a preview that Slack put below a link, a pin or a reply changes no words.

    A message with replies that is deleted leaves its place, which Slack tells as a change.
    """
    message, before = item(event, "message"), item(event, "previous_message")
    if text(message, "subtype") == _GONE:
        return _deletion({**event, "deleted_ts": text(message, "ts")}, own, is_shared=is_shared)
    edited = item(message, "edited")
    is_by_person = bool(text(edited, "ts")) and text(edited, "user") != own.user
    if not is_by_person or text(edited, "ts") == text(item(before, "edited"), "ts"):
        return None
    if before and text(before, "text") == text(message, "text"):
        return None
    channel = text(event, "channel")
    body = EditBody(message_key=message_key(channel, text(message, "ts")), text=text(message, "text"))
    key = f"e/{channel}/{text(message, 'ts')}/{text(edited, 'ts')}"
    kind = text(event, "channel_type")
    return _of(message, own, body, channel=channel, kind=kind, key=key, at=text(edited, "ts"), is_shared=is_shared)


def _deletion(event: Json, own: Own, *, is_shared: bool) -> Said | None:
    before, channel = item(event, "previous_message"), text(event, "channel")
    deleted = text(event, "deleted_ts")
    body = DeleteBody(message_key=message_key(channel, deleted))
    key, kind = f"d/{channel}/{deleted}", text(event, "channel_type")
    message = {**before, "ts": deleted}
    return _of(message, own, body, channel=channel, kind=kind, key=key, at=text(event, "ts"), is_shared=is_shared)


def _of(
    message: Json,
    own: Own,
    body: InboundBody,
    *,
    channel: str,
    kind: str,
    is_shared: bool,
    key: str = "",
    at: str = "",
) -> Said | None:
    ts, user, bot = text(message, "ts"), text(message, "user"), text(message, "bot_id")
    sent_at = instant(at or ts)
    if not channel or sent_at is None or instant(ts) is None or not (user or bot):
        return None
    if user == own.user or (bot and bot == own.bot):
        return None
    root = text(message, "thread_ts")
    return Said(
        key=key or message_key(channel, ts),
        channel=channel,
        kind=kind,
        ts=ts,
        root=root if root and root != ts else None,
        user=user,
        bot=bot,
        team=text(message, "user_team") or text(message, "team"),
        name=text(message, "username") or text(item(message, "bot_profile"), "name"),
        body=body,
        sent_at=sent_at,
        is_mention=f"<@{own.user}>" in text(message, "text") or f"<@{own.user}|" in text(message, "text"),
        is_shared=is_shared,
    )


def message_key(channel: str, ts: str) -> str:
    """Return the event key of a message: the same for each of the events that tell of it."""
    return f"m/{channel}/{ts}"


def is_public(kind: str) -> bool:
    """Return whether everybody of the workspace can read that kind of channel."""
    return kind == _PUBLIC


def _attachment(file: Json) -> Attachment | None:
    if not text(file, "id") or text(file, "mode") in _GONE_FILES:
        return None
    size = file.get("size")
    return Attachment(
        handle=text(file, "id"),
        name=text(file, "name") or text(file, "title") or _UNTITLED,
        media_type=text(file, "mimetype") or "application/octet-stream",
        size_bytes=size if isinstance(size, int) else None,
    )
