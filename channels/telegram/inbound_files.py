"""What comes with a message beside its text: files, and things that cannot be taken in; pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from channels.telegram.inbound_json import LABEL_LIMIT_CHARS, Json, field, label, part, parts
from core.contracts.addresses import Attachment

_FILE_KINDS = (
    ("animation", "animation.mp4", "video/mp4", "an animation"),
    ("document", "file", "application/octet-stream", "a file"),
    ("voice", "voice.ogg", "audio/ogg", "a voice message"),
    ("audio", "audio", "audio/mpeg", "an audio file"),
    ("video", "video.mp4", "video/mp4", "a video"),
    ("video_note", "video.mp4", "video/mp4", "a video message"),
)
"""Field of a message, name and media type where the platform gives none, and words for it."""

_UNSUPPORTED = {
    "sticker": "a sticker",
    "poll": "a poll",
    "venue": "a place",
    "location": "a location",
    "contact": "a contact",
    "dice": "a dice roll",
    "story": "a story",
    "paid_media": "paid media",
    "game": "a game",
    "invoice": "an invoice",
    "checklist": "a checklist",
    "giveaway": "a giveaway",
    "giveaway_winners": "the winners of a giveaway",
    "gift": "a gift",
    "unique_gift": "a gift",
}
"""core.telegram.org/bots/api#message, read 2026-11-30. A place comes with its location, so it stands first."""


def attachments(message: Json) -> tuple[Attachment, ...]:
    """Return the files of a message.

    Raises:
        MalformedUpdate: A file has no id.
    """
    found: list[Attachment] = []
    if sizes := parts(message, "photo"):
        found.append(_attachment(max(reversed(sizes), key=_area), "photo.jpg", "image/jpeg"))
    for kind, name, media_type, _ in _FILE_KINDS:
        # An animation comes a second time, as a document, for bots that know none.
        if kind in message and not (kind == "document" and "animation" in message):
            found.append(_attachment(field(message, kind, dict), name, media_type))
    return tuple(found)


def unsupported(message: Json) -> str:
    """Return in words what came with a message and cannot be taken in; empty for nothing."""
    return next((words for kind, words in _UNSUPPORTED.items() if kind in message), "")


def in_words(message: Json) -> str:
    """Return what a message without text is: "a photo"; empty where that is not known."""
    if "photo" in message:
        return "a photo"
    for kind, _, _, words in _FILE_KINDS:
        if kind in message:
            name = label(part(message, kind).get("file_name"))
            return f"{words}, {name}" if name else words
    return unsupported(message)


def _area(size: Json) -> int:
    width, height = size.get("width"), size.get("height")
    return width * height if isinstance(width, int) and isinstance(height, int) else 0


def _attachment(file: Json, name: str, media_type: str) -> Attachment:
    size = file.get("file_size")
    return Attachment(
        handle=field(file, "file_id", str),
        name=_file_name(file.get("file_name")) or name,
        media_type=label(file.get("mime_type")) or media_type,
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
