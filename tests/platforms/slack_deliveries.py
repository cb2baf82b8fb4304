"""What a fake Slack sends by itself: events, interactions and commands, each until the app has taken it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.contracts.clock import Clock
from tests.platforms.slack_refusals import Refusal
from tests.platforms.slack_workspace import APP, BOT_USER, TEAM, Workspace

Json = dict[str, Any]
OnAnswer = Callable[[Json], None]

VERIFICATION_TOKEN = "verification"


@dataclass
class Delivery:
    """One thing that the app is told. `kind` is events_api, interactive or slash_commands.

    `sent_at` and `acked_at` are seconds of the server's clock; `answer` is what came with the
    acknowledgement; `retries` are the reasons of the attempts behind the first. `is_lost`: nobody
    was there to take it, and Slack does not try again. `refusal` is why the answer was no good.
    """

    kind: str
    payload: Json
    sent_at: float | None = None
    acked_at: float | None = None
    answer: Json = field(default_factory=dict)
    envelope_ids: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    is_lost: bool = False
    refusal: str = ""
    on_answer: OnAnswer | None = None

    @property
    def event(self) -> Json:
        """The event of an `events_api` delivery; empty for others."""
        event: Json = self.payload.get("event", {})
        return event

    @property
    def attempts(self) -> int:
        return 1 + len(self.retries)

    @property
    def latency(self) -> float | None:
        """Seconds between the first attempt and the acknowledgement; None while there is none."""
        return None if self.acked_at is None or self.sent_at is None else self.acked_at - self.sent_at


class Transport(Protocol):
    """A way to the app."""

    @property
    def is_open(self) -> bool:
        """Whether the app can be reached this way now."""
        ...

    def send(self, delivery: Delivery) -> None:
        """Try once to hand it over; returns without waiting."""
        ...


class Deliveries:
    """Everything that was or is to be told, oldest first, and the ways to the app."""

    def __init__(self, clock: Clock, workspace: Workspace, on_change: Callable[[], None]) -> None:
        self.all: list[Delivery] = []
        self.waiting: list[Delivery] = []
        self._clock = clock
        self._workspace = workspace
        self._on_change = on_change
        self._event_ids = itertools.count(1)
        self._transports: list[Transport] = []

    def over(self, *transports: Transport) -> None:
        """Name the ways to the app; the first that is open is taken."""
        self._transports = list(transports)

    def event(self, event: Json) -> Delivery:
        """Tell an event, in the envelope of the Events API."""
        event.setdefault("event_ts", event.get("ts") or self._workspace.next_ts())
        return self.tell("events_api", self._wrapped(event))

    def tell(self, kind: str, payload: Json, on_answer: OnAnswer | None = None) -> Delivery:
        """Tell something; `on_answer` gets what comes with the first acknowledgement."""
        delivery = Delivery(kind, payload, on_answer=on_answer)
        self.all.append(delivery)
        self._hand_over(delivery)
        return delivery

    def redeliver(self, delivery: Delivery, reason: str = "timeout") -> None:
        """Tell it once more, as Slack does with an event whose acknowledgement did not come in time."""
        delivery.retries.append(reason)
        self._hand_over(delivery)

    def flush(self) -> None:
        """Tell what waits for a way to the app; for what arrived meanwhile that is a retry."""
        waiting, self.waiting = self.waiting, []
        for delivery in waiting:
            self.redeliver(delivery)

    def forget_waiting(self) -> None:
        """Lose what the app was not there to take, as Slack does after the last retry."""
        for delivery in self.waiting:
            delivery.is_lost = True
        self.waiting.clear()

    def acked(self, delivery: Delivery, answer: Json) -> None:
        """Note an acknowledgement; only the first counts."""
        if delivery.acked_at is None:
            delivery.acked_at = self._clock.monotonic()
            delivery.answer = answer
            if delivery.on_answer is not None:
                delivery.refusal = _refusal_of(delivery.on_answer, answer)
        self._on_change()

    def of(self, kind: str) -> list[Delivery]:
        """Return those of an event type, or of an interaction's type or a command."""
        return [d for d in self.all if kind in {d.event.get("type"), d.payload.get("type"), d.payload.get("command")}]

    def unacked(self) -> list[Delivery]:
        """Return the events that were sent and that the app has not acknowledged."""
        return [d for d in self.all if d.kind == "events_api" and d.sent_at is not None and d.acked_at is None]

    def _hand_over(self, delivery: Delivery) -> None:
        way = next((transport for transport in self._transports if transport.is_open), None)
        if way is not None:
            if delivery.sent_at is None:
                delivery.sent_at = self._clock.monotonic()
            way.send(delivery)
        elif delivery.kind == "events_api":
            self.waiting.append(delivery)
        else:
            delivery.is_lost = True
        self._on_change()

    def _wrapped(self, event: Json) -> Json:
        number = next(self._event_ids)
        channel = self._workspace.channels.get(str(event.get("channel")))
        authorization = {
            "enterprise_id": None,
            "team_id": TEAM,
            "user_id": BOT_USER,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        return {
            "token": VERIFICATION_TOKEN,
            "team_id": TEAM,
            "context_team_id": TEAM,
            "context_enterprise_id": None,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{number:08d}",
            "event_time": int(float(event["event_ts"])),
            "authorizations": [authorization],
            "is_ext_shared_channel": bool(channel and channel.is_shared),
            "event_context": f"4-{number}",
        }


def _refusal_of(on_answer: OnAnswer, answer: Json) -> str:
    try:
        on_answer(answer)
    except Refusal as refusal:
        return refusal.error
    return ""
