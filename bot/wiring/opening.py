"""Opens everything a host stands on, and closes it in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from bot.agents import ensure_agents
from bot.config.last_good import keep_last_good, load_again
from bot.config.live import LiveSettings, ModelKeys
from bot.config.load import surroundings
from bot.config.model import LogSettings, Settings
from bot.folders import open_data_dir, usable
from bot.host import Host
from bot.reload import Reloader, ReloadPorts
from bot.restore import finish_restore
from bot.wiring.assembly import assemble
from bot.wiring.channels import open_channels, open_diagnosable
from bot.wiring.parts import Parts
from bot.wiring.speech import open_transcriber
from core.backends.local.backend import LocalBackend
from core.contracts.clock import Clock
from core.contracts.secrets import Redactor
from core.engines.embedded import EmbeddedEngine
from core.memory.store import GitMemoryStore
from core.models.demo import DemoModel
from core.models.direct import DirectClient
from core.models.litellm_client import LiteLLMClient
from core.models.routing import ModelRouter
from core.sandbox.detection import open_sandbox
from core.sandbox.workspaces import make_workspace
from core.secrets.redaction import ValueRedactor
from core.stores.attachments import StoredImages
from core.stores.connection import Database
from core.stores.directory_lock import DirectoryLock
from core.stores.sql import sql_stores
from core.stores.work_items import SqlWorkItems


@asynccontextmanager
async def open_host(
    settings: Settings, *, clock: Clock, redactor: ValueRedactor, channels: bool, log: Callable[[LogSettings], None]
) -> AsyncIterator[Host]:
    """Open everything a host stands on, and close it in reverse order.

    Args:
        settings: A valid configuration.
        clock: The host's time.
        redactor: Knows every secret of the configuration already.
        channels: Whether to connect the configured platforms; false for a command's own host.
        log: Configures the log, when a reload changes how it is written.

    Raises:
        UnusableFolder, DirectoryInUse, StoreError: The host cannot start; nothing is left open.
    """
    data_dir = settings.host.data_dir
    live, keys = LiveSettings(settings), ModelKeys(settings.models)
    async with AsyncExitStack() as stack:
        open_data_dir(data_dir)
        stack.enter_context(DirectoryLock(data_dir))
        with usable("[host] data_dir", data_dir):
            await asyncio.to_thread(finish_restore, data_dir)
        database = await asyncio.to_thread(Database.open, data_dir / "host.db")
        stack.push_async_callback(database.close)
        engine = EmbeddedEngine(SqlWorkItems(database), clock)
        stores = sql_stores(database, submit=engine.submit, clock=clock)
        memory = GitMemoryStore(data_dir / "memory", clock, redactor.mask)
        sandbox = await open_sandbox(settings.sandbox.kind, scratch=data_dir / "scratch")
        images = StoredImages(stores.attachments)
        model = await stack.enter_async_context(_models(keys, redactor, images))
        backend = await stack.enter_async_context(
            LocalBackend(
                store=stores.transcripts, memory=memory, model=model, clock=clock, mask=redactor.mask, images=images
            )
        )
        agents = partial(ensure_agents, backend=backend, make_workspace=partial(make_workspace, report=sandbox.report))
        await agents(settings)
        reloader = Reloader(live, _reload_ports(keys, agents, log, redactor))
        connected = await stack.enter_async_context(open_channels(settings, clock, redactor, platforms=channels))
        transcriber = await stack.enter_async_context(open_transcriber(settings, clock, redactor))
        parts = Parts(
            clock=clock,
            redactor=redactor,
            engine=engine,
            stores=stores,
            memory=memory,
            sandbox=sandbox,
            model=model,
            backend=backend,
            channels=connected,
            transcriber=transcriber,
            reload=reloader.reload,
            diagnosed=partial(open_diagnosable, settings, clock, redactor, running=connected),
        )
        yield assemble(live, parts)


def _reload_ports(
    keys: ModelKeys,
    agents: Callable[[Settings], Awaitable[None]],
    log: Callable[[LogSettings], None],
    redactor: ValueRedactor,
) -> ReloadPorts:
    return ReloadPorts(
        load=partial(load_again, around=surroundings()),
        redact=redactor.add,
        keys=keys,
        agents=agents,
        log=log,
        keep=keep_last_good,
        mask=redactor.mask,
    )


@asynccontextmanager
async def _models(keys: ModelKeys, redactor: Redactor, images: StoredImages) -> AsyncIterator[ModelRouter]:
    """Give a router over every way to a model, and close their connections afterwards."""
    direct = DirectClient(resolve_key=keys.key_of, mask=redactor.mask, images=images.read)
    litellm = LiteLLMClient(resolve_key=keys.key_of, mask=redactor.mask, images=images.read)
    try:
        yield ModelRouter(direct=direct, litellm=litellm, scripted={"demo": DemoModel()})
    finally:
        await direct.aclose()
        await litellm.aclose()
