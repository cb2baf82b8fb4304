"""Runs one program to its end: bounded output, a time limit, and nothing left alive afterwards.

The program is started in its own session, without terminal and input, and writes both its
streams into one pipe. What belongs to it may escape its process group (`setsid`, `nohup`), so
ending it is left to a `ProcessTree`, which knows how the sandbox holds its processes together.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, SandboxCommand
from core.sandbox.identity import Identity
from core.sandbox.output import KeptOutput

GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""

_DRAIN_SECONDS = 1.0
_CHUNK_BYTES = 65_536

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the program is started.

    `env` is the starter's own; what the command sees travels in a file of `fds`, because the
    starter's environment and arguments can be read from inside or by other users. `fds` are
    inherited under the same numbers.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str = "/"
    fds: tuple[int, ...] = ()
    identity: Identity | None = None


class ProcessTree(Protocol):
    """Everything a started program has started, however deep and in whatever session."""

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it now; nothing happens when it has ended."""
        ...

    async def gone(self) -> None:
        """Return when nothing of it is alive, or after a few seconds when the kernel cannot end it."""
        ...


async def run_to_end(
    launch: Launch, command: SandboxCommand, hold: Callable[[Process], ProcessTree]
) -> tuple[CommandResult, int]:
    """Run until exit, timeout or cancellation and return the result and the starter's own exit code.

    The result's exit code is the starter's; the sandbox replaces it by what it knows better.

    Raises:
        SandboxUnavailable: The program could not be started at all.
        asyncio.CancelledError: Everything was ended first.
    """
    output = KeptOutput(keep_bytes=command.keep_bytes, spill=command.spill, spill_limit_bytes=command.spill_limit_bytes)
    read_end, write_end = os.pipe()
    try:
        process, cancelled = await _outlast(_start(launch, write_end))
    except OSError as error:
        os.close(read_end)
        raise SandboxUnavailable(f"{launch.argv[0]!r} could not be started: {error}") from error
    finally:
        os.close(write_end)
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(_drain(read_end, output))
        timed_out = False
        try:
            if cancelled:
                raise asyncio.CancelledError
            timed_out = not await _ends_within(process, command.timeout.total_seconds())
        finally:
            await _end(process, hold(process))
            await _settle(draining)
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return _result(output, code, timed_out=timed_out), code


async def _start(launch: Launch, write_end: int) -> Process:
    # Called in the loop's thread on purpose: a starter that asks to die with its parent
    # (PR_SET_PDEATHSIG) means the thread that started it.
    identity = launch.identity if launch.identity is not None and launch.identity.dropped else None
    return await asyncio.create_subprocess_exec(
        *launch.argv,
        stdin=DEVNULL,
        stdout=write_end,
        stderr=write_end,
        env=launch.env,
        cwd=launch.cwd,
        pass_fds=launch.fds,
        start_new_session=True,
        user=identity.uid if identity else None,
        group=identity.gid if identity else None,
        extra_groups=[] if identity else None,
    )


async def _ends_within(process: Process, seconds: float) -> bool:
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def _end(process: Process, tree: ProcessTree) -> None:
    """End what still runs: politely, then by force; a cancellation shortens only the politeness."""
    try:
        if process.returncode is None:
            tree.terminate()
            await _ends_within(process, GRACE_SECONDS)
    finally:
        tree.kill()
        _, cancelled = await _outlast(tree.gone())
        if cancelled:
            raise asyncio.CancelledError


async def _drain(read_end: int, output: KeptOutput) -> None:
    """Read until nobody holds the other end. Reading never stops early: a full pipe blocks the child."""
    reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
    pipe = os.fdopen(read_end, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            await output.add(chunk)
    finally:
        transport.close()
        await output.close()


async def _settle(draining: asyncio.Task[None]) -> None:
    """Let the reader take what the pipe still holds; a survivor that keeps it open is not waited for."""
    done, _ = await asyncio.wait([draining], timeout=_DRAIN_SECONDS)
    if not done:
        draining.cancel()
        await asyncio.wait([draining])


def _result(output: KeptOutput, returncode: int, *, timed_out: bool) -> CommandResult:
    code = returncode if returncode >= 0 else 128 - returncode  # as a shell reports a signal
    return CommandResult(
        exit_code=None if timed_out else code,
        head=output.head,
        tail=output.tail,
        dropped_bytes=output.dropped_bytes,
        timed_out=timed_out,
        spilled=output.spilled,
    )


async def _outlast(work: Awaitable[T]) -> tuple[T, bool]:
    """Finish `work` through cancellations; return its result and whether one came, for the caller to raise."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and task.exception() is not None:
        raise asyncio.CancelledError from task.exception()
    return task.result(), cancelled
