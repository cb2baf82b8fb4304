"""Which doorbells ring when a host starts on a database: the real parts and engine, in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from bot.config.checks import secret_values
from bot.config.load import load, surroundings
from bot.wiring.opening import open_host
from core.contracts.clock import SystemClock
from core.contracts.engine import Again, Handler
from core.secrets.redaction import ValueRedactor
from tests.acceptance.processes import Place

_QUIET_SECONDS = 2.0


async def calls_at_start(place: Place) -> Counter[str]:
    """Return how often each queue's handler is called from a start until nothing has rung for a while."""
    settings = load(place.config, surroundings()).settings
    redactor = ValueRedactor(secret_values(settings))
    calls: Counter[str] = Counter()
    host_parts = open_host(settings, clock=SystemClock(), redactor=redactor, channels=True, log=lambda _: None)
    async with host_parts as host:
        handlers = {queue: _counted(queue, handler, calls) for queue, handler in host.handlers.items()}
        engine = asyncio.create_task(host.engine.run(handlers, _gave_up))
        seen = -1
        while seen != calls.total():
            seen = calls.total()
            await asyncio.sleep(_QUIET_SECONDS)
        engine.cancel()
        with suppress(asyncio.CancelledError):
            await engine
    return calls


def _counted(queue: str, handler: Handler, calls: Counter[str]) -> Handler:
    async def counted(key: str) -> Again | None:
        calls[queue] += 1
        return await handler(key)

    return counted


async def _gave_up(queue: str, key: str, error: Exception) -> None:
    raise AssertionError(f"{queue} {key} was given up") from error
