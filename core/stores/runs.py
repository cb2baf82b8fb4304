"""How a run begins and ends: the two transactions around a model step."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from core.contracts.agents import CompiledPrompt
from core.contracts.errors import ConversationBusy, InvalidInput, NotFound
from core.contracts.events import MessageStored, RunEvent, RunFinished
from core.contracts.ids import ConversationId, RunId, TurnId
from core.contracts.ledger import CallState
from core.contracts.messages import Message, Role, tool_calls
from core.contracts.runs import Claim, Run, RunStatus, Usage
from core.contracts.store import RunEnd, RunStart
from core.stores.appending import append_events, append_messages
from core.stores.claims import verify
from core.stores.codec import call_to_json, usage_to_json
from core.stores.records import message_from, run_from
from core.stores.tables.agents import CONVERSATIONS, PROMPTS
from core.stores.tables.ledger import TOOL_CALLS, TURN_IS_OPEN, TURNS
from core.stores.tables.transcripts import MESSAGES, RUN_IS_ACTIVE, RUNS
from core.stores.text import dump

_RUN = select(RUNS).where(RUNS.c.id == bindparam("of_run"))
_RUN_OF_REQUEST = select(RUNS).where(
    RUNS.c.conversation_id == bindparam("of_conversation"), RUNS.c.request_id == bindparam("of_request")
)
_RUNS_OF_TURN = select(RUNS).where(RUNS.c.turn_id == bindparam("of_turn")).order_by(RUNS.c.started_at, RUNS.c.id)
_ACTIVE_RUN = select(RUNS.c.id).where(RUNS.c.conversation_id == bindparam("of_conversation"), RUN_IS_ACTIVE)
_OPEN_TURN = select(TURNS.c.id).where(TURNS.c.conversation_id == bindparam("of_conversation"), TURN_IS_OPEN)
_INSERT_CALLS = insert(TOOL_CALLS)
_INSERT_PROMPT = upsert(PROMPTS)
_STORE_PROMPT = _INSERT_PROMPT.on_conflict_do_update(
    index_elements=["conversation_id"],
    set_={column.name: column for column in _INSERT_PROMPT.excluded if column.name != "conversation_id"},
)
_CHANGE_CONVERSATION = update(CONVERSATIONS).where(CONVERSATIONS.c.id == bindparam("of_conversation"))
_INSERT_RUN = insert(RUNS).returning(*RUNS.c)
_FINISH_RUN = update(RUNS).where(RUNS.c.id == bindparam("of_run")).returning(*RUNS.c)


def begin_run(connection: Connection, claim: Claim, start: RunStart, now: datetime) -> tuple[Run, tuple[Message, ...]]:
    """See `TranscriptStore.begin_run`."""
    verify(connection, claim)
    conversation_id = claim.conversation_id
    known = find_run(connection, conversation_id, start.request_id)
    if known is not None:
        return known, ()
    active = active_run(connection, conversation_id)
    if active is not None:
        raise ConversationBusy(conversation_id, active)
    run = run_from(connection.execute(_INSERT_RUN, _new_run(connection, claim, start, now)).one())
    messages = append_messages(connection, conversation_id, start.messages, run_id=start.run_id, now=now)
    if start.prompt is not None:
        _store_prompt(connection, conversation_id, start.prompt)
    stored = [
        RunEvent(run_id=start.run_id, seq=seq, body=MessageStored(message=message))
        for seq, message in enumerate(messages, start=1)
    ]
    append_events(connection, start.run_id, stored, now)
    return run, messages


def finish_run(connection: Connection, claim: Claim, end: RunEnd, now: datetime) -> tuple[Run, Message | None]:
    """See `TranscriptStore.finish_run`."""
    verify(connection, claim)
    run = get_run(connection, end.run_id)
    if run.conversation_id != claim.conversation_id:
        raise InvalidInput(f"run {end.run_id!r} is not of conversation {claim.conversation_id!r}")
    if run.status is RunStatus.FINISHED:
        return run, _assistant_message(connection, end.run_id)
    if not end.events or not isinstance(end.events[-1].body, RunFinished):
        raise InvalidInput("the last event of a run is RunFinished")
    new = () if end.message is None else (end.message,)
    messages = append_messages(connection, claim.conversation_id, new, run_id=end.run_id, now=now)
    for message in messages:
        _open_calls(connection, message, end.run_id)
    append_events(connection, end.run_id, end.events, now)
    result = {"stop_reason": end.stop_reason.value, "error": end.error, "finished_at": now}
    values = {"status": RunStatus.FINISHED.value, **result, **usage_to_json(end.usage)}
    finished = connection.execute(_FINISH_RUN, {"of_run": end.run_id, **values}).one()
    return run_from(finished), messages[0] if messages else None


def append_run_events(connection: Connection, claim: Claim, events: tuple[RunEvent, ...], now: datetime) -> None:
    """See `TranscriptStore.append_events`."""
    verify(connection, claim)
    if not events:
        return
    run_id = events[0].run_id
    if active_run(connection, claim.conversation_id) != run_id:
        raise InvalidInput(f"run {run_id!r} is not active in conversation {claim.conversation_id!r}")
    append_events(connection, run_id, events, now)


def get_run(connection: Connection, run_id: RunId) -> Run:
    """Return the run, or raise `NotFound`."""
    row = connection.execute(_RUN, {"of_run": run_id}).one_or_none()
    if row is None:
        raise NotFound("run", run_id)
    return run_from(row)


def find_run(connection: Connection, conversation_id: ConversationId, request_id: str) -> Run | None:
    """Return the run that a request began."""
    key = {"of_conversation": conversation_id, "of_request": request_id}
    row = connection.execute(_RUN_OF_REQUEST, key).one_or_none()
    return None if row is None else run_from(row)


def runs_of_turn(connection: Connection, turn_id: TurnId) -> tuple[Run, ...]:
    """See `TranscriptStore.runs_of_turn`."""
    return tuple(run_from(row) for row in connection.execute(_RUNS_OF_TURN, {"of_turn": turn_id}))


def active_run(connection: Connection, conversation_id: ConversationId) -> RunId | None:
    """Return the conversation's active run; the schema allows one."""
    run_id = connection.execute(_ACTIVE_RUN, {"of_conversation": conversation_id}).scalar_one_or_none()
    return None if run_id is None else RunId(run_id)


