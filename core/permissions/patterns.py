"""Patterns of rules: words of a shell command, and globs over paths, hosts and memory files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from core.permissions.commands import every_command, program_name, simple_command
from core.permissions.programs import INTERPRETERS, WRAPPERS, exceeds_rule

_STAR = "*"
_GLOB_CHARACTERS = re.compile(r"[*?\[]")


class PatternError(ValueError):
    """A pattern that cannot mean anything; the text says what to write instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPattern:
    """The words of one simple command; `open_ended` stands for any further words."""

    words: tuple[str, ...]
    open_ended: bool

    def covers(self, line: str) -> bool:
        """Return whether the line is one simple command that an allow rule may let through."""
        words = simple_command(line)
        if words is None:
            return False
        if not self.open_ended:
            return words == self.words
        return words[: len(self.words)] == self.words and not exceeds_rule(words)

    def finds(self, line: str) -> bool:
        """Return whether a command that the line spells begins like this pattern.

        The program counts by whatever path it is called, and behind programs that run others.
        """
        return any(self._begins(command) for command in every_command(line))

    def suspects(self, line: str) -> bool:
        """Return whether the line may hold such a command in a way that `finds` cannot see."""
        words = simple_command(line)
        if words is None or not self.words:
            return True
        program = program_name(words[0])
        if program in WRAPPERS:
            return True
        if program in INTERPRETERS and re.search(rf"\b{re.escape(self.words[0])}\b", line):
            return True
        return self._is_scattered_in((program, *words[1:]))

    def _begins(self, command: tuple[str, ...]) -> bool:
        if self._is_start_of(command):
            return True
        if not command or program_name(command[0]) not in WRAPPERS:
            return False
        return any(self._is_start_of(command[start:]) for start in range(1, len(command)))

    def _is_start_of(self, command: tuple[str, ...]) -> bool:
        if not self.words or not command:
            return not self.words
        named = (program_name(command[0]), *command[1:])
        return named[: len(self.words)] == (program_name(self.words[0]), *self.words[1:])

    def _is_scattered_in(self, command: tuple[str, ...]) -> bool:
        """Return whether the program's words occur in this order with others between (`git -C x push`)."""
        rest = iter(command[1:])
        return command[0] == program_name(self.words[0]) and all(word in rest for word in self.words[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobPattern:
    """A glob: `*` and `?` stay within one path segment, `**` spans several."""

    text: str
    expression: re.Pattern[str]

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        return self.expression.fullmatch(name) is not None

    def reaches_below(self, directory: str) -> bool:
        """Return whether something below `directory` may match; "." is the workspace."""
        found = _GLOB_CHARACTERS.search(self.text)
        fixed = self.text if found is None else self.text[: found.start()].rpartition("/")[0]
        if directory == "." or not fixed:
            return not fixed.startswith("/")
        return _is_within(fixed, directory) or (found is not None and _is_within(directory, fixed))


def shell_pattern(text: str) -> ShellPattern:
    """Read a shell pattern, such as `git status` or `npm run *`.

    Raises:
        PatternError: It is not one plain simple command.
    """
    stripped = text.strip()
    open_ended = stripped == _STAR or stripped.endswith(f" {_STAR}")
    line = stripped.removesuffix(_STAR) if open_ended else stripped
    if open_ended and not line.strip():
        return ShellPattern(words=(), open_ended=True)
    words = simple_command(line)
    if words is None:
        raise PatternError("a shell pattern is the words of one plain command, with `*` only as the last word")
    return ShellPattern(words=words, open_ended=open_ended)


def glob_pattern(text: str) -> GlobPattern:
    """Read a glob over paths (relative to the workspace, or absolute), hosts or memory files.

    Raises:
        PatternError: It is empty, holds `..` or `~`, or a bracket is not closed.
    """
    if not text or text != text.strip() or ".." in PurePosixPath(text).parts or text.startswith("~"):
        raise PatternError("a path pattern is relative to the workspace or absolute, without `..` and `~`")
    cleaned = text.removeprefix("./")
    cleaned = f"{cleaned}**" if cleaned.endswith("/") else cleaned
    return GlobPattern(text=cleaned, expression=re.compile(_expression(cleaned), re.DOTALL))


def exact_glob(name: str) -> str:
    """Return the glob that matches `name` and nothing else."""
    return _GLOB_CHARACTERS.sub(lambda match: f"[{match[0]}]", name)


def _expression(glob: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(glob):
        token = _next_token(glob, position)
        parts.append(_translated(token))
        position += len(token)
    return "".join(parts)


def _next_token(glob: str, position: int) -> str:
    for token in ("**/", "**"):
        if glob.startswith(token, position):
            return token
    if glob[position] != "[":
        return glob[position]
    end = glob.find("]", position + 2)
    if end < 0:
        raise PatternError(f"the bracket in {glob!r} is not closed")
    return glob[position : end + 1]


def _translated(token: str) -> str:
    match token:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if token.startswith("[") and len(token) > 1:
        inside = token[1:-1]
        negated = inside.startswith("!")
        members = re.escape(inside[1:] if negated else inside)
        return f"[^/{members}]" if negated else f"(?!/)[{members}]"
    return re.escape(token)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")
