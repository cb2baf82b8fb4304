"""The policy: one verdict on one call, in the order that DESIGN 12 fixes.

workspace guard → other agents' memory guard → deny rules → disallowed tools → always-ask rules
→ mode → allow rules → read-only shell, own memory, reads in the workspace → ask rules → ask

The first step that has something to say decides. Steps before the mode hold in every mode and
cannot be granted away; steps behind it only make a question unnecessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from core.contracts.messages import ToolCall
from core.contracts.permissions import Action, Grant, Policy, Subject, Verdict
from core.contracts.tools import Access
from core.permissions.commands import command_text, program_name, simple_command
from core.permissions.guards import guard, is_in_workspace
from core.permissions.matching import Case, Match, covers, meets, target_names
from core.permissions.modes import allows_by_itself, mode_allows
from core.permissions.patterns import exact_glob
from core.permissions.programs import INTERPRETERS, WRAPPERS, read_only_operands
from core.permissions.rules import SHELL_TOOL, Rule, RuleError, parse_rule


class RulePolicy:
    """Judges by rules. `disallowed` names tools that this agent or child never runs."""

    def __init__(self, rules: Sequence[Rule], *, disallowed: frozenset[str] = frozenset()) -> None:
        self._deny = _with_action(rules, Action.DENY)
        self._always_ask = _with_action(rules, Action.ALWAYS_ASK)
        self._allow = _with_action(rules, Action.ALLOW)
        self._ask = _with_action(rules, Action.ASK)
        self._disallowed = disallowed

    def verdict(self, call: ToolCall, access: Access | None, subject: Subject, grants: tuple[Grant, ...]) -> Verdict:
        case = Case(tool=call.name, access=access, subject=subject)
        return (
            _guarded(case)
            or self._denied(case)
            or self._always_asked(case)
            or _moded(case)
            or self._allowed(case, grants)
            or _harmless(case)
            or self._asked(case)
        )

    def _denied(self, case: Case) -> Verdict | None:
        for rule in self._deny:
            if meets(rule, case) is Match.YES:
                return _deny(rule.name, "a rule of this host denies it")
        if case.tool in self._disallowed:
            return _deny(f"disallowed {case.tool}", f"the tool {case.tool!r} is not available here")
        return None

    def _always_asked(self, case: Case) -> Verdict | None:
        for rule in self._always_ask:
            if meets(rule, case) is not Match.NO:
                return _ask(rule.name, "a rule of this host always asks about it")
        for rule in self._deny:
            if meets(rule, case) is Match.MAYBE:
                return _ask(rule.name, "it cannot be ruled out that the denied is part of it")
        return None

    def _allowed(self, case: Case, grants: tuple[Grant, ...]) -> Verdict | None:
        for rule in (*self._allow, *_granted(grants, case.subject)):
            if covers(rule, case):
                return _allow(rule.name, "a rule allows it")
        return None

    def _asked(self, case: Case) -> Verdict:
        for rule in self._ask:
            if meets(rule, case) is not Match.NO:
                return _ask(rule.name, "a rule asks about it", remember_text(case))
        return _ask("default", "nothing allows it by itself", remember_text(case))


def remember_text(case: Case) -> str:
    """Return the narrowest rule that covers the call, or "" where no rule should.

    For a shell line that is the very command, never a wider one; programs that run others are
    not offered, because what they run is not in the rule. A call that touches several things at
    once has no rule of its own either.
    """
    if case.access is None:
        # A tool that cannot say what it touches (MCP, plugins) is allowed or not as a whole.
        return "" if case.tool == SHELL_TOOL else _verified(case.tool, case)
    if case.command is not None:
        return _verified(_shell_rule(case.command), case) if case.tool == SHELL_TOOL else ""
    targets = target_names(case)
    if not targets:
        return _verified(case.tool, case)
    if len(targets) > 1 or len(targets[0]) > 1:
        return ""
    (name,) = targets[0]
    return _verified(f"{case.tool}: {exact_glob(name)}", case)


def shadowed_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return ask rules that an earlier step makes idle: a read-only command or an allow rule.

    `always_ask` is what their author wanted.
    """
    allowed = {rule.text for rule in _with_action(rules, Action.ALLOW)}
    return tuple(rule for rule in _with_action(rules, Action.ASK) if rule.text in allowed or _asks_reader(rule))


def _with_action(rules: Sequence[Rule], action: Action) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.action is action)


def _guarded(case: Case) -> Verdict | None:
    refusal = None if case.access is None else guard(case.access, case.subject)
    return None if refusal is None else _deny(refusal.rule, refusal.reason)


def _moded(case: Case) -> Verdict | None:
    if case.access is not None and case.access.free:
        return _allow("free", "it touches nothing but the turn itself")
    if mode_allows(case.tool, case.access, case.subject):
        return _allow(f"mode {case.subject.mode.value}", "the permission mode lets it run")
    return None


def _harmless(case: Case) -> Verdict | None:
    access = case.access
    if access is None or not allows_by_itself(case.subject.mode):
        return None
    if access.writes or access.network:
        return None
    if access.command is not None:
        return None if access.memory_writes else _read_only(access.command, case)
    if access.reads:
        return None if access.memory_writes else _allow("reads", "it only reads what the agent may read")
    if access.memory_reads or access.memory_writes:
        return _allow("own memory", "it touches the agent's own memory only")
    return None


def _read_only(line: str, case: Case) -> Verdict | None:
    words = simple_command(line)
    operands = None if words is None else read_only_operands(words)
    if operands is None:
        return None
    workspace = case.subject.workspace
    if not all(is_in_workspace(workspace / operand, case.subject) for operand in operands):
        return None
    return _allow("read-only shell", "the command only reads, inside the workspace")


def _shell_rule(line: str) -> str:
    words = simple_command(line)
    if words is None or program_name(words[0]) in WRAPPERS | INTERPRETERS:
        return ""
    return f"{SHELL_TOOL}: {command_text(words)}"


def _verified(text: str, case: Case) -> str:
    """Return the text if, read back as a rule, it covers the call: what is offered must hold."""
    try:
        return text if text and covers(parse_rule(text), case) else ""
    except RuleError:
        return ""


def _granted(grants: tuple[Grant, ...], subject: Subject) -> Iterator[Rule]:
    for grant in grants:
        if not _holds(grant, subject):
            continue
        try:
            yield parse_rule(grant.rule)
        except RuleError:
            # A grant of an older release that this one cannot read allows nothing.
            continue


def _holds(grant: Grant, subject: Subject) -> bool:
    if grant.agent_id != subject.agent_id:
        return False
    if grant.conversation_id is None:
        return grant.requester in {None, subject.requester}
    return (grant.conversation_id, grant.requester) == (subject.conversation_id, subject.requester)


def _asks_reader(rule: Rule) -> bool:
    if rule.tool != SHELL_TOOL or not rule.match:
        return False
    words = simple_command(rule.match.removesuffix("*"))
    return words is not None and read_only_operands(words) is not None


def _allow(rule: str, reason: str) -> Verdict:
    return Verdict(action=Action.ALLOW, rule=rule, reason=reason)


def _deny(rule: str, reason: str) -> Verdict:
    return Verdict(action=Action.DENY, rule=rule, reason=reason)


def _ask(rule: str, reason: str, remember: str = "") -> Verdict:
    return Verdict(action=Action.ASK, rule=rule, reason=reason, remember=remember)


if TYPE_CHECKING:
    _conforms: type[Policy] = RulePolicy
