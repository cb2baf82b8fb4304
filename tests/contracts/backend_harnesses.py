"""Backends with a scripted model behind them, for the contract suite.

A harness owns what a backend stands on and can restart it. To hold another backend to the
contract, write one and add it to `HARNESSES`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from core.backends.local.backend import LocalBackend
from core.contracts.agents import Agent, AgentSpec, Audience, Conversation, ModelSettings
from core.contracts.backend import Backend
from core.contracts.clock import FakeClock
from core.contracts.events import RunEvent
from core.contracts.ids import AgentId, ConversationId, MessageId, RunId, TurnId, new_id
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange, MemoryStore
from core.contracts.messages import Role, TextPart, ToolCall
from core.contracts.models import ModelClient
from core.contracts.runs import Claim, Run, RunInput, Turn, TurnState, UserInput
from core.contracts.store import NewMessage
from core.contracts.tools import ToolSchema
from core.memory.fake import FakeMemoryStore
from core.memory.store import GitMemoryStore
from core.stores.connection import Database
from core.stores.inmemory import ring_nobody
from core.stores.sql import Stores, sql_stores
from tests.core.stores.samples import approval

BOUND_SECONDS = 60
SHELL = ToolSchema(name="shell", description="Run a command.", parameters={"type": "object", "properties": {}})
SPEC = AgentSpec(name="lodger", model=ModelSettings(name="main", model="scripted/test"), workspace="/workspace")


def say(text: str) -> UserInput:
    return UserInput(parts=(TextPart(text=text),))


@dataclass
class BackendWorld:
    """A backend, what it stands on, one agent and one conversation."""

    backend: Backend
    stores: Stores
    memory: MemoryStore
    clock: FakeClock
    model: ModelClient
    restart: Callable[[], AbstractAsyncContextManager[BackendWorld]]
    """Ends this backend and gives another world on the same database and memory."""
    agent: Agent = field(init=False)
    conversation: Conversation = field(init=False)

    @property
    def conversation_id(self) -> ConversationId:
        return self.conversation.id

    async def settle_in(self) -> None:
        """Create the agent and its conversation, or find them again."""
        known = await self.backend.find_agent(SPEC.name)
        self.agent = known or await self.backend.create_agent(SPEC)
        found = await self.stores.transcripts.conversations(AgentId(self.agent.id))
        self.conversation = found[0] if found else await self.backend.create_conversation(self.agent.id, Audience())

    async def claim(self) -> Claim:
        return await self.backend.claim(self.conversation_id)

    async def start(
        self,
        run_input: RunInput,
        *,
        claim: Claim | None = None,
        request_id: str = "",
        tools: tuple[ToolSchema, ...] = (SHELL,),
    ) -> Run:
        return await self.backend.start_run(
            claim or await self.claim(), run_input, tools=tools, request_id=request_id or new_id("request")
        )

    async def step(self, run_input: RunInput, **more) -> list[RunEvent]:
        """Take one whole step and return its events."""
        return await self.events((await self.start(run_input, **more)).id)

    async def events(self, run_id: RunId, *, after: int = 0) -> list[RunEvent]:
        async with asyncio.timeout(BOUND_SECONDS):
            return [event async for event in self.backend.events(run_id, after=after)]

    async def first_event(self, run_id: RunId, kind: type) -> RunEvent:
        """Return the first event with a body of that kind; time passes meanwhile."""
        async with asyncio.timeout(BOUND_SECONDS), asyncio.TaskGroup() as group:
            passing = group.create_task(self.time_passes())
            async for event in self.backend.events(run_id):
                if isinstance(event.body, kind):
                    passing.cancel()
                    return event
        raise AssertionError(f"run {run_id} ended without {kind.__name__}")

    async def time_passes(self) -> None:
        """Let the clock go on until cancelled, so that batches are flushed and waits end."""
        while True:
            await asyncio.sleep(0.001)
            if self.clock.sleeping:
                await self.clock.advance(timedelta(milliseconds=200))

    async def roles(self) -> list[Role]:
        return [message.role for message in await self.backend.list_messages(self.conversation_id)]

    async def insert(self, *messages: tuple[Role, tuple]) -> None:
        """Store rows as a process that died left them."""
        rows = [NewMessage(id=MessageId(new_id("msg")), role=role, parts=parts) for role, parts in messages]
        await self.stores.transcripts.append_returns(await self.claim(), rows)

    async def begin_turn(self) -> Claim:
        """Begin a turn's bookkeeping, so that approvals have one to belong to."""
        turn = Turn(
            id=TurnId(new_id("turn")),
            conversation_id=self.conversation_id,
            agent_id=self.agent.id,
            requester=None,
            origin=None,
            state=TurnState.RUNNING,
            started_at=self.clock.now(),
        )
        return await self.stores.ledger.begin_turn(turn, inbox_ids=[], live=None)

    async def park(self, claim: Claim, call: ToolCall) -> None:
        """Put a call to people, so that it is parked."""
        turn = await self.stores.ledger.open_turn(self.conversation_id)
        later = self.clock.now() + timedelta(hours=1)
        asked = approval(
            new_id("apr"), call.id, turn_id=turn.id, conversation_id=self.conversation_id, expires_at=later
        )
        await self.stores.ledger.open_approvals(claim, [replace(asked, agent_id=self.agent.id)], None)

    async def commit(
        self, path: str, text: str, *, author: str = "Bob", audience: Audience | None = None, **more
    ) -> str:
        """Commit one memory file and return the revision."""
        origin = CommitOrigin(author=author, audience=audience or Audience(), approved=True, **more)
        change = MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description="about it")
        committed = await self.memory.commit(self.agent.memory_id, [change], message=f"add {path}", origin=origin)
        return committed.revision


