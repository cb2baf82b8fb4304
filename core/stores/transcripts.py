"""Agents, conversations, transcripts and runs in SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Integer, bindparam, cast, func, insert, select, update

from core.contracts.agents import Agent, Conversation
from core.contracts.clock import Clock
from core.contracts.errors import NotFound
from core.contracts.events import RunEvent
from core.contracts.ids import AgentId, ConversationId, RunId, TurnId
from core.contracts.messages import Message, ToolCall, ToolReturn
from core.contracts.runs import Claim, Run, Usage
from core.contracts.store import ConversationChange, ConversationState, NewMessage, RunEnd, RunStart, TranscriptStore
from core.stores import calls, claims, runs
from core.stores.appending import append_messages
from core.stores.connection import Database, SqlTransaction
from core.stores.records import (
    AnyRow,
    agent_from,
    agent_values,
    conversation_from,
    conversation_values,
    event_from,
    message_from,
    prompt_from,
)
from core.stores.tables.agents import AGENTS, CONVERSATIONS, PROMPTS
from core.stores.tables.transcripts import MESSAGES, RUN_EVENTS, RUNS

T = TypeVar("T")

_AGENT = select(AGENTS).where(AGENTS.c.id == bindparam("of_agent"))
_CONVERSATION = select(CONVERSATIONS).where(CONVERSATIONS.c.id == bindparam("of_conversation"))
_PROMPT = select(PROMPTS).where(PROMPTS.c.conversation_id == bindparam("of_conversation"))
_VIEW = select(MESSAGES).where(MESSAGES.c.conversation_id == bindparam("of_conversation")).order_by(MESSAGES.c.seq)
_MESSAGES_AFTER = _VIEW.where(MESSAGES.c.seq > bindparam("after")).limit(bindparam("at_most", type_=Integer))
_EVENTS_AFTER = (
    select(RUN_EVENTS)
    .where(RUN_EVENTS.c.run_id == bindparam("of_run"), RUN_EVENTS.c.seq > bindparam("after"))
    .order_by(RUN_EVENTS.c.seq)
    .limit(bindparam("at_most", type_=Integer))
)
_USAGE = select(
    func.coalesce(func.sum(RUNS.c.input_tokens), 0),
    func.coalesce(func.sum(RUNS.c.output_tokens), 0),
    func.coalesce(func.sum(RUNS.c.cached_tokens), 0),
    func.coalesce(func.sum(RUNS.c.cache_write_tokens), 0),
    func.sum(RUNS.c.cost_usd),
    func.max(cast(RUNS.c.estimated, Integer)),
).where(RUNS.c.turn_id == bindparam("of_turn"))


class SqlTranscripts:
    """The transcript store; every method is one transaction."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def insert_agent(self, agent: Agent) -> None:
        await self._write(lambda connection: connection.execute(insert(AGENTS).values(agent_values(agent))))

    async def update_agent(self, agent: Agent) -> None:
        values = agent_values(agent)
        del values["id"], values["created_at"]

        def operation(connection: Connection) -> None:
            statement = update(AGENTS).where(AGENTS.c.id == agent.id).values(values).returning(AGENTS.c.id)
            if connection.execute(statement).one_or_none() is None:
                raise NotFound("agent", agent.id)

        await self._write(operation)

    async def agent(self, agent_id: AgentId) -> Agent:
        return await self._database.read(lambda connection: _agent(connection, agent_id))

    async def agents(self) -> tuple[Agent, ...]:
        def operation(connection: Connection) -> tuple[Agent, ...]:
            return tuple(agent_from(row) for row in connection.execute(select(AGENTS).order_by(AGENTS.c.name)))

        return await self._database.read(operation)

    async def insert_conversation(self, conversation: Conversation) -> None:
        values = {
            "id": conversation.id,
            "agent_id": conversation.agent_id,
            "epoch": conversation.epoch,
            "next_seq": 1,
            "created_at": conversation.created_at,
            "hidden": conversation.hidden,
            "prompt_stale": "",
            **conversation_values(conversation),
        }
        await self._write(lambda connection: connection.execute(insert(CONVERSATIONS).values(values)))

    async def update_conversation(self, conversation: Conversation) -> None:
        await self._set_on_conversation(conversation.id, conversation_values(conversation))

    async def change_conversation(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        values = {
            "permission_mode": None if change.permission_mode is None else change.permission_mode.value,
            "queue_mode": None if change.queue_mode is None else change.queue_mode.value,
            "paused": change.paused,
        }
        given: dict[str, object] = {name: value for name, value in values.items() if value is not None}
        if given:
            await self._set_on_conversation(conversation_id, given)
        else:
            await self.conversation(conversation_id)

    async def conversation(self, conversation_id: ConversationId) -> Conversation:
        def operation(connection: Connection) -> Conversation:
            return conversation_from(_conversation_row(connection, conversation_id))

        return await self._database.read(operation)

    async def conversations(self, agent_id: AgentId, *, limit: int = 100) -> tuple[Conversation, ...]:
        statement = (
            select(CONVERSATIONS)
            .where(CONVERSATIONS.c.agent_id == agent_id, CONVERSATIONS.c.hidden.is_(False))
            .order_by(CONVERSATIONS.c.created_at.desc(), CONVERSATIONS.c.id.desc())
            .limit(limit)
        )

        def operation(connection: Connection) -> tuple[Conversation, ...]:
            return tuple(conversation_from(row) for row in connection.execute(statement))

        return await self._database.read(operation)

    async def claim(self, conversation_id: ConversationId) -> Claim:
        now = self._clock.now()
        return await self._write(lambda connection: claims.raise_epoch(connection, conversation_id, now))

    async def state(self, conversation_id: ConversationId) -> ConversationState:
        return await self._database.read(lambda connection: _state(connection, conversation_id))

    async def mark_prompt_stale(self, conversation_id: ConversationId, reason: str) -> None:
        await self._set_on_conversation(conversation_id, {"prompt_stale": reason})

    async def begin_run(self, claim: Claim, start: RunStart) -> tuple[Run, tuple[Message, ...]]:
        now = self._clock.now()
        return await self._write(lambda connection: runs.begin_run(connection, claim, start, now))

    async def append_events(self, claim: Claim, events: Sequence[RunEvent]) -> None:
        now, batch = self._clock.now(), tuple(events)
        await self._write(lambda connection: runs.append_run_events(connection, claim, batch, now))

    async def finish_run(self, claim: Claim, end: RunEnd) -> tuple[Run, Message | None]:
        now = self._clock.now()
        return await self._write(lambda connection: runs.finish_run(connection, claim, end, now))

    async def append_returns(self, claim: Claim, messages: Sequence[NewMessage]) -> tuple[Message, ...]:
        now, batch = self._clock.now(), tuple(messages)

        def operation(connection: Connection) -> tuple[Message, ...]:
            claims.verify(connection, claim)
            return append_messages(connection, claim.conversation_id, batch, run_id=None, now=now)

        return await self._write(operation)

    async def run(self, run_id: RunId) -> Run:
        return await self._database.read(lambda connection: runs.get_run(connection, run_id))

    async def find_run(self, conversation_id: ConversationId, request_id: str) -> Run | None:
        return await self._database.read(lambda connection: runs.find_run(connection, conversation_id, request_id))

    async def runs_of_turn(self, turn_id: TurnId) -> tuple[Run, ...]:
        return await self._database.read(lambda connection: runs.runs_of_turn(connection, turn_id))

    async def events(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> tuple[RunEvent, ...]:
        return await self._database.read(lambda connection: _events(connection, run_id, after, limit))

    async def messages(
        self, conversation_id: ConversationId, *, after_seq: int = 0, limit: int = 200
    ) -> tuple[Message, ...]:
        key = {"of_conversation": conversation_id, "after": after_seq, "at_most": limit}

        def operation(connection: Connection) -> tuple[Message, ...]:
            return tuple(message_from(row) for row in connection.execute(_MESSAGES_AFTER, key))

        return await self._database.read(operation)

    async def parked_calls(self, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
        return await self._database.read(lambda connection: calls.parked_calls(connection, conversation_id))

    async def known_returns(self, conversation_id: ConversationId) -> tuple[ToolReturn, ...]:
        return await self._database.read(lambda connection: calls.known_returns(connection, conversation_id))

    async def usage_since(self, turn_id: TurnId) -> Usage:
        return await self._database.read(lambda connection: _usage(connection, turn_id))

    async def _write(self, operation: Callable[[Connection], T]) -> T:
        def in_transaction(tx: SqlTransaction) -> T:
            return operation(tx.connection)

        return await self._database.write(in_transaction)

    async def _set_on_conversation(self, conversation_id: ConversationId, values: dict[str, object]) -> None:
        statement = update(CONVERSATIONS).where(CONVERSATIONS.c.id == conversation_id).values(values)

        def operation(connection: Connection) -> None:
            if connection.execute(statement.returning(CONVERSATIONS.c.id)).one_or_none() is None:
                raise NotFound("conversation", conversation_id)

        await self._write(operation)


def _agent(connection: Connection, agent_id: AgentId) -> Agent:
    row = connection.execute(_AGENT, {"of_agent": agent_id}).one_or_none()
    if row is None:
        raise NotFound("agent", agent_id)
    return agent_from(row)


def _conversation_row(connection: Connection, conversation_id: ConversationId) -> AnyRow:
    row = connection.execute(_CONVERSATION, {"of_conversation": conversation_id}).one_or_none()
    if row is None:
        raise NotFound("conversation", conversation_id)
    return row


def _state(connection: Connection, conversation_id: ConversationId) -> ConversationState:
    key = {"of_conversation": conversation_id}
    row = _conversation_row(connection, conversation_id)
    conversation = conversation_from(row)
    prompt = connection.execute(_PROMPT, key).one_or_none()
    return ConversationState(
        agent=_agent(connection, conversation.agent_id),
        conversation=conversation,
        prompt=None if prompt is None else prompt_from(prompt),
        prompt_stale=row.prompt_stale,
        view=tuple(message_from(message) for message in connection.execute(_VIEW, key)),
        active_run=runs.active_run(connection, conversation_id),
    )


def _events(connection: Connection, run_id: RunId, after: int, limit: int) -> tuple[RunEvent, ...]:
    rows = connection.execute(_EVENTS_AFTER, {"of_run": run_id, "after": after, "at_most": limit}).all()
    named = [row.message_id for row in rows if row.message_id is not None]
    stored = connection.execute(select(MESSAGES).where(MESSAGES.c.id.in_(named))) if named else ()
    messages = {row.id: message_from(row) for row in stored}
    return tuple(event_from(row, messages) for row in rows)


def _usage(connection: Connection, turn_id: TurnId) -> Usage:
    row = connection.execute(_USAGE, {"of_turn": turn_id}).one()
    return Usage(
        input_tokens=row[0],
        output_tokens=row[1],
        cached_tokens=row[2],
        cache_write_tokens=row[3],
        cost_usd=row[4],
        estimated=bool(row[5]),
    )


if TYPE_CHECKING:
    _conforms: type[TranscriptStore] = SqlTranscripts
