"""Commands about what may be done, and by whom: modes, decisions, pairing, the configuration."""

from __future__ import annotations

from bot.conversations.cards import CHOICES, shown_call
from bot.conversations.command_calls import CommandCall, CommandPorts, Who
from core.contracts.agents import PermissionMode
from core.contracts.errors import NotFound
from core.contracts.ids import ApprovalId
from core.contracts.ledger import CallRecord
from core.contracts.store import ConversationChange
from core.permissions.approvals import edited_arguments


async def mode(ports: CommandPorts, call: CommandCall) -> str:
    """Show or set the permission mode."""
    now = call.conversation.permission_mode or call.agent.permission_mode
    names = ", ".join(PermissionMode)
    if not call.rest:
        return f"Permission mode {now}. Modes: {names}."
    try:
        wanted = PermissionMode(call.rest.lower())
    except ValueError:
        return f"There is no mode {call.rest!r}. Modes: {names}."
    if call.rank < (Who.OWNER if wanted is PermissionMode.UNRESTRICTED else Who.OPERATOR):
        return f"You may not set mode {wanted}."
    await ports.transcripts.change_conversation(call.conversation.id, ConversationChange(permission_mode=wanted))
    await ports.record(call, "mode_set", {"mode": wanted})
    return f"Permission mode of this conversation: {wanted}."


async def whoami(ports: CommandPorts, call: CommandCall) -> str:
    """Say who somebody is to this host, and which roles the platform gives them where they ask."""
    del ports
    told = f"You are {call.who.person.name} ({', '.join(call.who.person.identities)}), {call.who.role} here."
    roles = ", ".join(call.event.sender.roles)
    return f"{told}\nPlatform roles here: {roles}." if roles else told


async def why(ports: CommandPorts, call: CommandCall) -> str:
    """Say which rules and decisions were on the last turn's calls."""
    latest = await ports.ledger.latest_turn(call.conversation.id)
    records = await ports.ledger.calls_of_turn(latest.id) if latest is not None else ()
    if not records:
        return "The last turn asked for no tool."
    return "\n".join(_explained(record) for record in records)


async def approvals(ports: CommandPorts, call: CommandCall) -> str:
    """List or decide approvals."""
    match call.rest.split(maxsplit=2):
        case []:
            return await _open_approvals(ports, call)
        case [approval_id, word, *reason] if word in CHOICES:
            try:
                return await ports.decisions.decide(
                    ApprovalId(approval_id), CHOICES[word], call.who, feedback=" ".join(reason)
                )
            except NotFound:
                return f"There is no approval {approval_id!r}. /approvals lists them."
        case _:
            return f"Use: /approvals, or /approvals ID {'|'.join(CHOICES)} [REASON]"


async def pair(ports: CommandPorts, call: CommandCall) -> str:
    """Let somebody in who has a code."""
    if not call.rest:
        return "Which code? /pair CODE"
    return await ports.pair(call.rest, call.who)


async def reload(ports: CommandPorts, call: CommandCall) -> str:
    """Read the configuration again."""
    await ports.record(call, "reload_asked")
    return await ports.reload()


async def _open_approvals(ports: CommandPorts, call: CommandCall) -> str:
    waiting = await ports.ledger.open_approvals_of(call.agent.id)
    here = [a for a in waiting if a.conversation_id == call.conversation.id or call.rank >= Who.OPERATOR]
    lines = [f"`{a.id}` {a.tool}: {shown_call(a.tool, a.shown)}" for a in here]
    return "\n".join(lines) or "Nothing waits for a decision."


def _explained(record: CallRecord) -> str:
    verdict = record.verdict
    judged = f"{verdict.action} by {verdict.rule} ({verdict.reason})" if verdict is not None else "not judged yet"
    decided = ""
    if record.approval is not None:
        by = record.approval.decision.by_name if record.approval.decision is not None else ""
        changed = " with changes" if edited_arguments(record.approval) is not None else ""
        decided = f"; {record.approval.state}{changed}{f' by {by}' if by else ''}"
    return f"{record.call.name}: {judged}{decided}; {record.state}"
