"""Commands about the conversation's turns: begin anew, stop, pause, queue, status."""

from __future__ import annotations

from dataclasses import replace

from bot.conversations.command_calls import CommandCall, CommandPorts, Who
from core.contracts.agents import QueueMode
from core.contracts.permissions import ApprovalState
from core.contracts.runs import Turn, TurnState
from core.contracts.store import ConversationChange

_QUEUE_MODES = {
    QueueMode.STEER: "enters what I am doing at my next step",
    QueueMode.AFTER_TURN: "waits until I am done",
    QueueMode.INTERRUPT: "stops me and goes next",
}


async def new(ports: CommandPorts, call: CommandCall) -> str:
    """Begin a new conversation at this address."""
    if call.conversation.paused:
        if call.rank < Who.OPERATOR and not call.is_in_own_chat:
            return "I am paused here; an operator or an owner has to /resume first."
        # Before the address moves on: nobody could resume it any more, and what waits there would for ever.
        await _set_paused(ports, call, paused=False)
    turn = await ports.ledger.open_turn(call.conversation.id)
    if turn is not None and (turn.requester == call.who.person.id or call.rank >= Who.OPERATOR):
        await _stop(ports, call)
    fresh = await ports.backend.create_conversation(call.agent.id, call.conversation.audience)
    await ports.delivery.bind(replace(call.binding, conversation_id=fresh.id))
    return "A new conversation. What I remember stays; the old one is kept."


async def cancel(ports: CommandPorts, call: CommandCall) -> str:
    """Stop the turn that runs or waits."""
    if await ports.ledger.open_turn(call.conversation.id) is None:
        return "Nothing is running."
    await _stop(ports, call)
    return "Stopping. Queued messages stay."


async def pause(ports: CommandPorts, call: CommandCall) -> str:
    """Let no further turn begin."""
    if call.conversation.paused:
        return "I am paused already. /resume lets me go on."
    await _set_paused(ports, call, paused=True)
    return "Paused. What I am doing now goes on to its end; new messages wait until /resume."


async def resume(ports: CommandPorts, call: CommandCall) -> str:
    """Let turns begin again, at once with what waits."""
    if not call.conversation.paused:
        # A try that died may have got no further than to say so in the database.
        await ports.ring(call.conversation.id)
        return "I am not paused."
    await _set_paused(ports, call, paused=False)
    return "I go on."


async def queue(ports: CommandPorts, call: CommandCall) -> str:
    """Show or set what becomes of messages that come while a turn runs."""
    if not call.rest:
        lines = [f"{mode}: a message {what}." for mode, what in _QUEUE_MODES.items()]
        return "\n".join([f"Queue mode {queue_mode(call)}.", *lines])
    try:
        wanted = QueueMode(call.rest.strip().lower())
    except ValueError:
        return f"There is no queue mode {call.rest!r}. Modes: {', '.join(QueueMode)}."
    await ports.transcripts.change_conversation(call.conversation.id, ConversationChange(queue_mode=wanted))
    await ports.record(call, "queue_mode_set", {"mode": wanted})
    return f"Queue mode of this conversation: {wanted}. While I work, a message {_QUEUE_MODES[wanted]}."


async def status(ports: CommandPorts, call: CommandCall) -> str:
    """Say what goes on."""
    turn = await ports.ledger.open_turn(call.conversation.id)
    queued = await ports.delivery.queued(call.conversation.id)
    mode = call.conversation.permission_mode or call.agent.permission_mode
    doing = "idle" if turn is None else f"{turn.state} since {turn.started_at:%H:%M} UTC, step {turn.steps + 1}"
    lines = [
        f"Agent {call.agent.name}, model {call.agent.model.model}.",
        f"Permission mode {mode}, queue mode {queue_mode(call)}.",
        f"Conversation {call.conversation.id}: {doing}; {len(queued)} queued.",
    ]
    if call.conversation.paused:
        lines.append("Paused: /resume lets me go on.")
    return "\n".join([*lines, *await _last_usage(ports, call), *await _awaited(ports, turn)])


def queue_mode(call: CommandCall) -> QueueMode:
    """Return the conversation's queue mode, its own or its agent's."""
    return call.conversation.queue_mode or call.agent.queue_mode


async def _last_usage(ports: CommandPorts, call: CommandCall) -> list[str]:
    latest = await ports.ledger.latest_turn(call.conversation.id)
    if latest is None:
        return []
    usage = await ports.transcripts.usage_since(latest.id)
    cached = f"{usage.cached_tokens} cached"
    return [f"Last turn: {usage.input_tokens} tokens in ({cached}), {usage.output_tokens} out."]


async def _awaited(ports: CommandPorts, turn: Turn | None) -> list[str]:
    if turn is None or turn.state is not TurnState.PARKED:
        return []
    waiting = [a.tool for a in await ports.ledger.approvals_of(turn.id) if a.state is ApprovalState.OPEN]
    return [f"Waiting for a decision on {', '.join(waiting)}."] if waiting else []


async def _stop(ports: CommandPorts, call: CommandCall) -> None:
    if await ports.ledger.request_cancel(call.conversation.id, by=call.who.person.id) is not None:
        ports.wake_cancel(call.conversation.id)


async def _set_paused(ports: CommandPorts, call: CommandCall, *, paused: bool) -> None:
    await ports.transcripts.change_conversation(call.conversation.id, ConversationChange(paused=paused))
    await ports.record(call, "paused" if paused else "resumed")
    if not paused:
        await ports.ring(call.conversation.id)
