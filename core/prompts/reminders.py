"""The host's own voice on user messages: what each kind says, how it is rendered, when it repeats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from core.contracts.addresses import Address, Privacy, Sender
from core.contracts.agents import PermissionMode
from core.contracts.messages import ReminderPart
from core.prompts.escaping import escape_user_text, one_line

_LINES = 30
_BLOCK_CHARS = 3_000
_REPORT_CHARS = 30_000


class ReminderKind(StrEnum):
    """What a reminder is about; the value is `ReminderPart.kind`."""

    TIME = "time"
    SENDER = "sender"
    PERMISSION_MODE = "permission_mode"
    WORKSPACE = "workspace"
    AGENT = "agent"
    WARNING = "warning"
    MEMORY_UPDATE = "memory_update"
    BACKGROUND = "background"
    REPLY = "reply"
    FORWARDED = "forwarded"
    ALBUM = "album"
    ATTACHMENTS = "attachments"
    VOICE = "voice"
    UNSUPPORTED = "unsupported"
    CHANGES = "changes"
    OVERHEARD = "overheard"
    WAITED = "waited"
    STEERING = "steering"
    SUMMARY = "summary"
    """What compaction left of earlier messages: a `<system-alert>`."""
    TASK = "task"
    """The report of a child or job: a `<task-notification>`."""


EVENTS = frozenset(ReminderKind) - {
    ReminderKind.TIME,
    ReminderKind.SENDER,
    ReminderKind.PERMISSION_MODE,
    ReminderKind.WORKSPACE,
    ReminderKind.AGENT,
    ReminderKind.WARNING,
}
"""Kinds that tell something once, such as what came with one message; the others describe a state.

A state is told again when it changes; an event is always told, also in the words of the one before.
"""

_ELEMENTS = {ReminderKind.SUMMARY: "system-alert", ReminderKind.TASK: "task-notification"}

_MODES = {
    PermissionMode.ASK: "what is not plainly harmless is put to a person first",
    PermissionMode.ACCEPT_EDITS: "edits inside the workspace run at once, the rest is put to a person first",
    PermissionMode.STRICT: "everything that no rule allows is put to a person first",
    PermissionMode.UNRESTRICTED: "calls run without asking; be all the more careful",
}

_PRIVACY = {
    Privacy.DIRECT: "a direct chat",
    Privacy.PRIVATE_GROUP: "a private group",
    Privacy.PUBLIC: "a public channel",
}


def render_reminder(part: ReminderPart) -> str:
    """Return the element a model reads. Nothing in the body can close it or open another."""
    element = _ELEMENTS.get(ReminderKind(part.kind), "system-reminder") if part.kind in _KINDS else "system-reminder"
    kind = re.sub(r"[^a-z0-9_]", "_", part.kind.lower())
    return f'<{element} kind="{kind}">\n{escape_user_text(part.text)}\n</{element}>'


_KINDS = frozenset(kind.value for kind in ReminderKind)


def fresh_reminders(previous: Mapping[str, str], current: Sequence[ReminderPart]) -> tuple[ReminderPart, ...]:
    """Return what has to be said now: events, and states that differ from what was last said.

    `previous` maps kinds to the text last sent in this conversation; start it empty again after
    a compaction, which removes what was said.
    """
    return tuple(part for part in current if part.kind in EVENTS or previous.get(part.kind) != part.text)


def time_reminder(now: datetime, zone: str) -> ReminderPart:
    """Return the local time of the conversation, to the minute."""
    local = now.astimezone(ZoneInfo(zone))
    offset = local.strftime("%z")
    text = f"It is {local:%A, %Y-%m-%d %H:%M} in {zone} (UTC{offset[:3]}:{offset[3:]})."
    return ReminderPart(kind=ReminderKind.TIME, text=text)


def sender_reminder(address: Address, sender: Sender, privacy: Privacy, *, person: str = "") -> ReminderPart:
    """Return who speaks, and where. `person` is the internal id that names the sender's own memory file."""
    thread = "" if address.thread is None else f", thread {one_line(address.thread)}"
    bot = ", which is a bot" if sender.is_bot else ""
    text = (
        f"This message is from {one_line(sender.name)} ({one_line(sender.identity)}){bot}.\n"
        f"It came in {_PRIVACY[privacy]} on {one_line(address.channel)}: chat {one_line(address.chat)}{thread}."
    )
    if person:
        text += f"\nTheir own memory file is people/{one_line(person)}.md."
    return ReminderPart(kind=ReminderKind.SENDER, text=text)


def permission_mode_reminder(mode: PermissionMode) -> ReminderPart:
    """Return how far the agent may go without asking."""
    return ReminderPart(kind=ReminderKind.PERMISSION_MODE, text=f"Permission mode {mode.value}: {_MODES[mode]}.")


def workspace_reminder(
    directory: str, *, branch: str = "", status: Sequence[str] = (), last_commits: Sequence[str] = ()
) -> ReminderPart:
    """Return where files are, with a bounded look at git."""
    lines = [f"The workspace is {one_line(directory)}."]
    if branch:
        lines.append(f"Git branch {one_line(branch)}; {'changed:' if status else 'nothing is changed.'}")
    lines += _bounded(status)
    if last_commits:
        lines += ["Last commits:", *_bounded(last_commits)]
    return ReminderPart(kind=ReminderKind.WORKSPACE, text="\n".join(lines))


def agent_reminder(*, agent_id: str, conversation_id: str, paths: Mapping[str, str]) -> ReminderPart:
    """Return the ids and places that a tool call or a person may need."""
    lines = [f"Your agent id is {one_line(agent_id)}, this conversation is {one_line(conversation_id)}."]
    lines += [f"{one_line(name)}: {one_line(path)}" for name, path in sorted(paths.items())]
    return ReminderPart(kind=ReminderKind.AGENT, text="\n".join(lines))


def warning_reminder(warnings: Sequence[str]) -> ReminderPart:
    """Return everything that is wrong with the host now: one reminder, so that it repeats as a whole."""
    return ReminderPart(kind=ReminderKind.WARNING, text="\n".join(_bounded(warnings)))


def background_reminder(text: str) -> ReminderPart:
    """Return what a background command of this conversation came to."""
    return ReminderPart(kind=ReminderKind.BACKGROUND, text=_clamped(text, _BLOCK_CHARS))


def task_reminder(task_id: str, outcome: str, report: str) -> ReminderPart:
    """Return the report of a child: quoted data, at most 30,000 characters of it."""
    text = f"Task {one_line(task_id)} ended: {one_line(outcome)}. Its report:\n{_clamped(report, _REPORT_CHARS)}"
    return ReminderPart(kind=ReminderKind.TASK, text=text)


def summary_reminder(summary: str) -> ReminderPart:
    """Return what stands for messages that compaction took out of view."""
    text = f"Earlier messages were replaced by this summary; search_history finds them.\n\n{escape_user_text(summary)}"
    return ReminderPart(kind=ReminderKind.SUMMARY, text=text)


def _bounded(lines: Sequence[str]) -> list[str]:
    shown = [f"- {one_line(line)}" for line in lines[:_LINES]]
    return shown if len(lines) <= _LINES else [*shown, f"- ... and {len(lines) - _LINES} more"]


def _clamped(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return escape_user_text(text)
    return escape_user_text(text[:limit_chars]) + f"\n[{limit_chars:,} of {len(text):,} characters]"
