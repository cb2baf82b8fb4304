"""Masking of secret values, by exact value, at every sink."""

from __future__ import annotations

from typing import Protocol


class StreamMask(Protocol):
    """Masks one stream; holds back only a tail that may be the beginning of a secret."""

    def feed(self, text: str) -> str:
        """Return what can safely be shown now."""
        ...

    def finish(self) -> str:
        """Return what was held back, masked."""
        ...


class Redactor(Protocol):
    """Knows every secret value of this host. Thread-safe; values may be added at any time."""

    def mask(self, text: str) -> str:
        """Return `text` with every known secret value replaced by `[secret NAME]`."""
        ...

    def stream(self) -> StreamMask:
        """Return a mask for text that arrives in pieces."""
        ...
