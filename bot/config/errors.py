"""The one error of a configuration: what is wrong, where, and what to write instead."""

from __future__ import annotations

from pathlib import Path

from core.contracts.errors import LodgerError


class ConfigError(LodgerError):
    """The configuration cannot be used; nothing was started.

    `line` and `column` count from 1. `key` is a path such as `channels.slack.bot_token`. No field
    holds a secret value.
    """

    def __init__(
        self,
        message: str,
        *,
        file: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str = "",
        suggestion: str = "",
    ) -> None:
        self.message = message
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.suggestion = suggestion
        super().__init__(message)

    def __str__(self) -> str:
        """Return one line: file, line, column, key, what is wrong, what helps."""
        place = [str(self.file)] if self.file is not None else []
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        parts = [", ".join(place), self.key, self.message]
        text = ": ".join(part for part in parts if part)
        return f"{text} ({self.suggestion})" if self.suggestion else text
