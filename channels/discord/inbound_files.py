"""What comes with a message beside its text: files, and things that cannot be taken in; pure."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath

from channels.discord.handles import FileHandle
from channels.discord.inbound_json import LABEL_LIMIT_CHARS, Json, id_if_any, id_of, label, parts
from core.contracts.addresses import Attachment

_UNSUPPORTED = {
    "sticker_items": "a sticker",
    "poll": "a poll",
    "activity": "an invitation to an activity",
    "soundboard_sounds": "a sound",
}
"""docs.discord.com/developers/resources/message#message-object, read on 2026-11-30."""

_PLAIN_TYPE = "application/octet-stream"


def attachments(message: Json, *, source: Json | None = None) -> tuple[Attachment, ...]:
    """Return the files of a message.

    Args:
        message: The message that holds them now.
        source: What was passed on with the message, where the files are its.

    Raises:
        MalformedEvent: The message has no id.
    """
    channel, own_id = id_of(message, "channel_id"), id_of(message)
    found = []
    for file in parts(message if source is None else source, "attachments"):
        attachment_id, url = id_if_any(file, "id"), file.get("url")
        if attachment_id is None or not isinstance(url, str):
            continue
        handle = FileHandle(channel=channel, message=own_id, attachment=attachment_id, url=url)
        found.append(_attachment(file, handle))
    return tuple(found)


def unsupported(message: Json) -> str:
    """Return in words what came with a message and cannot be taken in; empty for nothing."""
    return next((words for kind, words in _UNSUPPORTED.items() if message.get(kind)), "")


def in_words(message: Json) -> str:
    """Return what a message without text is: "a file, plan.pdf"; empty where that is not known."""
    for file in parts(message, "attachments"):
        name = _file_name(file.get("filename"))
        return f"a file, {name}" if name else "a file"
    return unsupported(message) or ("an embed" if parts(message, "embeds") else "")


def _attachment(file: Json, handle: FileHandle) -> Attachment:
    size = file.get("size")
    name = _file_name(file.get("filename")) or "file"
    named = label(file.get("content_type"))
    return Attachment(
        handle=str(handle),
        name=name,
        media_type=named or mimetypes.guess_type(name)[0] or _PLAIN_TYPE,
        size_bytes=size if isinstance(size, int) and size >= 0 else None,
    )


def _file_name(name: object) -> str:
    """Return a file's name without folders, and with its end, which says what it is, kept."""
    if not isinstance(name, str):
        return ""
    last = PurePosixPath(name.replace("\\", "/")).name
    if not last.strip("."):
        return ""  # a folder
    return label(last if len(last) <= LABEL_LIMIT_CHARS else f"{last[:80]}…{last[-40:]}")
