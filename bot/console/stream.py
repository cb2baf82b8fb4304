"""The live part of a chat: server-sent events that carry HTML fragments.

Events, each with one JSON object as data: `history` (all of the chat so far and the number of open
approvals, first on every connection, so that nothing falls between a page and its stream or between
two connections), `message` (an element that replaces the one of its id or is added), `waiting` (the
number of open approvals, after each card), `status`, `notice`, `title`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import assert_never

from markupsafe import Markup
from starlette.types import Receive, Scope, Send

from bot.console.chats import Chats
from bot.console.sessions import ConsoleSessions, Session
from bot.console.shutdown import stopping_of
from bot.host_api import HistoryEntry
from channels.feed import FeedChannel, FeedEvent, Noticed, Previewed, Removed, Said, Shown, StatusSet
from channels.web import render
from channels.web.render import PressForm
from core.contracts.addresses import CardContent, TextContent
from core.contracts.clock import Clock
from core.contracts.errors import StoreError

logger = logging.getLogger(__name__)

KEEPALIVE_INTERVAL = timedelta(seconds=15)
_RETRY = "retry: 2000\n\n"
_KEEPALIVE = ": alive\n\n"

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def draw_history(entries: Iterable[HistoryEntry], form: PressForm) -> Markup:
    """Draw what a chat showed, oldest first."""
    return Markup().join(_draw_entry(entry, form) for entry in entries)


def coalesce(events: Iterable[FeedEvent]) -> list[FeedEvent]:
    """Drop every preview that a later event of the same batch replaces."""
    kept: list[FeedEvent] = []
    replaced: set[str] = set()
    for event in reversed(list(events)):
        if isinstance(event, Previewed) and event.external_id in replaced:
            continue
        if isinstance(event, Previewed | Shown | Removed):
            replaced.add(event.external_id)
        kept.append(event)
    kept.reverse()
    return kept


class ChatStream:
    """The response that follows one chat for one viewer.

    It ends when the viewer leaves, the server stops, the session ends, or the viewer reads so
    slowly that the channel gave it up; the browser then connects again and gets the history.
    """

    def __init__(
        self,
        *,
        chat: str,
        web: FeedChannel,
        chats: Chats,
        clock: Clock,
        sessions: ConsoleSessions,
        session: Session,
        form: PressForm,
        count_waiting: Callable[[], Awaitable[int]],
    ) -> None:
        self._chat = chat
        self._web = web
        self._chats = chats
        self._clock = clock
        self._sessions = sessions
        self._session = session
        self._form = form
        self._count_waiting = count_waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        writer = _Writer(send)
        async with asyncio.TaskGroup() as tasks:
            parts = [
                tasks.create_task(self._follow(writer)),
                tasks.create_task(self._keep_alive(writer)),
                tasks.create_task(_until_disconnected(receive)),
                tasks.create_task(stopping_of(scope).wait()),
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                part.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, writer: _Writer) -> None:
        async with self._web.subscribe(self._chat) as queue:
            try:
                history = draw_history(await self._chats.history(self._chat), self._form)
                waiting = await self._count_waiting()
            except StoreError as error:
                logger.warning("web_stream_without_history", extra={"chat": self._chat, "error": type(error).__name__})
                return
            await writer.write(_RETRY + _frame("history", {"html": history, "waiting": str(waiting)}))
            while True:
                events = [await queue.get()]
                if queue.qsize() + 1 == queue.maxsize:
                    return  # it was full: the channel gave this viewer up
                while not queue.empty():
                    events.append(queue.get_nowait())
                await writer.write("".join(self._frames(event) for event in coalesce(events)))
                if any(isinstance(event, Shown) and isinstance(event.content, CardContent) for event in events):
                    await writer.write(_frame("waiting", {"text": str(await self._count_waiting())}))

    async def _keep_alive(self, writer: _Writer) -> None:
        while self._sessions.is_open(self._session):
            await self._clock.sleep(KEEPALIVE_INTERVAL)
            await writer.write(_KEEPALIVE)

    def _frames(self, event: FeedEvent) -> str:
        """Return the event as it goes over the wire."""
        now = self._clock.now()
        match event:
            case Said():
                html = render.said(event.key, event.name, event.text, at=now)
                title = self._chats.name_by(self._chat, event.text)
                return _frame("message", {"html": html}) + _frame("title", {"text": title})
            case Shown():
                html = render.message(event.external_id, event.content, self._form, at=now)
                return _frame("message", {"html": html})
            case Removed():
                return _frame("message", {"html": render.removed(event.external_id)})
            case Previewed():
                return _frame("message", {"html": render.preview(event.external_id, event.text)})
            case StatusSet():
                return _frame("status", {"text": event.status})
            case Noticed():
                return _frame("notice", {"html": render.notice(event.text)})
            case _:
                assert_never(event)


class _Writer:
    """Lets the tasks of one stream write whole frames in turn."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._turn = asyncio.Lock()

    async def write(self, text: str) -> None:
        async with self._turn:
            # A lone surrogate cannot be sent; it becomes a question mark.
            await self._send({"type": "http.response.body", "body": text.encode(errors="replace"), "more_body": True})


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _draw_entry(entry: HistoryEntry, form: PressForm) -> Markup:
    if entry.name and isinstance(entry.content, TextContent):
        return render.said(entry.external_id, entry.name, entry.content.markdown, at=entry.at)
    return render.message(entry.external_id, entry.content, form, at=entry.at)


def _frame(event: str, data: Mapping[str, str]) -> str:
    """Return one event; JSON keeps the data on one line whatever stands in it."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"
