"""Sends whose outcome may be open: made again under their nonce, or looked for first."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from channels.discord.errors import RETRY_SOON
from channels.discord.limits import NONCE_LIFE
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendRejected, SendUnknown

_REMEMBERED = 1_000
_LONGEST_RETRY = timedelta(minutes=1)
_POSTED = frozenset({0, 19})
"""docs.discord.com/developers/resources/message#message-object-message-types: default, reply."""
_UNUSUAL = re.compile(r"[^\w.-]+")
"""What Discord may write otherwise in the name of a file."""

Post = Callable[[], Awaitable[str]]
Look = Callable[[], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """By what a message that a send may have left behind is known."""

    nonce: str
    author: str
    text: str
    answers: str | None
    tokens: tuple[str, ...]
    files: tuple[str, ...]


def trace_of(payload: Mapping[str, Any], *, author: str, files: Iterable[str] = ()) -> Trace:
    """Return what the message of a payload will be known by."""
    reference = payload.get("message_reference")
    return Trace(
        nonce=str(payload.get("nonce", "")),
        author=author,
        text=str(payload.get("content") or "").strip(),
        answers=reference.get("message_id") if isinstance(reference, Mapping) else None,
        tokens=_tokens(payload.get("components")),
        files=tuple(_UNUSUAL.sub("_", name) for name in files),
    )


class Attempts:
    """Sees that a message is posted once, however often its send is tried.

    Within `NONCE_LIFE` Discord itself gives the first message again for the same nonce. After that,
    and when an earlier process may have tried, the message is looked for before it is sent. Discord
    tells a nonce only while a message is made, not of one that is there; so the newest message of the
    bot's in the place is the one if it has the same text, buttons, files and reference, and if it is
    not known to be another.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open_since: OrderedDict[str, float | None] = OrderedDict()
        self._known: OrderedDict[str, str] = OrderedDict()

    async def post(self, nonce: str, post: Post, look: Look, *, tried: int) -> str:
        """Make or find the message and return its id.

        Args:
            nonce: Of the message; `post` sends it with that.
            post: Sends.
            look: Looks for what an earlier send left behind; raises `ChannelError` where it cannot.
            tried: How often a send of it was begun before, by this process or another.

        Raises:
            SendLimited: It is to be tried again; also while its outcome is open and the nonce still counts.
            SendUnknown: The outcome is open and the nonce counts no more.
            ChannelError: It was not sent.
        """
        retry_after = min(RETRY_SOON * (1 << min(tried, 5)), _LONGEST_RETRY)
        if self._is_doubtful(nonce, tried):
            if (found := await self._found(look, retry_after)) is not None:
                return self._settle(nonce, found)
            self.settle_as_absent(nonce)
        since = self._open_since.get(nonce)
        began = self._clock.monotonic() if since is None else since
        try:
            external_id = await post()
        except SendUnknown as error:
            self._remember(nonce, began)
            if self._is_doubtful(nonce, tried):
                raise
            raise SendLimited(error.detail, retry_after=retry_after) from error
        except ChannelError:
            self._remember(nonce, since)
            raise
        return self._settle(nonce, external_id)

    def is_open(self, nonce: str) -> bool:
        """Return whether a send of it may have taken effect, as far as this process knows."""
        return self._open_since.get(nonce) is not None

    def settle_as_absent(self, nonce: str) -> None:
        """Take note that a message was looked for and is not there."""
        self._remember(nonce, None)

    def match(self, messages: Sequence[Mapping[str, Any]], trace: Trace) -> str | None:
        """Return the id of the message of that trace among messages, oldest first; None where none is."""
        own = [message for message in messages if _is_own(message, trace.author)]
        for message in reversed(own):
            if trace.nonce and message.get("nonce") == trace.nonce:
                return str(message["id"])
        if not own or self._known.get(str(own[-1].get("id")), trace.nonce) != trace.nonce:
            return None
        return str(own[-1]["id"]) if _shows(own[-1], trace) else None

    def _is_doubtful(self, nonce: str, tried: int) -> bool:
        """Return whether an earlier send may have taken effect that Discord would not recognise."""
        if nonce not in self._open_since:
            return tried > 0
        since = self._open_since[nonce]
        return since is not None and self._clock.monotonic() - since >= NONCE_LIFE.total_seconds()

    async def _found(self, look: Look, retry_after: timedelta) -> str | None:
        try:
            return await look()
        except SendUnknown as error:
            raise SendLimited(error.detail, retry_after=retry_after) from error
        except SendRejected:
            return None  # who may not read there learns no more; the nonce is all there is

    def _settle(self, nonce: str, external_id: str) -> str:
        self._open_since.pop(nonce, None)
        self._known[external_id] = nonce
        _shorten(self._known)
        return external_id

    def _remember(self, nonce: str, since: float | None) -> None:
        self._open_since[nonce] = since
        _shorten(self._open_since)


def _shorten(memory: OrderedDict[str, Any]) -> None:
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)


def _is_own(message: Mapping[str, Any], account: str) -> bool:
    """Return whether a bot posted a message, plain or as a reply; what Discord notes in its name is none."""
    author = message.get("author")
    is_posted = message.get("type", 0) in _POSTED
    return is_posted and isinstance(author, Mapping) and author.get("id") == account


def _shows(message: Mapping[str, Any], trace: Trace) -> bool:
    reference = message.get("message_reference")
    answers = reference.get("message_id") if isinstance(reference, Mapping) else None
    files = tuple(_UNUSUAL.sub("_", str(file.get("filename", ""))) for file in message.get("attachments") or ())
    return (
        str(message.get("content") or "").strip() == trace.text
        and answers in {trace.answers, None}
        and _tokens(message.get("components")) == trace.tokens
        and files == trace.files
    )


def _tokens(components: Any) -> tuple[str, ...]:
    """Return what the buttons of a message carry."""
    rows = components if isinstance(components, list) else []
    buttons = (button for row in rows for button in row.get("components") or ())
    return tuple(str(button.get("custom_id", "")) for button in buttons)
