"""Cards: approvals and memory commits as text with buttons. Pure; tokens are short and opaque."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.contracts.addresses import Button, ButtonStyle, CardContent, OutboundContent
from core.contracts.ids import ApprovalId
from core.contracts.memory import MemoryCommit
from core.contracts.permissions import Approval, ApprovalState, DecisionScope
from core.permissions.approvals import edited_arguments

APPROVE, CONVERSATION, ALWAYS, DENY, DENY_AND_READ = "y", "c", "w", "n", "m"
DENY_WITH_REASON, EDIT = "r", "e"
"""What opens a form first; the form comes back under the same token."""
CHOICES = {"approve": APPROVE, "conversation": CONVERSATION, "always": ALWAYS, "deny": DENY}
"""What a decision is called where it is written: commands, page and command line."""
_REVISION_DIGITS = 20
_ALLOW_HERE, _LEAVE = "g:allow", "g:leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPress:
    """A button of an approval card."""

    approval_id: ApprovalId
    choice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPress:
    """A button of a memory commit line; `act` is `diff` or `undo`."""

    act: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPress:
    """A button of the card that asks whether the agent may work in a group."""

    allow: bool


def parse_token(token: str) -> ApprovalPress | CommitPress | GroupPress | None:
    """Return what a button's token means; None for anything this host never put on a button."""
    match token.split(":"):
        case ["a", approval_id, (("y" | "c" | "w" | "n" | "m" | "r" | "e") as choice)]:
            return ApprovalPress(approval_id=ApprovalId(approval_id), choice=choice)
        case ["d", revision]:
            return CommitPress(act="diff", revision=revision)
        case ["u", revision]:
            return CommitPress(act="undo", revision=revision)
        case ["g", (("allow" | "leave") as choice)]:
            return GroupPress(allow=choice == "allow")
        case _:
            return None


def shown_call(tool: str, arguments: str) -> str:
    """Return a call as people read it before they decide: all of it, nothing shortened."""
    try:
        values: dict[str, Any] = json.loads(arguments)
    except ValueError:
        return f"{tool} {arguments}"
    if set(values) == {"command"}:
        return str(values["command"])
    lines = [tool]
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(lines)


def approval_card(approvals: Sequence[Approval], zone: ZoneInfo) -> CardContent:
    """Return the card of a step's doubtful calls; decided ones lose their buttons.

    Where a person edited a call, both stand there: what was asked, and what it became.
    """
    many = len(approvals) > 1
    blocks, rows, lines = [], [], []
    for number, approval in enumerate(approvals, start=1):
        mark = f"{number}. " if many else ""
        lines.append(f"{mark}{_headline(approval, zone)}")
        blocks.append(f"{mark}{_call(approval)}")
        if approval.state is ApprovalState.OPEN:
            rows.extend(_buttons(approval, prefix=f"{number}: " if many else ""))
    return CardContent(text="\n".join(lines), code="\n\n".join(blocks), rows=tuple(rows))


def approval_token(approval: Approval, choice: str) -> str:
    """Return what the button of an approval carries for a choice, and the form that it opens."""
    return f"a:{approval.id}:{choice}"


def waiting_card(approvals: Sequence[Approval]) -> CardContent:
    """Return the notice for a message that arrived while a turn waits for a decision."""
    read = (Button(token=approval_token(approvals[0], DENY_AND_READ), label="Deny and read my message"),)
    return _asking_again(
        f"Your message is queued: I am waiting for a decision on {_names(approvals)}.", approvals, read
    )


def reminder_card(approvals: Sequence[Approval]) -> CardContent:
    """Return the one reminder of a question that nobody answered yet."""
    return _asking_again(f"I am still waiting for a decision on {_names(approvals)}, asked above.", approvals)


def _asking_again(text: str, approvals: Sequence[Approval], *more: tuple[Button, ...]) -> CardContent:
    if len(approvals) > 1:
        # Which of several is meant is said on their own card alone.
        return CardContent(text=f"{text} Please use the buttons of that card.")
    decide = (
        Button(token=approval_token(approvals[0], APPROVE), label="Approve", style=ButtonStyle.GOOD),
        Button(token=approval_token(approvals[0], DENY), label="Deny", style=ButtonStyle.DANGER),
    )
    return CardContent(text=text, rows=(decide, *more))


def _names(approvals: Sequence[Approval]) -> str:
    return ", ".join(approval.tool for approval in approvals)


def reminder_id(approval: Approval) -> str:
    """Return the outbox id of the reminder of this approval."""
    return f"{approval.turn_id}/remind/{approval.id}"