def _new_run(connection: Connection, claim: Claim, start: RunStart, now: datetime) -> dict[str, object]:
    turn_id = connection.execute(_OPEN_TURN, {"of_conversation": claim.conversation_id}).scalar_one_or_none()
    return {
        "id": start.run_id,
        "conversation_id": claim.conversation_id,
        "request_id": start.request_id,
        "turn_id": turn_id,
        "epoch": claim.epoch,
        "status": RunStatus.ACTIVE.value,
        "started_at": now,
        "finished_at": None,
        "stop_reason": None,
        "error": "",
        **usage_to_json(Usage()),
    }


def _store_prompt(connection: Connection, conversation_id: ConversationId, prompt: CompiledPrompt) -> None:
    row = {
        "conversation_id": conversation_id,
        "text": prompt.text,
        "revision": prompt.revision,
        "seen_revision": prompt.seen_revision,
        "stamp": prompt.stamp,
        "tools_json": prompt.tools_json,
        "reason": prompt.reason,
    }
    connection.execute(_STORE_PROMPT, row)
    connection.execute(_CHANGE_CONVERSATION, {"of_conversation": conversation_id, "prompt_stale": ""})


def _assistant_message(connection: Connection, run_id: RunId) -> Message | None:
    statement = select(MESSAGES).where(MESSAGES.c.run_id == run_id, MESSAGES.c.role == Role.ASSISTANT.value)
    row = connection.execute(statement).one_or_none()
    return None if row is None else message_from(row)


def _open_calls(connection: Connection, message: Message, run_id: RunId) -> None:
    rows = [
        {
            "conversation_id": message.conversation_id,
            "call_id": call.id,
            "run_id": run_id,
            "position": position,
            "call": dump(call_to_json(call)),
            "state": CallState.WAITING.value,
        }
        for position, call in enumerate(tool_calls(message.parts))
    ]
    if rows:
        connection.execute(_INSERT_CALLS, rows)
