"""The one table of chat commands, the same on every platform, and what each does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import IntEnum

from bot.conversations.access import Standing
from bot.conversations.cards import CHOICES, shown_call
from bot.conversations.memory_commands import MemoryCommands
from bot.conversations.presses import DecisionDesk
from core.contracts.addresses import InboundEvent
from core.contracts.agents import Agent, Conversation, PermissionMode
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import Binding, DeliveryStore
from core.contracts.errors import NotFound
from core.contracts.ids import ApprovalId, ConversationId
from core.contracts.ledger import CallRecord, TurnLedger
from core.contracts.people import AuditEntry, PeopleStore
from core.contracts.permissions import ApprovalState, PersonRole
from core.contracts.runs import Turn, TurnState
from core.contracts.store import TranscriptStore


class Who(IntEnum):
    """Who may give a command; each includes those above it."""

    ANYONE = 0
    MEMBER = 1
    OPERATOR = 2
    OWNER = 3


_RANK = {
    PersonRole.STRANGER: Who.ANYONE,
    PersonRole.MEMBER: Who.MEMBER,
    PersonRole.OPERATOR: Who.OPERATOR,
    PersonRole.OWNER: Who.OWNER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """One command as it was given, with the conversation it was given in."""

    event: InboundEvent
    who: Standing
    rest: str
    binding: Binding
    agent: Agent
    conversation: Conversation


Run = Callable[["CommandDesk", CommandCall], Awaitable[str]]

_COMMAND = re.compile(r"/(?P<name>[^\W\d_][^\W\d]*)(?:@\w+)?(?:\s+(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row of the table."""

    name: str
    usage: str
    help: str
    who: Who
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPorts:
    """What commands stand on."""

    backend: Backend
    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    people: PeopleStore
    memory: MemoryCommands
    clock: Clock
    wake_cancel: Callable[[ConversationId], None]
    pair: Callable[[str, Standing], Awaitable[str]]
    decisions: DecisionDesk


class CommandDesk:
    """Runs commands and answers in one text."""

    def __init__(self, ports: CommandPorts) -> None:
        self.ports = ports

    async def run(self, call: CommandCall, name: str) -> str:
        """Run a command by name; unknown names and missing rights are answered, never ignored."""
        command = COMMANDS.get(name)
        if command is None:
            return f"There is no command /{name}. /help lists them."
        if _RANK[call.who.role] < command.who:
            return f"/{name} is for an {command.who.name.lower()} of this agent."
        return await command.run(self, call)


def parse_command(text: str) -> tuple[str, str] | None:
    """Return a command's name and the rest, or None for text that is no command.

    A path such as `/etc/hosts` is no command: a name is letters and underscores alone, and what
    follows it is space, or `@` and the name of a bot.
    """
    found = _COMMAND.fullmatch(text.strip())
    return (found["name"].lower(), found["rest"] or "") if found is not None else None


async def _help(desk: CommandDesk, call: CommandCall) -> str:
    del desk
    rank = _RANK[call.who.role]
    lines = [f"/{c.usage} — {c.help}" for c in COMMANDS.values() if rank >= c.who and c.name != "start"]
    workspace = f"Everyone that {call.agent.name} serves shares its workspace."
    return "\n".join((f"I am {call.agent.name}. Write to me, or use:", *lines, workspace))


async def _new(desk: CommandDesk, call: CommandCall) -> str:
    ports = desk.ports
    turn = await ports.ledger.open_turn(call.conversation.id)
    if turn is not None and _may_stop(turn, call):
        await _stop(desk, call)
    fresh = await ports.backend.create_conversation(call.agent.id, call.conversation.audience)
    await ports.delivery.bind(replace(call.binding, conversation_id=fresh.id))
    return "A new conversation. What I remember stays; the old one is kept."


async def _cancel(desk: CommandDesk, call: CommandCall) -> str:
    turn = await desk.ports.ledger.open_turn(call.conversation.id)
    if turn is None:
        return "Nothing is running."
    if not _may_stop(turn, call):
        return "Only the person who asked, an operator or an owner may stop this."
    await _stop(desk, call)
    return "Stopping. Queued messages stay."


def _may_stop(turn: Turn, call: CommandCall) -> bool:
    """Whether somebody may stop a turn: whoever asked for it, an operator, or an owner."""
    return turn.requester == call.who.person.id or _RANK[call.who.role] >= Who.OPERATOR


async def _stop(desk: CommandDesk, call: CommandCall) -> None:
    await desk.ports.ledger.request_cancel(call.conversation.id, by=call.who.person.id)
    desk.ports.wake_cancel(call.conversation.id)


async def _status(desk: CommandDesk, call: CommandCall) -> str:
    ports = desk.ports
    turn = await ports.ledger.open_turn(call.conversation.id)
    queued = await ports.delivery.queued(call.conversation.id)
    mode = call.conversation.permission_mode or call.agent.permission_mode
    latest = await ports.ledger.latest_turn(call.conversation.id)
    usage = await ports.transcripts.usage_since(latest.id) if latest is not None else None
    doing = "idle" if turn is None else f"{turn.state} since {turn.started_at:%H:%M} UTC, step {turn.steps + 1}"
    lines = [
        f"Agent {call.agent.name}, model {call.agent.model.model}, permission mode {mode}.",
        f"Conversation {call.conversation.id}: {doing}; {len(queued)} queued.",
    ]
    if usage is not None:
        lines.append(
            f"Last turn: {usage.input_tokens} tokens in ({usage.cached_tokens} cached), {usage.output_tokens} out."
        )
    if turn is not None and turn.state is TurnState.PARKED:
        waiting = [a for a in await ports.ledger.approvals_of(turn.id) if a.state is ApprovalState.OPEN]
        lines.append(f"Waiting for a decision on {', '.join(a.tool for a in waiting)}.")
    return "\n".join(lines)


