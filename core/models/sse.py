"""Server-sent events, as far as model providers use them: the data of each event."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

_MAX_EVENT_BYTES = 32 * 1024 * 1024
"""A provider that sends more without an end of event is not streaming an answer."""


class EventTooLong(Exception):
    """The stream holds no end of event within any sensible length."""


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """Yield the data of every event, whatever pieces the bytes arrive in.

    Comments, event names and ids are skipped. An event whose end never came is dropped, as the
    standard demands. Bytes that are no UTF-8 become U+FFFD.

    Raises:
        EventTooLong: See there.
    """
    rest = b""
    data: list[str] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
        if len(rest) > _MAX_EVENT_BYTES:
            raise EventTooLong
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].decode("utf-8", "replace").removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data = []
