"""Tasks beside the main flow: those that are stopped between two calls of a platform, and those that just go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_T = TypeVar("_T")


class Worker:
    """A task that can be stopped while it waits, but not while it calls the platform.

    Cancelling a call would leave its outcome unknown and, perhaps, the call under way.
    """

    def __init__(self, work: Callable[[Worker], Coroutine[Any, Any, None]]) -> None:
        self._calls = False
        self._stopping = False
        self.task = asyncio.create_task(work(self))

    def stop(self) -> None:
        """Let it end: now if it waits, else when the call that is under way has ended."""
        self._stopping = True
        if not self._calls:
            self.task.cancel()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Say that the platform is called in the block."""
        self._calls = True
        try:
            yield
        finally:
            self._calls = False
        if self._stopping:
            # Not `task.cancel()`: that takes effect only where the task next waits, perhaps inside a call.
            raise asyncio.CancelledError


class Beside:
    """Tasks that nobody awaits, kept until they end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, _T], *, name: str | None = None) -> asyncio.Task[_T]:
        """Let work go on beside, and return its task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self) -> None:
        """Cancel what still goes on, and return when it has ended."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def outlast(*tasks: asyncio.Task[None]) -> None:
    """Wait until all tasks have ended, even when cancelled meanwhile; then say so.

    Raises:
        asyncio.CancelledError: The waiting was cancelled; the tasks have ended all the same.
    """
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    for task in tasks:
        if not task.cancelled():
            task.result()
