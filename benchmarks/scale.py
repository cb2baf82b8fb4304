"""How much a benchmark does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """`quick` is for looking whether a benchmark works, not for its figures."""

    quick: bool

    def of(self, full: int, quick: int) -> int:
        """Return the number for this scale."""
        return quick if self.quick else full
