"""Blocking work in a thread that nobody walks away from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def run_to_end(function: Callable[[*Ts], T], *args: *Ts, on_cancel: Callable[[], None] | None = None) -> T:
    """Run `function` in a thread; a cancelled caller leaves only when the thread is done.

    A tool promises that everything it started has ended when its cancellation comes out, and a
    thread cannot be stopped from outside. `on_cancel` asks long work to hurry.
    """
    work = asyncio.ensure_future(asyncio.to_thread(function, *args))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
            if on_cancel is not None:
                on_cancel()
    if cancelled is not None:
        work.exception()  # retrieved, so that it is not reported as lost
        raise cancelled
    return work.result()


class StopFlag:
    """Asks work in a thread to stop early."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_set(self) -> bool:
        """Whether the work is no longer wanted."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask the work to stop."""
        self._event.set()
