"""HTTP mode of a fake Slack: signed posts to the app, tried again until one is taken.

After docs.slack.dev/apis/events-api and docs.slack.dev/authentication/verifying-requests-from-slack
as read on 2026-11-30.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp

from core.contracts.clock import Clock
from tests.platforms.slack_deliveries import Deliveries, Delivery
from tests.platforms.slack_faults import Fault, FaultScript, Planned

Json = dict[str, Any]

ACK_DEADLINE = timedelta(seconds=3)
PAUSES = (timedelta(0), timedelta(minutes=1), timedelta(minutes=5))
"""How long after a failure an event is tried again; interactions and commands never are."""


@dataclass(frozen=True)
class Answer:
    """What the app answered; status 0 where nothing came, for the reason in `problem`."""

    status: int
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_taken(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content(self) -> Json:
        """What stands for the payload of an acknowledgement."""
        try:
            content = json.loads(self.text)
        except ValueError:
            return {"text": self.text} if self.text else {}
        return content if isinstance(content, dict) else {}


@dataclass(frozen=True, kw_only=True)
class Signing:
    """How a post is signed: with another secret, long ago, with a timestamp of one's own, or not at all."""

    secret: str = ""
    age: timedelta = timedelta(0)
    timestamp: str = ""
    left_out: bool = False


class Posts:
    """Posts what there is to tell to `url`, once that is set; each delivery by itself, so in no order.

    `answers` are all that came back, oldest first.
    """

    def __init__(
        self,
        clock: Clock,
        secret: str,
        script: FaultScript,
        deliveries: Deliveries,
        on_change: Callable[[], None],
    ) -> None:
        self._url = ""
        self.answers: list[Answer] = []
        self._clock = clock
        self._secret = secret
        self._script = script
        self._deliveries = deliveries
        self._on_change = on_change
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()
        self._held: list[Delivery] = []

    @property
    def url(self) -> str:
        """Where the app takes posts; once it is set, what waited is posted too."""
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        self._url = url
        if url:
            self._deliveries.flush()

    @property
    def is_open(self) -> bool:
        return bool(self._url)

    def send(self, delivery: Delivery) -> None:
        self._queue.put_nowait(delivery)

    async def run(self) -> None:
        """Post what is queued until cancelled."""
        async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as group:
            while True:
                delivery = await self._queue.get()
                planned = self._script.take("event", delivery.event.get("channel"))
                if planned is not None and planned.fault is Fault.REORDERED:
                    self._held.append(delivery)
                    continue
                group.create_task(self._deliver(client, delivery, planned))
                if planned is not None and planned.fault is Fault.DUPLICATED:
                    group.create_task(self._deliver(client, delivery, None))
                held, self._held = self._held, []
                for late in held:
                    group.create_task(self._deliver(client, late, None))

    async def post(
        self, url: str, payload: Json, kind: str = "events_api", *, signing: Signing | None = None, retry: str = ""
    ) -> Answer:
        """Post something once, by hand, and return what the app answers.

        Args:
            kind: events_api (url_verification too), interactive or slash_commands.
            retry: `NUMBER:REASON` of an attempt behind the first.
        """
        async with aiohttp.ClientSession() as client:
            return await self._post(client, url, payload, kind, signing or Signing(), retry)

    async def _deliver(self, client: aiohttp.ClientSession, delivery: Delivery, planned: Planned | None) -> None:
        while True:
            answer = await self._attempt(client, delivery, planned)
            planned = None
            delivery.statuses.append(answer.status)
            if answer.is_taken:
                self._deliveries.acked(delivery, answer.content)
                return
            is_unwanted = answer.headers.get("X-Slack-No-Retry") == "1"
            if delivery.kind != "events_api" or is_unwanted or len(delivery.retries) >= len(PAUSES):
                delivery.is_lost = True
                self._on_change()
                return
            pause = PAUSES[len(delivery.retries)]
            delivery.retries.append(answer.problem)
            self._on_change()
            await self._clock.sleep(pause)

    async def _attempt(self, client: aiohttp.ClientSession, delivery: Delivery, planned: Planned | None) -> Answer:
        """Post a delivery, and give up after three seconds."""
        fault = None if planned is None else planned.fault
        if planned is not None:
            await planned.delay(self._clock)
        if fault is Fault.LOST_REQUEST:
            return Answer(0, problem="connection_failed")
        retry = f"{len(delivery.retries)}:{delivery.retries[-1]}" if delivery.retries else ""
        async with asyncio.TaskGroup() as group:
            signing = Signing()
            post = group.create_task(self._post(client, self.url, delivery.payload, delivery.kind, signing, retry))
            timer = group.create_task(self._clock.sleep(ACK_DEADLINE))
            await asyncio.sleep(0)  # from here on the timer runs, so that time may be moved
            self._on_change()
            await asyncio.wait({post, timer}, return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            post.cancel()
        if post.cancelled() or fault is Fault.LOST_RESPONSE:
            return Answer(0, problem="http_timeout")
        return post.result()

    async def _post(
        self, client: aiohttp.ClientSession, url: str, payload: Json, kind: str, signing: Signing, retry: str
    ) -> Answer:
        body, media_type = _encoded(payload, kind)
        headers = {"Content-Type": media_type, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        headers |= self._signature(body, signing)
        if retry:
            number, _, reason = retry.partition(":")
            headers |= {"X-Slack-Retry-Num": number, "X-Slack-Retry-Reason": reason}
        try:
            async with client.post(url, data=body, headers=headers, allow_redirects=False) as response:
                text = await response.text()
                answer = Answer(response.status, text, dict(response.headers), problem="http_error")
        except (aiohttp.ClientError, TimeoutError):
            answer = Answer(0, problem="connection_failed")
        self.answers.append(answer)
        self._on_change()
        return answer

    def _signature(self, body: bytes, signing: Signing) -> dict[str, str]:
        if signing.left_out:
            return {}
        signed_at = self._clock.now() - signing.age
        timestamp = signing.timestamp or str(int(signed_at.timestamp()))
        secret = signing.secret or self._secret
        digest = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}


def _encoded(payload: Json, kind: str) -> tuple[bytes, str]:
    """Return the body of a post and its content type."""
    form = "application/x-www-form-urlencoded"
    match kind:
        case "interactive":
            return urlencode({"payload": json.dumps(payload)}).encode(), form
        case "slash_commands":
            return urlencode(payload).encode(), form
        case _:
            return json.dumps(payload).encode(), "application/json"
