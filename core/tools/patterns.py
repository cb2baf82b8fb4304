"""Path patterns: `*`, `?`, `[...]`, `{a,b}` within a name, `**` over folders. Pure, never exponential."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from core.contracts.errors import ToolError

_MOST_ALTERNATIVES = 64
_LONGEST_CHARS = 500
_BRACES = re.compile(r"\{([^{}]*)\}")


class PathPattern:
    """A compiled pattern. Without a `/` it means a name in any folder."""

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > _LONGEST_CHARS:
            raise ToolError(f"A path pattern has 1 to {_LONGEST_CHARS} characters, such as `src/**/*.py`.")
        cleaned = pattern.removeprefix("./")
        rooted = cleaned if "/" in cleaned else f"**/{cleaned}"
        self._alternatives = [_compiled(alternative.strip("/").split("/")) for alternative in _expanded(rooted)]

    def matches(self, path: str) -> bool:
        """Return whether a relative path, `/` between its parts, fits the pattern."""
        parts = path.split("/")
        return any(_fits(parts, alternative) for alternative in self._alternatives)


def _expanded(pattern: str) -> list[str]:
    """Return the patterns that braces stand for."""
    done, open_patterns = [], [pattern]
    while open_patterns:
        current = open_patterns.pop()
        braces = _BRACES.search(current)
        if braces is None:
            done.append(current)
            continue
        before, after = current[: braces.start()], current[braces.end() :]
        open_patterns += [before + choice + after for choice in braces[1].split(",")]
        if len(done) + len(open_patterns) > _MOST_ALTERNATIVES:
            raise ToolError(f"The braces of the path pattern stand for more than {_MOST_ALTERNATIVES} patterns.")
    return done


def _compiled(segments: Sequence[str]) -> tuple[re.Pattern[str] | None, ...]:
    """Return one expression a path part, None for `**`. `fnmatch` makes expressions that do not backtrack."""
    return tuple(None if segment == "**" else re.compile(fnmatch.translate(segment)) for segment in segments)


def _fits(parts: Sequence[str], pattern: Sequence[re.Pattern[str] | None]) -> bool:
    """Match part by part, keeping every position of the pattern that may come next."""
    positions = _skipping_stars({0}, pattern)
    for part in parts:
        following = set()
        for position in positions:
            if position == len(pattern):
                continue
            segment = pattern[position]
            if segment is None:
                following.add(position)
            elif segment.match(part):
                following.add(position + 1)
        positions = _skipping_stars(following, pattern)
    return len(pattern) in positions


def _skipping_stars(positions: set[int], pattern: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Return `positions` and those behind a `**` at them, which may stand for no folder."""
    reached = set(positions)
    for position in range(len(pattern)):
        if position in reached and pattern[position] is None:
            reached.add(position + 1)
    return reached