def waiting_id(approval: Approval) -> str:
    """Return the outbox id of the notice that a message waits for this approval."""
    return f"{approval.turn_id}/wait/{approval.id}"


def state_words(approval: Approval) -> str:
    """Return what became of an approval, for whoever comes too late to decide it."""
    match approval.state:
        case ApprovalState.OPEN:
            return "It is still open; the call changed since it was shown."
        case ApprovalState.APPROVED | ApprovalState.DENIED:
            by = approval.decision.by_name if approval.decision is not None else "somebody"
            return f"It was {approval.state} by {by}."
        case ApprovalState.EXPIRED:
            return "It expired undecided."
        case ApprovalState.VOID:
            return "Its turn was stopped."


def commit_card(commit: MemoryCommit) -> CardContent:
    """Return the silent line of a memory commit, with Diff and Undo."""
    revision = commit.revision[:_REVISION_DIGITS]
    paths = ", ".join(commit.paths[:3]) + (" …" if len(commit.paths) > 3 else "")  # noqa: PLR2004 - a line's width
    return CardContent(
        text=f"Remembered: {commit.message} ({paths})",
        rows=((Button(token=f"d:{revision}", label="Diff"), Button(token=f"u:{revision}", label="Undo")),),
        silent=True,
    )


def group_card(text: str = "") -> CardContent:
    """Return the question whether the agent may work in a group, which an owner decides."""
    allow = Button(token=_ALLOW_HERE, label="Allow here", style=ButtonStyle.GOOD)
    leave = Button(token=_LEAVE, label="Leave", style=ButtonStyle.DANGER)
    return CardContent(
        text=text or "I do not work here yet. An owner of mine has to let me, by a button of this message.",
        rows=((allow, leave),),
    )


def asks_about_group(content: OutboundContent) -> bool:
    """Whether a message is the question of `group_card`, still with its buttons."""
    return isinstance(content, CardContent) and any(
        button.token == _ALLOW_HERE for row in content.rows for button in row
    )


def _call(approval: Approval) -> str:
    asked, edited = shown_call(approval.tool, approval.shown), edited_arguments(approval)
    return asked if edited is None else f"{asked}\n\nchanged to:\n{shown_call(approval.tool, edited)}"


def _headline(approval: Approval, zone: ZoneInfo) -> str:
    match approval.state:
        case ApprovalState.OPEN:
            until = approval.expires_at.astimezone(zone)
            asked = f"May I run {approval.tool}? Why I ask: {approval.reason}."
            return f"{asked} Undecided by {until:%d %b %H:%M}, it is not run."
        case ApprovalState.APPROVED:
            return f"Approved{_reach(approval)} by {_who(approval)} at {_when(approval.decided_at, zone)}."
        case ApprovalState.DENIED:
            return f"Denied by {_who(approval)} at {_when(approval.decided_at, zone)}."
        case ApprovalState.EXPIRED:
            return "Expired: nobody decided in time. It was not run."
        case ApprovalState.VOID:
            return "No longer needed: the turn was stopped. It was not run."


def _buttons(approval: Approval, *, prefix: str) -> list[tuple[Button, ...]]:
    rows: list[tuple[Button, ...]] = [
        (
            Button(token=approval_token(approval, APPROVE), label=f"{prefix}Approve", style=ButtonStyle.GOOD),
            Button(token=approval_token(approval, DENY), label=f"{prefix}Deny", style=ButtonStyle.DANGER),
            Button(token=approval_token(approval, DENY_WITH_REASON), label=f"{prefix}Deny…", opens_form=True),
            Button(token=approval_token(approval, EDIT), label=f"{prefix}Edit…", opens_form=True),
        )
    ]
    if approval.remember:
        always = f"{prefix}Always: {approval.remember}"
        rows.append(
            (
                Button(token=approval_token(approval, CONVERSATION), label=f"{prefix}Approve for this conversation"),
                Button(token=approval_token(approval, ALWAYS), label=always),
            )
        )
    return rows


def _reach(approval: Approval) -> str:
    if edited_arguments(approval) is not None:
        return " with changes"
    match approval.decision.scope if approval.decision else DecisionScope.ONCE:
        case DecisionScope.ONCE:
            return ""
        case DecisionScope.CONVERSATION:
            return " for this conversation"
        case DecisionScope.ALWAYS:
            return f" always ({approval.remember})"


def _who(approval: Approval) -> str:
    return approval.decision.by_name if approval.decision is not None else "nobody"


def _when(instant: datetime | None, zone: ZoneInfo) -> str:
    return f"{instant.astimezone(zone):%H:%M}" if instant is not None else "?"
