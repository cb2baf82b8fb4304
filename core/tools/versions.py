"""Which version of a file each conversation has seen, so that no edit lands on a changed file."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from pathlib import Path

from core.contracts.errors import ToolError
from core.contracts.ids import ConversationId


class ReadVersions:
    """Content hashes by conversation and path; the least recently used are forgotten first.

    Lives as long as the process: after a restart nothing has been seen, and an edit is held by
    its exact text alone. Thread-safe.
    """

    def __init__(self, *, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[tuple[ConversationId, Path], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, conversation_id: ConversationId, path: Path, data: bytes) -> None:
        """Remember that the conversation knows the file to hold `data`."""
        with self._lock:
            self._seen[conversation_id, path] = _digest(data)
            self._seen.move_to_end((conversation_id, path))
            while len(self._seen) > self._capacity:
                self._seen.popitem(last=False)

    def require_unchanged(self, conversation_id: ConversationId, path: Path, data: bytes) -> None:
        """Do nothing if the file still is what the conversation saw, or it never saw it.

        Raises:
            ToolError: Somebody changed it in between.
        """
        with self._lock:
            seen = self._seen.get((conversation_id, path))
        if seen is not None and seen != _digest(data):
            raise ToolError(f"{str(path)!r} has changed since you read it; read it again, then change it.")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
