"""The webhook: Telegram calls, and hears that an update arrived only when it is stored."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from channels.contract import Asgi, Sink
from channels.supervision import Backoff, guarded, until_answered
from channels.telegram.administrators import Administrators
from channels.telegram.health import WebhookHealth
from channels.telegram.inbound import update_id_of
from channels.telegram.inbound_senders import BotAccount
from channels.telegram.intake import UpdateIntake
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from core.contracts.addresses import InboundEvent
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendRejected

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

BODY_LIMIT_BYTES = 1_000_000
"""Ours: a message is 4,096 characters and some objects beside it, a hundredth of this."""

CHECK_INTERVAL = timedelta(minutes=1)

_SECRET_HEADER = b"x-telegram-bot-api-secret-token"

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _Refusal(Exception):
    """A call that is not taken; its body is not looked at."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status
        super().__init__(status.phrase)


@dataclass(frozen=True, slots=True, order=True)
class _Delivery:
    """An event that waits to be accepted: the lowest update id first, then the first to come."""

    update_id: int
    number: int
    event: InboundEvent = field(compare=False)
    accepted: asyncio.Future[bool] = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Session:
    """What there is while `run` runs."""

    intake: UpdateIntake
    waiting: asyncio.PriorityQueue[_Delivery] = field(default_factory=asyncio.PriorityQueue)


