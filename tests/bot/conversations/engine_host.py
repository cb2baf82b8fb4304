"""A host on the real engine and a database that outlives it: what tests of starts and stops drive."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import insert, select

from bot.agents import ensure_agents
from bot.config.live import LiveSettings
from bot.host import Host
from bot.wiring.assembly import assemble
from channels.fake import FakeChannel
from core.backends.local.backend import LocalBackend
from core.contracts.addresses import Address, InboundEvent, MessageBody, Privacy
from core.contracts.agents import Audience, PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.delivery import OUTBOX_QUEUE, Binding
from core.contracts.engine import Again, Handler
from core.engines.embedded import EmbeddedEngine
from core.memory.fake import FakeMemoryStore
from core.models.scripted import ScriptedModel
from core.sandbox.fake import FakeOutcome, FakeSandbox
from core.secrets.redaction import ValueRedactor
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores
from core.stores.tables.agents import CONVERSATIONS, PROMPTS
from core.stores.tables.delivery import BINDINGS, INBOX, OUTBOX
from core.stores.tables.ledger import APPROVALS, TOOL_CALLS, TURNS
from core.stores.tables.transcripts import MESSAGES, RUNS
from core.stores.tables.work import WORK_ITEMS
from core.stores.work_items import SqlWorkItems
from tests.bot.conversations.hosting import ALICE, CHANNEL, _parts, make_settings

_ROWS_OF_A_CONVERSATION = (
    CONVERSATIONS,
    PROMPTS,
    BINDINGS,
    INBOX,
    OUTBOX,
    TURNS,
    RUNS,
    MESSAGES,
    TOOL_CALLS,
    APPROVALS,
    WORK_ITEMS,
)


class WatchedItems(SqlWorkItems):
    """Stored doorbells that say when an engine has loaded them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.loaded = asyncio.Event()

    async def load(self):
        found = await super().load()
        self.loaded.set()
        return found


@dataclass(repr=False)
class World:
    """What is there before and after a host: the database, the platform, the model, the time."""

    directory: Path
    database: Database
    model: ScriptedModel
    clock: FakeClock = field(default_factory=FakeClock)
    channel: FakeChannel | None = None
    memory: FakeMemoryStore | None = None

    def __post_init__(self) -> None:
        self.channel = FakeChannel(CHANNEL, clock=self.clock)
        self.memory = FakeMemoryStore(self.clock)


async def multiply(database: Database, chat: str, count: int) -> None:
    """Copy all rows of the one conversation there is, held in `chat`, so often, each time under other names."""

    def operation(tx) -> None:
        tables = {
            table: [dict(row) for row in tx.connection.execute(select(table)).mappings()]
            for table in _ROWS_OF_A_CONVERSATION
        }
        ids = {str(row.get("id")) for rows in tables.values() for row in rows}
        # Ids that are made of others change with those.
        names = (chat, *sorted(name for name in ids if "-" in name and "/" not in name))
        for table, rows in tables.items():
            copies = [_copied(row, names, number) for number in range(count) for row in rows]
            if copies:
                tx.connection.execute(insert(table), copies)

    await database.write(operation)


def _copied(row, names, number: int):
    """Return the row with every name in it changed by the number."""
    copied = {}
    for column, value in row.items():
        if column == "id" and not isinstance(value, str):
            continue  # counted by the database
        copied[column] = _renamed(value, names, number) if isinstance(value, str) else value
    return copied


def _renamed(text: str, names, number: int) -> str:
    for name in names:
        text = text.replace(name, f"{name}x{number}")
    return text


@dataclass(repr=False)
class Running:
    """One process."""

    app: Host
    stores: Stores
    backend: LocalBackend
    calls: Counter[str] = field(default_factory=Counter)
    """How often the handler of each queue was called."""

    async def says(self, text: str, *, key: str, where: Address) -> None:
        """Let the owner write, past a channel's own work; the address becomes a conversation the first time."""
        if await self.stores.delivery.binding(where.key) is None:
            agent = await self.backend.find_agent("lodger")
            conversation = await self.backend.create_conversation(agent.id, Audience())
            binding = Binding(address=where, agent_id=agent.id, conversation_id=conversation.id)
            await self.stores.delivery.bind(binding)
        event = InboundEvent(
            address=where,
            key=key,
            sender=ALICE,
            body=MessageBody(text=text),
            privacy=Privacy.DIRECT,
            sent_at=self.app.clock.now(),
        )
        await self.app.sink.accept(event)

    async def until(self, condition) -> None:
        """Wait until a condition over rows or memory holds."""
        async with asyncio.timeout(60):
            while not await condition():
                await asyncio.sleep(0.001)

    async def is_quiet(self) -> bool:
        """Whether no handler is at work; what is due begins within a few turns of the loop."""
        for _ in range(20):
            await asyncio.sleep(0)
        return not any(task.get_name().partition(":")[0] in self.app.handlers for task in asyncio.all_tasks())


@asynccontextmanager
async def running(
    world: World, *, outcomes: Mapping[str, FakeOutcome] | None = None, mode: PermissionMode = PermissionMode.ASK
) -> AsyncIterator[Running]:
    """Run a host; behind the block it is gone like one whose patience with its turns ran out."""
    settings = make_settings(world.directory)
    agents = {name: replace(agent, permission_mode=mode) for name, agent in settings.agents.items()}
    settings = replace(settings, agents=agents)
    items = WatchedItems(world.database)
    engine = EmbeddedEngine(items, world.clock)
    stores = sql_stores(world.database, submit=engine.submit, clock=world.clock)
    redactor, model = ValueRedactor(), world.model
    async with LocalBackend(
        store=stores.transcripts, memory=world.memory, model=model, clock=world.clock, mask=redactor.mask
    ) as backend:
        await ensure_agents(settings, backend, lambda path: path.mkdir(parents=True, exist_ok=True))
        sandbox = FakeSandbox(outcomes or {}, clock=world.clock)
        parts = _parts(stores, world.memory, sandbox, model, backend, world.channel, redactor, world.clock)
        app = assemble(LiveSettings(settings), replace(parts, engine=engine))
        found = Running(app=app, stores=stores, backend=backend)
        handlers = {queue: _counted(queue, handler, found.calls) for queue, handler in app.handlers.items()}
        run = asyncio.create_task(engine.run(handlers, _give_up), name="engine")
        try:
            await items.loaded.wait()
            yield found
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)


def _counted(queue: str, handler: Handler, calls: Counter[str]) -> Handler:
    async def answer(key: str) -> Again | None:
        calls[queue] += 1
        return await handler(key)

    return answer


async def _give_up(queue: str, key: str, error: Exception) -> None:
    if queue != OUTBOX_QUEUE:
        raise error