Opener: TypeAlias = Callable[[Path, ModelClient], AbstractAsyncContextManager[BackendWorld]]


@asynccontextmanager
async def local_on_files(directory: Path, model: ModelClient) -> AsyncIterator[BackendWorld]:
    """`LocalBackend` on a SQLite file and git memory; a restart opens both afresh."""
    async with AsyncExitStack() as stack:
        clock = FakeClock()
        database = await asyncio.to_thread(Database.open, directory / "host.db")
        stack.push_async_callback(database.close)
        stores = sql_stores(database, submit=ring_nobody, clock=clock)
        memory = GitMemoryStore(directory / "memory", clock)
        backend = LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=str)
        await stack.enter_async_context(backend)

        @asynccontextmanager
        async def restart() -> AsyncIterator[BackendWorld]:
            await stack.aclose()
            async with local_on_files(directory, model) as again:
                yield again

        world = BackendWorld(backend, stores, memory, clock, model, restart)
        await world.settle_in()
        yield world


@asynccontextmanager
async def local_in_memory(directory: Path, model: ModelClient) -> AsyncIterator[BackendWorld]:
    """`LocalBackend` on stores and memory that end with the test; a restart is another backend on them."""
    del directory
    clock = FakeClock()
    database = Database.open(":memory:")
    stores, memory = sql_stores(database, submit=ring_nobody, clock=clock), FakeMemoryStore(clock)
    try:
        async with _on(stores, memory, model, clock) as world:
            yield world
    finally:
        await database.close()


@asynccontextmanager
async def _on(stores: Stores, memory: MemoryStore, model: ModelClient, clock: FakeClock) -> AsyncIterator[BackendWorld]:
    async with AsyncExitStack() as stack:
        backend = LocalBackend(store=stores.transcripts, memory=memory, model=model, clock=clock, mask=str)
        await stack.enter_async_context(backend)

        @asynccontextmanager
        async def restart() -> AsyncIterator[BackendWorld]:
            await stack.aclose()
            async with _on(stores, memory, model, clock) as again:
                yield again

        world = BackendWorld(backend, stores, memory, clock, model, restart)
        await world.settle_in()
        yield world


HARNESSES: dict[str, Opener] = {"in memory": local_in_memory, "files": local_on_files}