class WebhookIntake:
    """An ASGI application that takes updates, and the care that Telegram calls it.

    An update is answered with 200 when its event is stored, 503 when that failed or `run` does
    not run: Telegram then sends it again. One that cannot be read is answered with 200 and
    logged, because it would come again for ever. Telegram calls for several updates at once;
    those that are here together are accepted in their order.
    """

    def __init__(
        self,
        api: BotApi,
        *,
        url: str,
        secret: str,
        name: str,
        clock: Clock,
        health: WebhookHealth,
        presses: PressAnswers,
        administrators: Administrators,
    ) -> None:
        """Take the public `url` that Telegram calls, and the `secret` that proves that it is Telegram."""
        self._api = api
        self._url = url
        self._secret = secret
        self._path = unquote(urlsplit(url).path) or "/"
        self._name = name
        self._clock = clock
        self._health = health
        self._presses = presses
        self._administrators = administrators
        self._outages = Backoff(timedelta(seconds=1), timedelta(seconds=30))
        self._refusals = Backoff(timedelta(seconds=30), timedelta(minutes=5))
        self._numbers = itertools.count()
        self._session: _Session | None = None
        self._was_set = False

    async def run(self, sink: Sink) -> None:
        """Take updates and keep the webhook set until cancelled.

        Raises:
            ChannelDown: The token is refused.
        """
        try:
            session = self._session = _Session(await self._connect())
            accepting = asyncio.create_task(self._accept_all(session, sink))
            try:
                await self._keep_set()
            finally:
                self._session = None
                accepting.cancel()
                await asyncio.gather(accepting, return_exceptions=True)
                while not session.waiting.empty():
                    _settle(session.waiting.get_nowait(), accepted=False)
        except ChannelDown as error:
            self._health.refused(error.detail)
            raise

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer one call, as ASGI asks."""
        if scope["type"] != "http":
            return
        try:
            self._admit(scope)
            status = await self._take(await _body(receive))
        except _Refusal as refusal:
            status = refusal.status
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def _admit(self, scope: _Scope) -> None:
        """Raise `_Refusal` unless the call is Telegram's."""
        if scope["path"] != self._path:
            raise _Refusal(HTTPStatus.NOT_FOUND)
        if scope["method"] != "POST":
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        secrets = _headers(scope, _SECRET_HEADER)
        if len(secrets) != 1 or not hmac.compare_digest(secrets[0], self._secret.encode()):
            if self._health.intruded():
                logger.warning("telegram_webhook_wrong_secret", extra={"channel": self._name})
            raise _Refusal(HTTPStatus.UNAUTHORIZED)
        kinds = _headers(scope, b"content-type")
        if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != b"application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if any(
            length.isdigit() and int(length[:20]) > BODY_LIMIT_BYTES for length in _headers(scope, b"content-length")
        ):
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    async def _take(self, body: bytes) -> HTTPStatus:
        """Return what Telegram is told."""
        session = self._session
        if session is None:
            return HTTPStatus.SERVICE_UNAVAILABLE
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            logger.warning("telegram_update_malformed", extra={"channel": self._name, "detail": "no JSON"})
            return HTTPStatus.OK
        event = await session.intake.read(update)
        if event is None:
            return HTTPStatus.OK
        accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        session.waiting.put_nowait(_Delivery(update_id_of(update) or 0, next(self._numbers), event, accepted))
        return HTTPStatus.OK if await accepted else HTTPStatus.SERVICE_UNAVAILABLE

    async def _accept_all(self, session: _Session, sink: Sink) -> None:
        """Hand over one event at a time, the oldest of those that wait."""
        while True:
            delivery = await session.waiting.get()
            try:
                _settle(delivery, accepted=await session.intake.hand_over(delivery.event, sink))
            except asyncio.CancelledError:
                _settle(delivery, accepted=False)
                raise

    async def _connect(self) -> UpdateIntake:
        """Return the intake, which has to know who the bot is."""
        while (me := await self._guarded(self._until_answered(self._api.me))) is None:
            await self._clock.sleep(CHECK_INTERVAL)
        account = BotAccount(channel=self._name, id=me[0], username=me[1])
        return UpdateIntake(
            account,
            clock=self._clock,
            health=self._health,
            presses=self._presses,
            administrators=self._administrators,
        )

    async def _keep_set(self) -> None:
        while True:
            await self._guarded(self._check())
            await self._clock.sleep(CHECK_INTERVAL)

    async def _guarded(self, work: Awaitable[_T]) -> _T | None:
        return await guarded(work, unless=ChannelDown, told="telegram_webhook_crashed", channel=self._name)

    async def _check(self) -> None:
        """Set the webhook at the start and wherever another program changed it; note what Telegram says of it."""
        state = await self._until_answered(self._api.webhook_state) if self._was_set else None
        if state is None or state.url != self._url:
            if self._was_set:
                logger.warning("telegram_webhook_changed", extra={"channel": self._name})
            await self._until_answered(partial(self._api.set_webhook, self._url, self._secret))
            self._was_set = True
            state = await self._until_answered(self._api.webhook_state)
        if self._health.told(state):
            logger.info("telegram_webhook_recovered", extra={"channel": self._name})

    async def _until_answered(self, call: Callable[[], Awaitable[_T]]) -> _T:
        answer = await until_answered(call, clock=self._clock, pause_after=self._pause_after)
        self._outages.reset()
        self._refusals.reset()
        return answer

    async def _pause_after(self, error: ChannelError) -> timedelta:
        """Report the failure once and return how long to wait."""
        refused = isinstance(error, SendRejected)
        if self._health.not_set(error.detail) if refused else self._health.failed(error.detail):
            logger.warning("telegram_webhook_failed", extra={"channel": self._name, "detail": error.detail})
        wait = self._refusals.next() if refused else self._outages.next()
        return max(wait, error.retry_after) if isinstance(error, SendLimited) else wait


def _settle(delivery: _Delivery, *, accepted: bool) -> None:
    """Tell the call that waits, if it still does."""
    if not delivery.accepted.done():
        delivery.accepted.set_result(accepted)


def _headers(scope: _Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


async def _body(receive: _Receive) -> bytes:
    """Return the body; a caller that hangs up or sends too much is refused where that is seen."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Refusal(HTTPStatus.BAD_REQUEST)
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT_BYTES:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if not message.get("more_body", False):
            return bytes(body)


if TYPE_CHECKING:

    def _conforms(intake: WebhookIntake) -> Asgi:
        return intake
