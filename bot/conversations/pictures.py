"""Which files of messages a model is shown as images, and in words why others are not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.contracts.attachments import StoredAttachment
from core.contracts.messages import ImagePart
from core.tools.image_format import HEAD_BYTES, IMAGE_LIMIT_BYTES, NO_IMAGE, ImageFacts, Unfit, examine, is_image

TOGETHER_LIMIT_BYTES = 20_000_000
"""How much may be shown of what enters together. Anthropic takes requests of up to 32 MB, with images in base64:
docs.anthropic.com/en/api/overview, read 2026-12-02."""
_TOO_MUCH = "the images before it are as many as can be shown at once"


@dataclass(slots=True)
class PictureRoom:
    """How many bytes of images may still enter with one input."""

    left_bytes: int = TOGETHER_LIMIT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Images in the order of their files; `notes` say in a sentence, by a file's id, why it is not among them."""

    parts: tuple[ImagePart, ...]
    notes: Mapping[str, str]


async def pictures_of(files: Sequence[StoredAttachment], room: PictureRoom) -> Pictures:
    """Return the images among stored files, by what the files hold, and take their room."""
    parts: list[ImagePart] = []
    notes: dict[str, str] = {}
    for file in files:
        found = await asyncio.to_thread(_look, file)
        if isinstance(found, ImageFacts) and file.size_bytes > room.left_bytes:
            found = Unfit(reason=_TOO_MUCH)
        match found:
            case ImageFacts(media_type=media_type):
                room.left_bytes -= file.size_bytes
                parts.append(ImagePart(attachment_id=file.id, media_type=media_type))
            case Unfit(reason=reason):
                notes[file.id] = f"It is not shown as an image, because {reason}."
            case None:
                pass
    return Pictures(parts=tuple(parts), notes=notes)


def _look(file: StoredAttachment) -> ImageFacts | Unfit | None:
    """Return what a file is as an image; None for what neither is one nor was sent as one."""
    if not file.path:
        return None
    try:
        with Path(file.path).open("rb") as opened:
            head = opened.read(HEAD_BYTES)
            if not is_image(head):
                return Unfit(reason=NO_IMAGE) if file.media_type.lower().startswith("image/") else None
            return examine(head + opened.read(IMAGE_LIMIT_BYTES + 1 - len(head)))
    except OSError:
        return None
