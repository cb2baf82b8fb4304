"""A host by the real wiring on a database, with the real engine and the real model client, for any one platform.

Platform and model are servers on sockets. Time is fake: it flows quickly while a test waits for
something, so that waits of seconds cost milliseconds, and stands still otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from bot.agents import ensure_agents
from bot.app import _running
from bot.config.live import LiveSettings
from bot.config.model import Channels, ClientKind, ModelSection, Settings
from bot.host import Host
from bot.wiring.assembly import assemble
from channels.contract import Channel
from core.backends.local.backend import LocalBackend
from core.contracts.agents import PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.delivery import OutboxState
from core.engines.embedded import EmbeddedEngine
from core.memory.fake import FakeMemoryStore
from core.models.direct import DirectClient
from core.sandbox.fake import FakeOutcome, FakeSandbox
from core.secrets.redaction import ValueRedactor
from core.stores.connection import Database
from core.stores.sql import Stores, sql_stores
from core.stores.tables.delivery import INBOX, OUTBOX
from core.stores.tables.ledger import TURNS
from core.stores.work_items import SqlWorkItems
from tests.bot.conversations.hosting import _parts, make_settings
from tests.platforms.model_script import Step
from tests.platforms.openai_server import OpenAIServer

PATIENCE_SECONDS = 60
STEP = timedelta(milliseconds=40)
"""How far time moves at once while it flows."""

_SETTLED = {OutboxState.SENT, OutboxState.UNKNOWN, OutboxState.FAILED, OutboxState.DROPPED}

OpenChannel = Callable[[Callable[[str], str]], AbstractAsyncContextManager[Channel]]
"""Opens the platform's channel; takes what masks secrets."""


@dataclass(repr=False)
class WiredHost:
    """A running host, its model and its time."""

    host: Host
    stores: Stores
    model: OpenAIServer
    clock: FakeClock

    async def passes(self, duration: timedelta) -> None:
        """Let time pass at once."""
        for _ in range(10):
            await self.clock.advance(duration / 10)

    async def until(self, condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS) -> None:
        """Let time flow until a condition over the platform or the model holds."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.001)
                await self.clock.advance(STEP)

    async def until_settled(self) -> None:
        """Wait until nothing is pending: no event, no turn, no message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.pending():
                await self.until(asked(times=20))

    async def pending(self) -> list[str]:
        """Return what is left to do, as rows."""

        def operation(connection) -> list[str]:
            inbox = connection.execute(select(INBOX.c.id, INBOX.c.state)).all()
            outbox = connection.execute(select(OUTBOX.c.id, OUTBOX.c.state)).all()
            turns = connection.execute(select(TURNS.c.id, TURNS.c.state)).all()
            return [
                *(f"inbox {row.id}: {row.state}" for row in inbox if row.state not in {"done", "withdrawn"}),
                *(f"outbox {row.id}: {row.state}" for row in outbox if row.state not in _SETTLED),
                *(f"turn {row.id}: {row.state}" for row in turns if row.state != "finished"),
            ]

        return await self.stores.database.read(operation)

    async def turns_of_messages(self) -> list[str]:
        """Return the turn of each message that people sent, in order of acceptance."""

        def operation(connection) -> list[str]:
            rows = connection.execute(select(INBOX.c.turn_id, INBOX.c.event).order_by(INBOX.c.id)).all()
            return [row.turn_id for row in rows if '"press"' not in row.event]

        return await self.stores.database.read(operation)

    async def deferred(self) -> dict[str, timedelta]:
        """Return how long each message still has to wait."""

        def operation(connection) -> dict[str, timedelta]:
            rows = connection.execute(select(OUTBOX.c.id, OUTBOX.c.not_before)).all()
            return {row.id: row.not_before - self.clock.now() for row in rows if row.not_before is not None}

        return await self.stores.database.read(operation)


def asked(*, times: int) -> Callable[[], bool]:
    """Return a condition that holds when it was asked so often."""
    left = iter(range(times))
    return lambda: next(left, None) is None


def wired_settings(
    directory: Path,
    base_url: str,
    people: Sequence[str],
    owners: Sequence[str],
    mode: PermissionMode,
    channels: Channels | None,
) -> Settings:
    """Return a configuration with one model, on a server, and more people who may talk."""
    settings = make_settings(directory)
    model = ModelSection(model="openai/m1", api_base=base_url, client=ClientKind.DIRECT)
    access = replace(
        settings.access, allow=(*settings.access.allow, *people), owners=(*settings.access.owners, *owners)
    )
    agents = {name: replace(agent, permission_mode=mode) for name, agent in settings.agents.items()}
    settings = replace(settings, models={"main": model}, access=access, agents=agents)
    return settings if channels is None else replace(settings, channels=channels)


@asynccontextmanager
async def wired_host(
    directory: Path,
    open_channel: OpenChannel,
    *steps: Step,
    clock: FakeClock,
    channels: Channels | None = None,
    outcomes: Mapping[str, FakeOutcome] | None = None,
    file: bool = False,
    people: Sequence[str] = (),
    owners: Sequence[str] = (),
    mode: PermissionMode = PermissionMode.ASK,
) -> AsyncIterator[WiredHost]:
    """Run a host for the length of the block.

    Args:
        channels: The `[channels]` part of its configuration; without it: Telegram.
        file: Keep the database in a file below `directory`, not in memory.
        people: Identities that may talk, besides those of `hosting`.
        owners: Identities that may do everything, besides its owner.
    """
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(OpenAIServer(list(steps)))
        database = await asyncio.to_thread(Database.open, directory / "host.db" if file else ":memory:")
        stack.push_async_callback(database.close)
        engine = EmbeddedEngine(SqlWorkItems(database), clock)
        stores = sql_stores(database, submit=engine.submit, clock=clock)
        redactor = ValueRedactor()
        memory = FakeMemoryStore(clock, redactor.mask)
        client = DirectClient(resolve_key=lambda _: None, mask=redactor.mask)
        stack.push_async_callback(client.aclose)
        backend = await stack.enter_async_context(
            LocalBackend(store=stores.transcripts, memory=memory, model=client, clock=clock, mask=redactor.mask)
        )
        settings = wired_settings(directory, server.base_url, people, owners, mode, channels)
        await ensure_agents(settings, backend, lambda path: path.mkdir(parents=True, exist_ok=True))
        channel = await stack.enter_async_context(open_channel(redactor.mask))
        sandbox = FakeSandbox(outcomes or {}, clock=clock)
        parts = _parts(stores, memory, sandbox, client, backend, channel, redactor, clock)
        host = assemble(LiveSettings(settings), replace(parts, engine=engine))
        hurry = asyncio.Event()
        await stack.enter_async_context(_running(host, hurry))
        stack.callback(hurry.set)
        yield WiredHost(host=host, stores=stores, model=server, clock=clock)
