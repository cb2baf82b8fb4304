"""Long outputs kept beside the conversation: masked, capped, readable by their owner alone."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from core.contracts.ids import CallId
from core.contracts.secrets import Redactor
from core.contracts.tools import ToolContext
from core.tools.output import ByteDecoder
from core.tools.threads import run_to_end

CAP_BYTES = 20_000_000
"""The most one overflow file holds; what is longer is cut at its end."""

_CHUNK_BYTES = 1 << 16
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class OverflowFiles:
    """Writes overflow files into the folder a context names. A full disk loses the file, not the call."""

    def __init__(self, redactor: Redactor, *, cap_bytes: int = CAP_BYTES) -> None:
        self._redactor = redactor
        self._cap_bytes = cap_bytes

    async def keep(self, text: str, context: ToolContext) -> Path | None:
        """Store `text`, masked; return its file, or None where it could not be kept."""
        return await run_to_end(self._keep, text, context)

    async def keep_spill(self, spill: Path, context: ToolContext) -> Path | None:
        """Store the raw output in `spill`, decoded and masked, and remove `spill`."""
        return await run_to_end(self._keep_spill, spill, context)

    def _keep(self, text: str, context: ToolContext) -> Path | None:
        data = self._redactor.mask(text).encode("utf-8", "replace")
        return _written(context, lambda file: file.write(_cut(data, self._cap_bytes)))

    def _keep_spill(self, spill: Path, context: ToolContext) -> Path | None:
        try:
            with spill.open("rb") as raw:
                return _written(context, lambda file: self._copy_masked(raw, file))
        except FileNotFoundError:
            return None
        finally:
            spill.unlink(missing_ok=True)

    def _copy_masked(self, raw: BinaryIO, file: BinaryIO) -> None:
        decoder, mask = ByteDecoder(), self._redactor.stream()
        room = self._cap_bytes
        while room > 0:
            chunk = raw.read(_CHUNK_BYTES)
            text = mask.feed(decoder.feed(chunk, final=not chunk))
            if not chunk:
                text += mask.finish()
            data = _cut(text.encode(), room)
            file.write(data)
            room -= len(data)
            if not chunk:
                return


def prepare_folder(context: ToolContext) -> None:
    """Create the conversation's overflow folder, closed to other users; raises `OSError`."""
    context.overflow.mkdir(mode=0o700, parents=True, exist_ok=True)


def file_stem(call_id: CallId) -> str:
    """Return a file name for a call; a provider's id may hold anything, so odd ones are hashed."""
    if _PLAIN_NAME.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:32]


def _written(context: ToolContext, write: Callable[[BinaryIO], object]) -> Path | None:
    """Return a new file that `write` has filled; None, and no file, where that failed."""
    try:
        path, file = _create(context)
    except OSError:
        return None
    try:
        with file:
            write(file)
    except OSError:
        path.unlink(missing_ok=True)
        return None
    return path


def _create(context: ToolContext) -> tuple[Path, BinaryIO]:
    prepare_folder(context)
    stem, number = file_stem(context.call_id), 1
    while True:
        path = context.overflow / (f"{stem}.txt" if number == 1 else f"{stem}-{number}.txt")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            number += 1
            continue
        return path, os.fdopen(descriptor, "wb")


def _cut(data: bytes, limit_bytes: int) -> bytes:
    """Return at most `limit_bytes`, never half a character."""
    if len(data) <= limit_bytes:
        return data
    return data[:limit_bytes].decode("utf-8", "ignore").encode()
