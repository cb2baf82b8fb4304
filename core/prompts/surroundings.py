"""What came with a message or happened around it, as reminders: quotes, files, talk, later changes.

Words of people stand in lines that begin with `> `, under a line of the host that says whose they
are. So they can pose neither as the host nor as somebody else's words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from core.contracts.addresses import Quote
from core.contracts.attachments import StoredAttachment
from core.contracts.messages import ReminderPart
from core.prompts.escaping import escape_user_text, one_line
from core.prompts.reminders import ReminderKind

QUOTE_CHARS = 1_000
"""The most that is told of a message that was replied to or changed."""
OVERHEARD_MESSAGES = 50
OVERHEARD_CHARS = 8_000
TRANSCRIPT_CHARS = 20_000
"""The most that is told of one recording; ten minutes of fast speech are half of it."""
_SAYING_CHARS = 2_000
_PATH_CHARS = 4_096
_HINT_CHARS = 120
_NO_NOTES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Somebody's words. `at` is in the time zone that it is told in."""

    name: str
    identity: str
    at: datetime
    text: str
    is_bot: bool = False


def reply_reminder(quote: Quote) -> ReminderPart:
    """Return what the message behind it replies to."""
    whose = "your own message" if quote.by_agent else f"a message of {one_line(quote.author) or 'somebody'}"
    text = f"What follows replies to {whose}, quoted here:\n{_quoted(quote.text, QUOTE_CHARS)}"
    return ReminderPart(kind=ReminderKind.REPLY, text=text)


def forwarded_reminder(origin: str) -> ReminderPart:
    """Return whose words the message behind it really is made of."""
    text = f"What follows was forwarded: {one_line(origin)} wrote it, not its sender."
    return ReminderPart(kind=ReminderKind.FORWARDED, text=text)


def unsupported_reminder(what: str) -> ReminderPart:
    """Return what came with the message and cannot be taken in."""
    text = f"With what follows came {one_line(what)}, which you cannot be given."
    return ReminderPart(kind=ReminderKind.UNSUPPORTED, text=text)


def attachments_reminder(attachments: Sequence[StoredAttachment], notes: Mapping[str, str] = _NO_NOTES) -> ReminderPart:
    """Return where the files of a message lie, and why others were not taken.

    `notes` are sentences on what else there is to know of a file, by its id: why it is not shown as an image.
    """
    lines = [_file_line(attachment, notes.get(attachment.id, "")) for attachment in attachments]
    return ReminderPart(kind=ReminderKind.ATTACHMENTS, text="\n".join(["With what follows came:", *lines]))


def spoken_reminder(names: Sequence[str]) -> ReminderPart:
    """Return that the words behind it were spoken, in these files."""
    files = " and ".join(one_line(name) for name in names)
    text = f"What follows was spoken in {files} and written down by a machine, which may have misheard words."
    return ReminderPart(kind=ReminderKind.VOICE, text=text)


def transcript_reminder(name: str, transcript: str) -> ReminderPart:
    """Return what was said in a file that came with other words."""
    head = f"Said in {one_line(name)} and written down by a machine, which may have misheard words:"
    return ReminderPart(kind=ReminderKind.VOICE, text=f"{head}\n{_quoted(transcript, TRANSCRIPT_CHARS)}")


def late_part_reminder() -> ReminderPart:
    """Return that the message behind it came too late for its album."""
    return ReminderPart(kind=ReminderKind.ALBUM, text="What follows belongs to the album before.")


def waited_reminder(first: datetime, last: datetime, now: datetime) -> ReminderPart:
    """Return how long the messages behind it waited while the host was down; all in one time zone."""
    sent = f"{_when(first)}" if _when(first) == _when(last) else f"between {_when(first)} and {_when(last)}"
    text = f"The host was not running: what follows was sent {sent} and is read only now, {_when(now)}."
    return ReminderPart(kind=ReminderKind.WAITED, text=text)


def steering_reminder(*, by_requester: bool) -> ReminderPart:
    """Return that the message behind it came while the turn was under way."""
    whose = "" if by_requester else " It is not from whom you are working for, but from somebody who may steer you."
    text = f"What follows was said while you were at work; take it into account and go on.{whose}"
    return ReminderPart(kind=ReminderKind.STEERING, text=text)


def overheard_reminder(sayings: Sequence[Saying]) -> ReminderPart:
    """Return what was said around the agent, oldest first; the newest is kept where it is too much."""
    shown: list[str] = []
    room = OVERHEARD_CHARS
    for saying in reversed(sayings[-OVERHEARD_MESSAGES:]):
        entry = f"{_head(saying)}:\n{_quoted(saying.text, _SAYING_CHARS)}"
        room -= len(entry)
        if room < 0:
            break
        shown.append(entry)
    left_out = ["(Earlier messages are left out.)"] if len(shown) < len(sayings) else []
    head = "Said here since your last turn and not addressed to you; it asks nothing of you:"
    return ReminderPart(kind=ReminderKind.OVERHEARD, text="\n".join([head, *left_out, *reversed(shown)]))


def changes_reminder(changes: Sequence[str]) -> ReminderPart:
    """Return what became of earlier messages: texts of the functions below."""
    text = "\n".join(["Since your last turn; none of it needs an answer by itself:", *changes])
    return ReminderPart(kind=ReminderKind.CHANGES, text=text)


def edited(before: Saying, after: str) -> str:
    """Return that somebody changed a message."""
    was, now = _quoted(before.text, QUOTE_CHARS), _quoted(after, QUOTE_CHARS)
    return f"{_head(before)}, changed since. It was:\n{was}\nIt is now:\n{now}"


def deleted(message: Saying) -> str:
    """Return that a message is gone."""
    return f"{_head(message)}, deleted since:\n{_quoted(message.text, _HINT_CHARS)}"


def reacted(who: Saying, emoji: Sequence[str], text: str) -> str:
    """Return what somebody's reactions to a message of the agent are now."""
    did = f"reacted with {one_line(' '.join(emoji))} to" if emoji else "took back a reaction to"
    return f"{_head(who)}, {did} your message:\n{_quoted(text, _HINT_CHARS)}"


def _head(saying: Saying) -> str:
    bot = ", a bot" if saying.is_bot else ""
    return f"{one_line(saying.name)} ({one_line(saying.identity)}{bot}), {_when(saying.at)}"


def _when(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _quoted(text: str, limit_chars: int) -> str:
    lines = [f"> {line}" for line in escape_user_text(text[:limit_chars]).splitlines()] or ["> (without text)"]
    cut = [] if len(text) <= limit_chars else [f"({limit_chars:,} of {len(text):,} characters)"]
    return "\n".join([*lines, *cut])


def _file_line(attachment: StoredAttachment, note: str) -> str:
    name = one_line(attachment.name)
    if not attachment.path:
        return f"- {name}, which was not taken: {one_line(attachment.refusal)}"
    kind, path = one_line(attachment.media_type), one_line(attachment.path, _PATH_CHARS)
    line = f"- {name} ({kind}, {attachment.size_bytes:,} bytes): {path}"
    return f"{line}\n  {one_line(note)}" if note else line