async def _mode(desk: CommandDesk, call: CommandCall) -> str:
    now = call.conversation.permission_mode or call.agent.permission_mode
    names = ", ".join(PermissionMode)
    if not call.rest:
        return f"Permission mode {now}. Modes: {names}."
    try:
        wanted = PermissionMode(call.rest.lower())
    except ValueError:
        return f"There is no mode {call.rest!r}. Modes: {names}."
    if _RANK[call.who.role] < (Who.OWNER if wanted is PermissionMode.UNRESTRICTED else Who.OPERATOR):
        return f"You may not set mode {wanted}."
    await desk.ports.transcripts.update_conversation(replace(call.conversation, permission_mode=wanted))
    await desk.ports.people.record(
        AuditEntry(
            at=desk.ports.clock.now(),
            who=call.who.person.id,
            what="mode_set",
            detail={"conversation": call.conversation.id, "mode": wanted},
        )
    )
    return f"Permission mode of this conversation: {wanted}."


async def _memory(desk: CommandDesk, call: CommandCall) -> str:
    return await desk.ports.memory.run(call.rest, agent=call.agent, audience=call.conversation.audience, who=call.who)


async def _remember(desk: CommandDesk, call: CommandCall) -> str:
    return await desk.ports.memory.remember(
        call.rest, agent=call.agent, audience=call.conversation.audience, who=call.who
    )


async def _whoami(desk: CommandDesk, call: CommandCall) -> str:
    del desk
    return f"You are {call.who.person.name} ({', '.join(call.who.person.identities)}), {call.who.role} here."


async def _why(desk: CommandDesk, call: CommandCall) -> str:
    latest = await desk.ports.ledger.latest_turn(call.conversation.id)
    records = await desk.ports.ledger.calls_of_turn(latest.id) if latest is not None else ()
    if not records:
        return "The last turn asked for no tool."
    return "\n".join(_explained(record) for record in records)


async def _approvals(desk: CommandDesk, call: CommandCall) -> str:
    match call.rest.split(maxsplit=2):
        case []:
            waiting = await desk.ports.ledger.open_approvals_of(call.agent.id)
            here = [
                a for a in waiting if a.conversation_id == call.conversation.id or _RANK[call.who.role] >= Who.OPERATOR
            ]
            lines = [f"`{a.id}` {a.tool}: {shown_call(a.tool, a.shown)}" for a in here]
            return "\n".join(lines) or "Nothing waits for a decision."
        case [approval_id, word, *reason] if word in CHOICES:
            try:
                return await desk.ports.decisions.decide(
                    ApprovalId(approval_id), CHOICES[word], call.who, feedback=" ".join(reason)
                )
            except NotFound:
                return f"There is no approval {approval_id!r}. /approvals lists them."
        case _:
            return f"Use: /approvals, or /approvals ID {'|'.join(CHOICES)} [REASON]"


async def _pair(desk: CommandDesk, call: CommandCall) -> str:
    if not call.rest:
        return "Which code? /pair CODE"
    return await desk.ports.pair(call.rest, call.who)


def _explained(record: CallRecord) -> str:
    verdict = record.verdict
    judged = f"{verdict.action} by {verdict.rule} ({verdict.reason})" if verdict is not None else "not judged yet"
    decided = ""
    if record.approval is not None:
        by = record.approval.decision.by_name if record.approval.decision is not None else ""
        decided = f"; {record.approval.state}{f' by {by}' if by else ''}"
    return f"{record.call.name}: {judged}{decided}; {record.state}"


def _table(*commands: Command) -> dict[str, Command]:
    return {command.name: command for command in commands}


COMMANDS = _table(
    Command(name="help", usage="help", help="what I can do", who=Who.ANYONE, run=_help),
    Command(name="start", usage="start", help="the same as /help", who=Who.ANYONE, run=_help),
    Command(name="new", usage="new", help="start a new conversation here", who=Who.MEMBER, run=_new),
    Command(name="cancel", usage="cancel", help="stop what is running", who=Who.MEMBER, run=_cancel),
    Command(name="status", usage="status", help="what I am doing", who=Who.MEMBER, run=_status),
    Command(name="mode", usage="mode [MODE]", help="how much runs without asking", who=Who.MEMBER, run=_mode),
    Command(
        name="memory",
        usage="memory [show PATH | log | diff REV | undo REV]",
        help="what I remember",
        who=Who.MEMBER,
        run=_memory,
    ),
    Command(name="remember", usage="remember TEXT", help="keep this in memory", who=Who.MEMBER, run=_remember),
    Command(name="whoami", usage="whoami", help="who you are to me", who=Who.ANYONE, run=_whoami),
    Command(name="why", usage="why", help="which rules decided the last turn's calls", who=Who.MEMBER, run=_why),
    Command(
        name="approvals",
        usage="approvals [ID approve|conversation|always|deny [REASON]]",
        help="what waits for a decision",
        who=Who.MEMBER,
        run=_approvals,
    ),
    Command(name="pair", usage="pair CODE", help="let somebody in", who=Who.OWNER, run=_pair),
)
