"""What a benchmark prints: one figure a line, beside its goal and what others were measured at."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MS = 1_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A goal of DESIGN 18 and its peers' figures. Peers were measured elsewhere: compare ratios alone."""

    goal: str = ""
    peers: str = ""


NO_TARGET = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value. `note` says what the name does not: scale, spread, what was left out."""

    name: str
    value: float
    unit: str
    target: Target = NO_TARGET
    note: str = ""
    digits: int = 1

    @property
    def shown(self) -> str:
        """The value as it is printed."""
        return f"{self.value:,.{self.digits}f}"

    def line(self) -> str:
        """Return the figure as one line of the output."""
        told = [
            text
            for label, text in (("goal", self.target.goal), ("peers", self.target.peers), ("", self.note))
            for text in ([f"{label}: {text}" if label else text] if text else [])
        ]
        value = f"{self.name:<44} {self.shown:>10} {self.unit:<6}"
        return f"{value}  ({'; '.join(told)})" if told else value.rstrip()

    def row(self) -> str:
        """Return the figure as a row of the table in docs/benchmarks.md."""
        cells = (self.name, f"{self.shown} {self.unit}", self.target.goal, self.target.peers, self.note)
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float], unit: str, *, digits: int = 1) -> str:
    """Return smallest, median and largest value and how many there were, as a note."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"min {low:.{digits}f}, median {middle:.{digits}f}, max {high:.{digits}f} {unit} of {len(values)}"
