"""Shows a turn while it runs: preview text, status, commit lines, and a bus for whoever follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from channels.contract import Reply
from core.contracts.clock import Clock
from core.contracts.events import MessageStored, RetryNotice, RunEvent, RunFinished, TextDelta
from core.contracts.messages import ReturnOutcome, Role, ToolCall, ToolReturn
from core.contracts.runs import Turn
from core.turns.observer import ApprovalsOpened, CallFinished, CallStarted, TurnEvent, TurnObserver

PREVIEW_AFTER = timedelta(milliseconds=300)
"""An answer that is complete sooner is posted once, without a preview."""

CallEnded = Callable[[Turn, ToolCall, ToolReturn], Awaitable[None]]
TurnTap = Callable[[Turn, TurnEvent], Awaitable[None]]

Heard: TypeAlias = tuple[Turn, TurnEvent | None]
"""An event of a turn; None: the turn has ended, and its end is stored."""


Record = Callable[[Turn, TurnEvent | None], Awaitable[None]]
"""Stores an event for clients that come back later; returns when it is durable."""
Count = Callable[[Turn, TurnEvent | None], None]


class ReplyObserver:
    """Turns a turn's events into a status and, with `previews`, into one growing message."""

    def __init__(
        self,
        reply: Reply | None,
        clock: Clock,
        *,
        previews: bool,
        call_ended: CallEnded,
        tap: TurnTap,
        conceal: Callable[[str], str],
    ) -> None:
        self._reply = reply
        self._clock = clock
        self._previews = previews
        self._call_ended = call_ended
        self._tap = tap
        self._conceal = conceal
        self._done: list[str] = []
        self._pieces: list[tuple[int, str]] = []
        self._calls: dict[str, ToolCall] = {}
        self._dirty = asyncio.Event()

    @asynccontextmanager
    async def showing(self) -> AsyncIterator[None]:
        """Keep the preview up to date for the length of the block."""
        if self._reply is None or not self._previews:
            yield
            return
        task = asyncio.create_task(self._show_changes(self._reply), name="preview")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def observe(self, turn: Turn, event: TurnEvent) -> None:
        await self._tap(turn, event)
        match event:
            case RunEvent():
                self._note(event)
            case CallStarted(call=call):
                self._calls[call.id] = call
                await self._set_status(f"running {call.name}")
            case ApprovalsOpened():
                # What was said is posted for good: from here on its message must not change.
                self._previews = False
            case CallFinished(result=result):
                await self._set_status("thinking")
                if result.outcome is ReturnOutcome.OK:
                    await self._call_ended(turn, self._calls[result.call_id], result)

    def _note(self, event: RunEvent) -> None:
        match event.body:
            case TextDelta(text=text):
                self._pieces.append((event.seq, text))
                self._dirty.set()
            case RetryNotice(discard_after=seq):
                self._pieces = [piece for piece in self._pieces if piece[0] <= seq]
                self._dirty.set()
            case MessageStored(message=message) if message.role is Role.ASSISTANT:
                self._done.append("".join(text for _, text in self._pieces))
                self._pieces = []
            case RunFinished():
                self._pieces = []
            case _:
                pass

    async def _show_changes(self, reply: Reply) -> None:
        await self._dirty.wait()
        await self._clock.sleep(PREVIEW_AFTER)
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            text = "\n\n".join(t for t in (*self._done, "".join(t for _, t in self._pieces)) if t.strip())
            shown = self._conceal(text)
            if shown and self._previews:
                await reply.show(shown)

    async def _set_status(self, status: str) -> None:
        if self._reply is not None:
            await self._reply.set_status(status)


class TurnBus:
    """Passes turn events on: to the record of sessions first, then to who counts, then to followers."""

    def __init__(self, *, record: Record, count: Count) -> None:
        self._record = record
        self._count = count
        self._followers: dict[str, set[asyncio.Queue[Heard]]] = {}

    async def publish(self, turn: Turn, event: TurnEvent) -> None:
        """Hand an event to every follower of the turn's conversation."""
        await self._pass_on(turn, event)

    async def turn_ended(self, turn: Turn) -> None:
        """Tell followers that the turn has ended and its end is stored."""
        await self._pass_on(turn, None)

    async def _pass_on(self, turn: Turn, event: TurnEvent | None) -> None:
        await self._record(turn, event)
        self._count(turn, event)
        for queue in self._followers.get(turn.conversation_id, ()):
            queue.put_nowait((turn, event))

    @asynccontextmanager
    async def follow(self, conversation_id: str) -> AsyncIterator[asyncio.Queue[Heard]]:
        """Give a queue of the events of the conversation's turns."""
        queue: asyncio.Queue[Heard] = asyncio.Queue()
        followers = self._followers.setdefault(conversation_id, set())
        followers.add(queue)
        try:
            yield queue
        finally:
            followers.discard(queue)
            if not followers:
                self._followers.pop(conversation_id, None)


if TYPE_CHECKING:
    _conforms: type[TurnObserver] = ReplyObserver
