"""How a command reaches a host: the running one, or one of its own for as long as it needs it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from bot.config.errors import ConfigError
from bot.config.load import load_settings
from bot.config.model import Settings
from bot.control.client import HostClient, HostGone, HostRefused, connect
from bot.sockets import socket_path
from core.contracts.errors import LodgerError
from core.turns.outcomes import EXIT_CANCELLED, EXIT_ERROR, EXIT_USAGE

Work = Callable[[HostClient], Awaitable[int]]


@asynccontextmanager
async def host_session(settings: Settings, *, debug: bool) -> AsyncIterator[HostClient]:
    """Give a client of the running host; where none answers, run one here without channels.

    Raises:
        DirectoryInUse: A process owns the directory but does not answer on its socket.
    """
    path = socket_path(settings.host.data_dir)
    if await _answers(path):
        async with connect(path) as client:
            yield client
        return
    # Only now, without a running host, the whole host is imported.
    from bot.app import serving

    hurry = asyncio.Event()
    async with serving(settings, channels=False, debug=debug, hurry=hurry), connect(path) as client:
        try:
            yield client
        except asyncio.CancelledError:  # Ctrl-C: whoever presses it does not want to wait for a turn
            hurry.set()
            raise


async def _answers(path: Path) -> bool:
    try:
        async with connect(path):
            return True
    except HostGone:
        return False


def with_host(options: argparse.Namespace, work: Work) -> int:
    """Load the configuration, reach a host, do the work; every failure is one line on stderr."""
    try:
        settings = load_settings(options.config or None)
        return asyncio.run(_work(settings, work, debug=options.debug))
    except ConfigError as error:
        return _failed(error, EXIT_USAGE)
    except (HostRefused, HostGone, LodgerError) as error:
        return _failed(error, EXIT_ERROR)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_CANCELLED


def default_agent(options: argparse.Namespace) -> str:
    """Return the agent that is meant where none is named: the first of the configuration, as in the terminal."""
    return next(iter(load_settings(options.config or None).agents))


async def _work(settings: Settings, work: Work, *, debug: bool) -> int:
    async with host_session(settings, debug=debug) as client:
        return await work(client)


def _failed(error: Exception, code: int) -> int:
    print(f"lodger: {error}", file=sys.stderr)
    return code
