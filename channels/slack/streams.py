"""The message that a preview grows in: streamed by Slack itself where it lets us, else edited.

A stream is left in good time: before it holds as much as Slack takes, before Slack would end it, and
whenever Slack refuses anything about it. The same message is then edited until the answer is there.
It is not continued in a second message: nobody could tell later that this one belongs to the answer,
and a crash would leave a part of the text standing twice.
"""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from channels.slack.errors import StillStreaming, StreamOver
from channels.slack.limits import STREAM_LIMIT_CHARS, Timing
from channels.slack.message_ids import message_id
from channels.slack.mrkdwn import encodable
from channels.slack.outbound import preview
from channels.slack.payload import ts_of
from channels.slack.transport import SlackApi
from core.contracts.addresses import Address
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendUnknown

logger = logging.getLogger(__name__)

_KNOWN_RECIPIENTS = 1000
_CLOCKS_APART = timedelta(seconds=5)
"""How far Slack's clock may be behind; a preview of the turn before is older than that, or is an item now."""
_DIRECT = "D"
_ZERO_WIDTH_SPACE = "\u200b"
_ANGLE = re.compile(r"<(?![0-9A-Za-z])")
_AT = re.compile(r"(?<![0-9A-Za-z])@")


class Streams:
    """What the streams of one app have in common: who they are for, and when Slack takes none.

    In a channel Slack wants to know for whom a message is streamed; the intake tells who wrote last.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recipients: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._not_before = 0.0

    def note_writer(self, address: Address, team: str, user: str) -> None:
        """Remember who wrote last at an address, by team and user id."""
        self._recipients[address.key] = (team, user)
        self._recipients.move_to_end(address.key)
        while len(self._recipients) > _KNOWN_RECIPIENTS:
            self._recipients.popitem(last=False)

    def recipient(self, address: Address) -> tuple[str, str] | None:
        """Return who that was; None where it is not known."""
        return self._recipients.get(address.key)

    def is_possible(self, address: Address) -> bool:
        """Return whether a stream can be begun there now."""
        is_known = address.chat.startswith(_DIRECT) or self.recipient(address) is not None
        return address.thread is not None and is_known and self._clock.monotonic() >= self._not_before

    def hold(self, duration: timedelta) -> None:
        """Begin no stream for `duration`: Slack asked for it."""
        self._not_before = max(self._not_before, self._clock.monotonic() + duration.total_seconds())


@dataclass(slots=True, kw_only=True)
class _Stream:
    """An open stream: what it holds, and when it has to be left, in seconds of the clock's monotonic time."""

    written: str
    leave_at: float

    def takes(self, written: str, now: float) -> bool:
        """Return whether it can go on so that it holds `written`."""
        return written.startswith(self.written) and fits_in_stream(written) and now < self.leave_at


class LiveMessage:
    """One growing message. Calls are made one after the other; all raise `ChannelError`."""

    def __init__(self, api: SlackApi, streams: Streams, *, address: Address, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._streams = streams
        self._address = address
        self._clock = clock
        self._timing = timing
        self._ts: str | None = None
        self._stream: _Stream | None = None

    async def show(self, text: str) -> str:
        """Make `text`, the whole of it so far, the visible one, and return the message's external id."""
        if self._ts is None:
            self._ts = await self._begun(text)
        elif self._stream is None or not await self._append(self._ts, self._stream, text):
            await self._edit(self._ts, text)
        return message_id(self._address.thread, self._ts)

    async def end(self) -> None:
        """End the stream, if one is open; the message stays as it is."""
        if self._stream is not None and self._ts is not None:
            await self._stop(self._ts)

    async def _begun(self, text: str) -> str:
        """Begin the message, or find the one that was begun although the answer to that was lost."""
        after = ts_of(self._clock.now() - _CLOCKS_APART)
        try:
            return await self._begin(text)
        except SendUnknown:
            ts = await self._left_behind(after)
            if ts is None:
                raise
            return ts

    async def _left_behind(self, after: str) -> str | None:
        """Return the ts of the newest message of the app there that is no item: all others carry their id."""
        channel, thread = self._address.chat, self._address.thread
        try:
            own = (await self._api.identity()).user
            found = await (
                self._api.history(channel, after, metadata=True)
                if thread is None
                else self._api.replies(channel, thread, after, metadata=True)
            )
        except ChannelError as error:
            logger.info("slack_preview_not_found", extra={"reason": type(error).__name__})
            return None
        previews = (m for m in reversed(found) if m.get("user") == own and not m.get("metadata") and not m.get("files"))
        return next((str(m["ts"]) for m in previews if "ts" in m), None)

    async def _begin(self, text: str) -> str:
        thread, written = self._address.thread, streamable(text)
        if thread is not None and fits_in_stream(written) and self._streams.is_possible(self._address):
            leave_at = self._clock.monotonic() + self._timing.stream_life.total_seconds()
            recipient = self._streams.recipient(self._address)
            try:
                ts = await self._api.start_stream(self._address.chat, thread, written, recipient)
            except (ChannelDown, SendUnknown):
                raise
            except ChannelError as error:
                self._note_refusal(error)
            else:
                self._stream = _Stream(written=written, leave_at=leave_at)
                return ts
        return await self._api.show(preview(self._address, text, None))

    async def _append(self, ts: str, stream: _Stream, text: str) -> bool:
        """Put what is new behind what was streamed; return False where the stream is over, by whomever."""
        written = streamable(text)
        if not stream.takes(written, self._clock.monotonic()):
            await self._stop(ts)
            return False
        if written == stream.written:
            return True
        try:
            await self._api.append_stream(self._address.chat, ts, written[len(stream.written) :])
        except SendLimited:
            raise
        except (ChannelDown, SendUnknown):
            # What it holds is not known now, so nothing can be put behind it.
            stream.leave_at = self._clock.monotonic()
            raise
        except StreamOver as error:
            self._note_refusal(error)
            self._stream = None
            return False
        except ChannelError as error:
            self._note_refusal(error)
            await self._stop(ts)
            return False
        stream.written = written
        return True

    async def _edit(self, ts: str, text: str) -> None:
        call = preview(self._address, text, ts)
        try:
            await self._api.show(call)
        except StillStreaming:
            await stop_stream(self._api, self._address.chat, ts)
            await self._api.show(call)

    async def _stop(self, ts: str) -> None:
        await stop_stream(self._api, self._address.chat, ts)
        self._stream = None

    def _note_refusal(self, error: ChannelError) -> None:
        if isinstance(error, SendLimited):
            self._streams.hold(error.retry_after)
        logger.info("slack_stream_refused", extra={"detail": error.detail})


async def stop_stream(api: SlackApi, channel: str, ts: str) -> None:
    """End a stream; one that is over already is ended."""
    try:
        await api.stop_stream(channel, ts)
    except StreamOver:
        return


def streamable(text: str) -> str:
    """Return Markdown that may end anywhere as it can be streamed; for a longer text it is a longer one.

    Nothing in it opens a mention: `<` and `@` are parted from what follows, unless it is a tag or an
    address. A `<` at the end waits for what follows.
    """
    apart = _ANGLE.sub(f"<{_ZERO_WIDTH_SPACE}", encodable(text).removesuffix("<"))
    return _AT.sub(f"@{_ZERO_WIDTH_SPACE}", apart)


def fits_in_stream(written: str) -> bool:
    """Return whether a streamed message takes it."""
    return 0 < len(written) <= STREAM_LIMIT_CHARS
