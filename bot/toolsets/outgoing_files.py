"""Copies of files on their way into a chat: what is sent is what was judged, whatever becomes of the original."""

from __future__ import annotations

import os
import re
from pathlib import Path

from core.contracts.addresses import FileContent
from core.contracts.ids import CallId
from core.tools.overflow import file_stem
from core.tools.threads import run_to_end

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS = 80


class OutgoingFiles:
    """Keeps copies in one folder, closed to other users, until they were sent."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    async def keep(self, key: str, name: str, data: bytes) -> Path:
        """Write a copy under a key of the whole host; return its absolute path, or raise `OSError`."""
        return await run_to_end(self._keep, key, name, data)

    async def discard(self, content: FileContent) -> None:
        """Remove the copy that an item of the outbox names; a file elsewhere is left alone."""
        path = Path(content.path)
        if path.parent == self._root:
            await run_to_end(path.unlink, True)

    def _keep(self, key: str, name: str, data: bytes) -> Path:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._root / f"{file_stem(CallId(key))}-{_ODD.sub('_', name)[-_NAME_CHARS:]}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path
