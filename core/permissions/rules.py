"""Rules: what an owner wrote, or a person granted, about a kind of tool call."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from core.contracts.permissions import Action, PersonRole, Subject
from core.permissions.patterns import GlobPattern, PatternError, ShellPattern, glob_pattern, shell_pattern

SHELL_TOOL = "shell"


class RuleError(ValueError):
    """A rule that cannot be read. `field` is the part at fault: `tool`, `match` or `text`."""

    def __init__(self, field: str, detail: str) -> None:
        self.field = field
        self.detail = detail
        super().__init__(detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Without a pattern it speaks of every call of the tool; made by `make_rule`.

    `tool` may be a glob (`mcp__github__*`). `channel` and `role` narrow the rule to calls on
    behalf of somebody there or of that role.
    """

    tool: str
    action: Action
    match: str = ""
    pattern: ShellPattern | GlobPattern | None = None
    channel: str = ""
    role: PersonRole | None = None

    @property
    def text(self) -> str:
        """Return the rule as a grant writes it: `shell: git status`, `write: notes/a.md`, `todo`."""
        return f"{self.tool}: {self.match}" if self.match else self.tool

    @property
    def name(self) -> str:
        """Return the rule as `/why` shows it."""
        return f"{self.action.value} {self.text}"

    def concerns(self, tool: str, subject: Subject) -> bool:
        """Return whether the rule speaks of this tool and of this subject at all."""
        if self.channel and self.channel != subject.channel:
            return False
        if self.role is not None and self.role is not subject.role:
            return False
        return fnmatchcase(tool, self.tool)


def make_rule(*, tool: str, action: Action, match: str = "", channel: str = "", role: PersonRole | None = None) -> Rule:
    """Return a rule with its pattern read.

    Raises:
        RuleError: The tool has no name, or the pattern cannot be read.
    """
    name = tool.strip()
    if not name or ":" in name or any(character.isspace() for character in name):
        raise RuleError("tool", f"{tool!r} is not the name of a tool")
    try:
        pattern = _pattern(name, match)
    except PatternError as error:
        raise RuleError("match", str(error)) from error
    return Rule(tool=name, action=action, match=match.strip(), pattern=pattern, channel=channel, role=role)


def parse_rule(text: str, action: Action = Action.ALLOW) -> Rule:
    """Read a rule as `Rule.text` writes it; a grant is an allow rule in this form.

    Raises:
        RuleError: It is not one.
    """
    tool, colon, match = text.partition(": ")
    if colon and not match.strip():
        raise RuleError("text", f"{text!r} has nothing behind the colon")
    return make_rule(tool=tool, match=match, action=action)


def _pattern(tool: str, match: str) -> ShellPattern | GlobPattern | None:
    if not match.strip():
        return None
    return shell_pattern(match) if tool == SHELL_TOOL else glob_pattern(match.strip())
