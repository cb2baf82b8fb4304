"""`view_image`: shows a model an image of the workspace, or of the conversation's own files."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from core.contracts.attachments import AttachmentStore, StoredAttachment
from core.contracts.clock import Clock
from core.contracts.errors import ToolError
from core.contracts.ids import AgentId, ConversationId, new_id
from core.contracts.messages import ImagePart, TextPart
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.files_port import FilesFactory
from core.tools.image_format import IMAGE_LIMIT_BYTES, TOO_MANY_BYTES, ImageFacts, Unfit, examine
from core.tools.paths import absolute_path, place_to_read
from core.tools.schema import Arguments, parse, tool_schema
from core.tools.threads import run_to_end

SeesImages = Callable[[AgentId], Awaitable[bool]]
"""Tells whether the model that an agent thinks with now is given images that tools return."""


class ViewImageArguments(Arguments):
    """Arguments of `view_image`."""

    path: str = Field(description="Absolute, or relative to the workspace")


class ViewImageTool:
    """Copies the image beside the files of the conversation's messages, so that every later request has the same bytes.

    Args:
        files: Opens the folders that a call may read.
        attachments: Where the copy is entered.
        root: The folder of all attachments; each conversation has its own in it.
        sees_images: Whether the agent's model sees images at all.
        clock: Dates the copy.
    """

    schema: ClassVar[ToolSchema] = tool_schema(
        "view_image", "Look at an image file: PNG, JPEG, GIF or WebP, up to 3.9 MB.", ViewImageArguments
    )

    def __init__(
        self, *, files: FilesFactory, attachments: AttachmentStore, root: Path, sees_images: SeesImages, clock: Clock
    ) -> None:
        self._files = files
        self._attachments = attachments
        self._root = root
        self._sees_images = sees_images
        self._clock = clock

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(reads=(absolute_path(parse(ViewImageArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart | ImagePart]:
        wanted = parse(ViewImageArguments, arguments)
        if not await self._sees_images(context.agent_id):
            raise ToolError("The model you are cannot see images; use other means, or ask a person what it shows.")
        data, facts = await run_to_end(self._read, wanted.path, context)
        stored = self._row(wanted.path, data, facts, context.conversation_id)
        await run_to_end(_keep, Path(stored.path), data)
        await self._attachments.add_attachments([stored])
        told = f"{facts.media_type}, {facts.width_px} x {facts.height_px} pixels, {len(data):,} bytes"
        return (TextPart(text=told), ImagePart(attachment_id=stored.id, media_type=facts.media_type))

    def _read(self, path: str, context: ToolContext) -> tuple[bytes, ImageFacts]:
        place = place_to_read(path, context)
        files = self._files(place.root)
        known = files.stat(place.path)
        if known.is_dir:
            raise ToolError(f"{path!r} is a folder; list it with glob.")
        if known.size_bytes > IMAGE_LIMIT_BYTES:
            raise ToolError(f"{path!r} cannot be shown: {TOO_MANY_BYTES}. Make it smaller first.")
        data = files.read(place.path, limit_bytes=IMAGE_LIMIT_BYTES + 1)
        match examine(data):
            case Unfit(reason=reason):
                raise ToolError(f"{path!r} cannot be shown: {reason}.")
            case ImageFacts() as facts:
                return data, facts

    def _row(self, path: str, data: bytes, facts: ImageFacts, conversation_id: ConversationId) -> StoredAttachment:
        image_id = new_id("file")
        return StoredAttachment(
            id=image_id,
            conversation_id=conversation_id,
            inbox_id=None,
            position=0,
            name=Path(path).name,
            media_type=facts.media_type,
            size_bytes=len(data),
            path=str(self._root / conversation_id / f"{image_id}.{facts.extension}"),
            created_at=self._clock.now(),
        )


def _keep(path: Path, data: bytes) -> None:
    """Write a new file that nobody else on this machine can read."""
    try:
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise ToolError(f"The image could not be kept, so it cannot be shown: {error.strerror}.") from error


if TYPE_CHECKING:
    _conforms: type[Tool] = ViewImageTool
