"""The Slack channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from channels.contract import (
    Asgi,
    Capabilities,
    Channel,
    Diagnosable,
    Finding,
    Form,
    HomeScreen,
    HomeSection,
    Probe,
    Reply,
    SentCallback,
    Sink,
    TextUnit,
    Webhook,
)
from channels.health import Health
from channels.pacing import ChatPacer
from channels.slack.backfill import Backfill, CatchUp
from channels.slack.deliveries import Deliveries
from channels.slack.diagnosis import Diagnosis
from channels.slack.downloads import Downloads
from channels.slack.home import draw_home
from channels.slack.inbound import Own, Said
from channels.slack.intake import Intake
from channels.slack.limits import CARD_CODE_LIMIT_BYTES, TEXT_LIMIT_BYTES, Timing
from channels.slack.lookups import Lookups
from channels.slack.payload import Json
from channels.slack.people import People
from channels.slack.places import THREAD, Places
from channels.slack.presses import Replies
from channels.slack.preview import Preview
from channels.slack.socket import Socket
from channels.slack.statuses import Statuses
from channels.slack.streams import LiveMessage, Streams
from channels.slack.supervision import answered
from channels.slack.transport import SlackApi
from channels.slack.uploads import Uploads
from channels.slack.webhook import Endpoint
from core.contracts.addresses import Address, Attachment, CommandBody, OutboundItem, PressBody
from core.contracts.clock import Clock


class SlackChannel:
    """One app in one workspace. Enter it to use it; leaving closes its connections.

    Sending works without `run`, so that a host which has stopped listening can still deliver.
    """

    def __init__(
        self,
        *,
        bot_token: str,
        app_token: str | None = None,
        signing_secret: str | None = None,
        api_base: str,
        clock: Clock,
        mask: Callable[[str], str],
        name: str = "slack",
        timing: Timing | None = None,
        direct: str = THREAD,
        channels: str = THREAD,
        suggested_prompts: tuple[str, ...] = (),
    ) -> None:
        """Take `mask`, which hides secret values in the details of errors; does no I/O.

        With an `app_token` events come by Socket Mode, with a `signing_secret` over HTTP. `direct` and
        `channels` say what one conversation is held in: see `channels.slack.places.Places`.
        """
        self._name = name
        self._clock = clock
        self._timing = timing or Timing()
        self._modes = (direct, channels)
        self._prompts = suggested_prompts
        self._api = SlackApi(bot_token, api_base, mask, self._timing, app_token=app_token or "")
        self._pacer = ChatPacer(clock, lambda _: self._timing.edit_interval)
        self._streams = Streams(clock)
        self._statuses = Statuses(self._api, clock)
        self._uploads = Uploads(self._api, clock, self._timing)
        self._deliveries = Deliveries(self._api, self._pacer, self._uploads)
        self._lookups = Lookups(self._api, self._uploads, clock, self._timing)
        self._downloads = Downloads(self._api, clock, self._timing)
        self._replies = Replies(self._api)
        self._health = Health("Slack")
        self._receiver: Socket | Endpoint = (
            self._socket(app_token, api_base) if app_token else Endpoint(signing_secret or "", self._health)
        )
        self._diagnosis = Diagnosis(self._api, clock=clock, socket_mode=bool(app_token))
        self._is_running = False
        self._capabilities = _capabilities(self._timing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.aclose()

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def webhook(self) -> Asgi | None:
        return self._receiver if isinstance(self._receiver, Endpoint) else None

    async def run(self, sink: Sink) -> None:
        self._health.began()
        app = await answered(
            self._api.identity,
            clock=self._clock,
            timing=self._timing,
            failed=lambda error: self._health.disconnected(error.detail),
        )
        own = Own(team=app.team, user=app.user, bot=app.bot)
        people = People(self._api, self._clock, name=self._name, team=app.team)
        intake = self._intake(own, people)

        async def take_said(said: Said) -> None:
            await intake.said(said, sink)

        backfill = Backfill(self._api, own, clock=self._clock, timing=self._timing, name=self._name)
        catch_up = CatchUp(backfill, sink, take_said, clock=self._clock, timing=self._timing, health=self._health)

        async def take(payload: Json) -> None:
            if "event" in payload:
                await catch_up.settled()
            await intake.take(payload, sink)
            catch_up.heard(payload)

        self._is_running = True
        try:
            # Before the socket: a later event must not stand for what came before it.
            await catch_up.begin()
            catching_up = asyncio.create_task(catch_up.run(), name="slack-catch-up")
            try:
                await self._receiver.run(take, team=app.team, connected=catch_up.connected)
            finally:
                catching_up.cancel()
                await asyncio.gather(catching_up, return_exceptions=True)
        finally:
            self._is_running = False
            await intake.aclose()
            await people.aclose()

    def _socket(self, app_token: str, api_base: str) -> Socket:
        return Socket(
            self._api,
            app_token=app_token,
            api_base=api_base,
            clock=self._clock,
            timing=self._timing,
            health=self._health,
        )

    def _intake(self, own: Own, people: People) -> Intake:
        direct, rooms = self._modes
        return Intake(
            own,
            Places(name=self._name, team=own.team, direct=direct, rooms=rooms),
            people,
            api=self._api,
            replies=self._replies,
            statuses=self._statuses,
            streams=self._streams,
            health=self._health,
            clock=self._clock,
            timing=self._timing,
            prompts=self._prompts,
        )

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        return Preview(
            LiveMessage(self._api, self._streams, address=address, clock=self._clock, timing=self._timing),
            self._statuses,
            address=address,
            pacer=self._pacer,
            clock=self._clock,
            timing=self._timing,
            on_sent=on_sent,
        )

    async def deliver(self, item: OutboundItem) -> str:
        return await self._deliveries.deliver(item)

    async def find(self, item: OutboundItem) -> str | None:
        return await self._lookups.find(item)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        return await self._downloads.download(attachment, into, limit_bytes=limit_bytes)

    async def leave(self, address: Address) -> None:
        await self._api.leave(address.chat)

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        await self._replies.answer(asked, text)

    async def open_form(self, press: PressBody, form: Form) -> None:
        await self._replies.open_form(press, form)

    async def show_home(self, person: str, sections: tuple[HomeSection, ...]) -> None:
        await self._api.publish_view(person, draw_home(sections))

    async def probe(self) -> Probe:
        return self._health.probe()

    async def diagnose(self) -> tuple[Finding, ...]:
        if not self._is_running:
            return await self._diagnosis.findings(None)
        sockets = self._receiver.sockets if isinstance(self._receiver, Socket) else None
        return await self._diagnosis.findings(self._health.probe(), sockets=sockets)


def _capabilities(timing: Timing) -> Capabilities:
    return Capabilities(
        text_limit=TEXT_LIMIT_BYTES,
        text_unit=TextUnit.BYTES,
        edits=True,
        buttons=True,
        edit_interval=timing.edit_interval,
        code_limit=CARD_CODE_LIMIT_BYTES,
        lookup=True,
        files=True,
        reactions=True,
        removals=True,
        forms=True,
        is_installed=True,
    )


if TYPE_CHECKING:
    _conforms: type[Channel] = SlackChannel
    _can_be_diagnosed: type[Diagnosable] = SlackChannel
    _can_be_called: type[Webhook] = SlackChannel
    _has_homes: type[HomeScreen] = SlackChannel
