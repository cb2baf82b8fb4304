"""Serving an application inside our own process: our signals, our logging, our shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import stat
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bot.console.shutdown import KnowsShutdown
from core.contracts.errors import LodgerError

_GRACE_SECONDS = 5
"""How long requests that are under way may take when the server stops."""
_LAST_PORT = 65_535


class CannotListen(LodgerError):
    """The address cannot be served. `fix` tells a person what to do about it."""

    def __init__(self, address: str, reason: str, fix: str) -> None:
        self.address = address
        self.reason = reason
        self.fix = fix
        super().__init__(f"cannot listen on {address}: {reason}. {fix}")


@asynccontextmanager
async def serve(app: ASGIApp, *, listen: str | None = None, uds: Path | None = None) -> AsyncIterator[str]:
    """Serve `app` while the block runs and give the address it is bound to.

    When the block ends no new connection is taken, `stopping_of` of every request is set, and
    requests have 5 seconds to finish. Signals and logging stay as they are; no line is logged
    per request.

    Args:
        app: Any ASGI application.
        listen: `host:port` with an address of this machine; port 0 takes a free one.
        uds: Path of a unix socket instead; only this user may connect. A socket that a dead
            process left there is replaced.

    Raises:
        CannotListen: The address is taken, not of this machine, or not written as one.
    """
    bound, address = _bind(listen, uds)
    stopping = asyncio.Event()
    server = _Server(KnowsShutdown(app, stopping))
    # Not a TaskGroup, because that would wrap the errors of the block; the `finally` owns the task.
    serving = asyncio.create_task(server.serve(sockets=[bound]), name=f"serve {address}")
    try:
        await server.wait_started(serving)
        yield address
    finally:
        stopping.set()
        server.should_exit = True
        await serving
        _leave(uds)


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers, and with a moment at which it has started."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def wait_started(self, serving: asyncio.Task[None]) -> None:
        """Return when connections are taken; raise what kept `serving` from it."""
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait([ready, serving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if serving.done():
            serving.result()


def _bind(listen: str | None, uds: Path | None) -> tuple[socket.socket, str]:
    """Return a bound socket and how to write its address."""
    if uds is not None and listen is None:
        return _bind_unix(uds), str(uds)
    if listen is not None and uds is None:
        bound = _bind_tcp(listen)
        host, port = bound.getsockname()[:2]
        return bound, f"[{host}]:{port}" if bound.family == socket.AF_INET6 else f"{host}:{port}"
    raise ValueError("give either listen or uds")


def _leave(uds: Path | None) -> None:
    if uds is not None:
        uds.unlink(missing_ok=True)


def _bind_tcp(listen: str) -> socket.socket:
    host, port = _parse(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fix = "Stop the other program, or set another port as [console] listen."
            raise CannotListen(listen, "another program uses it", fix) from error
        fix = "Set [console] listen to an address of this machine, such as 127.0.0.1:8787."
        raise CannotListen(listen, error.strerror or "unknown reason", fix) from error


def _parse(listen: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[v6]:port`."""
    host, colon, port = listen.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or not (port.isascii() and port.isdigit()) or int(port) > _LAST_PORT:
        fix = "Write it as host:port, such as 127.0.0.1:8787."
        raise CannotListen(listen, "not an address", fix)
    return bare, int(port)


def _bind_unix(path: Path) -> socket.socket:
    _clear_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        # Nobody can connect before uvicorn listens, so nobody slips in before this.
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        bound.close()
        raise CannotListen(str(path), error.strerror or str(error), "Choose a shorter or another data_dir.") from error
    return bound


def _clear_stale(path: Path) -> None:
    """Remove a socket that nobody listens on any more."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError:
            return
    raise CannotListen(str(path), "another host answers there", "Stop the other host first.")
