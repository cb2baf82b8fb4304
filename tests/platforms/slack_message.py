"""One message of a fake Slack: what is kept of it, and how the Web API and events show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.platforms.slack_blocks import Blocks, elements
from tests.platforms.slack_files import StoredFile
from tests.platforms.slack_workspace import APP, BOT, OTHER_TEAM, TEAM, Channel, Person

Json = dict[str, Any]

STREAMING, STREAMED, EXPIRED = "streaming", "streamed", "expired"


@dataclass
class Message:
    """One message as people see it now; `versions` are the texts it had, oldest first.

    `stream` says how far a streamed message is: streaming, streamed, expired, or empty for others;
    `chunks` are what was streamed beside text, `stream_ends_at` is seconds of the server's clock.
    `reactions` are names with who gave them. `shown_to` is who alone sees an ephemeral message.
    `unfurls`: links in it may get a preview.
    """

    ts: str
    channel: str
    user: str
    text: str = ""
    team: str = TEAM
    bot_id: str = ""
    thread_ts: str | None = None
    subtype: str = ""
    blocks: Blocks = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    metadata: Json = field(default_factory=dict)
    files: list[StoredFile] = field(default_factory=list)
    reactions: dict[str, list[str]] = field(default_factory=dict)
    edited: Json | None = None
    client_msg_id: str = ""
    is_markdown: bool = False
    is_broadcast: bool = False
    shown_to: str = ""
    unfurls: bool = True
    stream: str = ""
    stream_ends_at: float = 0.0
    chunks: list[Json] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    @property
    def from_bot(self) -> bool:
        """Whether this app wrote it."""
        return self.bot_id == BOT

    @property
    def is_gone(self) -> bool:
        """Whether only the place of a deleted root is left, above its replies."""
        return self.subtype == "tombstone"

    @property
    def is_reply(self) -> bool:
        return self.thread_ts not in {None, self.ts}

    @property
    def buttons(self) -> dict[str, str]:
        """Labels and values of the buttons, in their order; the action id stands for a value that is not there."""
        buttons = [element for _, element in elements(self.blocks) if element.get("type") == "button"]
        return {button["text"]["text"]: button.get("value") or button["action_id"] for button in buttons}

    def is_streaming(self, now: float) -> bool:
        """Whether text can be appended, at a time of the server's clock."""
        return self.stream == STREAMING and now < self.stream_ends_at

    def say(self, text: str) -> None:
        """Change the text, and remember that it was there."""
        self.text = text
        self.versions.append(text)

    def become_tombstone(self) -> None:
        """Leave only the place, as Slack does with a deleted message that has replies."""
        self.subtype, self.user, self.bot_id = "tombstone", "USLACKBOT", ""
        self.blocks, self.attachments, self.files, self.metadata = [], [], [], {}
        self.say("This message was deleted.")


def as_json(channel: Channel, message: Message, *, metadata: bool = False) -> Json:
    """Return a message as the Web API shows it; a root with replies tells of them."""
    shown: Json = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
    shown["team"] = message.team
    if message.subtype:
        shown["subtype"] = message.subtype
    if message.bot_id:
        shown |= {"bot_id": message.bot_id}
    if message.from_bot:
        shown |= {"app_id": APP, "bot_profile": {"id": BOT, "app_id": APP, "name": "Lodger", "team_id": TEAM}}
    if message.is_gone:
        shown["hidden"] = True
    for name in ("thread_ts", "client_msg_id", "edited"):
        if value := getattr(message, name):
            shown[name] = value
    if message.blocks or message.client_msg_id:
        shown["blocks"] = message.blocks or rich_text(message.text)
    if message.attachments:
        shown["attachments"] = message.attachments
    if message.files:
        shown |= {"files": [file.as_json() for file in message.files], "upload": False}
    if message.reactions:
        shown["reactions"] = [
            {"name": name, "users": list(users), "count": len(users)} for name, users in message.reactions.items()
        ]
    if metadata and message.metadata:
        shown["metadata"] = message.metadata
    return shown | _thread(channel, message)


def as_event(channel: Channel, message: Message) -> Json:
    """Return a message as its event shows it: without what came later."""
    shown = as_json(channel, message)
    for name in ("reply_count", "reply_users", "reply_users_count", "latest_reply", "reactions"):
        shown.pop(name, None)
    if not message.is_reply:
        shown.pop("thread_ts", None)
    return shown | {"channel": channel.id, "channel_type": channel.kind, "event_ts": message.ts}


def as_change(channel: Channel, subtype: str, ts: str, **fields: Any) -> Json:
    """Return the event that tells of a change of a message."""
    base = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, "event_ts": ts}
    return base | {"channel": channel.id, "channel_type": channel.kind} | fields


def of_person(person: Person, channel: Channel) -> Json:
    """Return the fields of a message that say who wrote it."""
    strange = {"team": OTHER_TEAM} if person.is_stranger and channel.is_shared else {}
    return {"user": person.id, "bot_id": person.bot_id, **strange}


def rich_text(text: str) -> Blocks:
    """Return the block that Slack's own clients send beside a text."""
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return [{"type": "rich_text", "block_id": "rt", "elements": [section]}]


def _thread(channel: Channel, message: Message) -> Json:
    if message.is_reply:
        root = channel.messages.get(str(message.thread_ts))
        return {"parent_user_id": root.user} if root is not None else {}
    replies = channel.replies(message.ts)
    replies = [reply for reply in replies if reply.ts != message.ts]
    if not replies:
        return {}
    users = list(dict.fromkeys(reply.user for reply in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users": users,
        "reply_users_count": len(users),
        "latest_reply": replies[-1].ts,
    }
