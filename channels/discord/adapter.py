"""The Discord channel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from channels.contract import (
    Capabilities,
    Channel,
    CommandMenu,
    Diagnosable,
    Finding,
    Form,
    Probe,
    Reply,
    SentCallback,
    Sink,
    TextUnit,
)
from channels.discord.commands import CommandPublisher
from channels.discord.deliveries import Deliveries
from channels.discord.diagnosis import Diagnosis
from channels.discord.downloads import Downloads
from channels.discord.errors import NotInGuild
from channels.discord.gateway import TOKEN_REFUSED, Gateway
from channels.discord.intake import INTERACTION, Intake
from channels.discord.interactions import Interactions
from channels.discord.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16, Timing
from channels.discord.places import THREAD, BotAccount
from channels.discord.replies import Replies
from channels.discord.threads import Threads
from channels.discord.transport import BotIdentity, DiscordApi
from channels.health import Health
from channels.pacing import ChatPacer
from channels.supervision import Backoff, answered
from core.contracts.addresses import Address, Attachment, CommandBody, OutboundItem, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_EVENTS_READ_AHEAD = 1_000
"""Above this many events that wait for the store nothing more is read; Discord keeps the rest for a while."""


class DiscordChannel:
    """One bot. Enter it to use it; leaving closes its connections.

    Sending works without `run`, so that a host which has stopped listening can still deliver.
    """

    def __init__(
        self,
        *,
        token: str,
        api_base: str,
        gateway_url: str = "",
        clock: Clock,
        mask: Callable[[str], str],
        name: str = "discord",
        timing: Timing | None = None,
        menus: tuple[CommandMenu, ...] = (),
        channels: str = THREAD,
    ) -> None:
        """Take `mask`, which hides secret values in the details of errors; does no I/O.

        `channels` says what a conversation in a text channel is held in: see `channels.discord.places`.
        Without a `gateway_url` Discord says where to listen. The `menus` are offered once `run` runs.
        """
        self._name = name
        self._clock = clock
        self._timing = timing or Timing()
        self._in_threads = channels == THREAD
        self._menus = menus
        self._api = DiscordApi(token, api_base, clock=clock, mask=mask, timing=self._timing)
        pacer = ChatPacer(clock, lambda _: self._timing.edit_interval)
        threads = Threads(self._api)
        self._deliveries = Deliveries(self._api, threads, pacer, clock)
        self._replies = Replies(self._api, threads, pacer, clock, self._timing)
        self._interactions = Interactions(self._api, clock, self._timing)
        self._downloads = Downloads(self._api, clock, self._timing)
        self._health = Health("Discord")
        self._gateway = Gateway(
            self._api,
            token=token,
            api_base=api_base,
            gateway_url=gateway_url,
            clock=clock,
            timing=self._timing,
            health=self._health,
        )
        self._diagnosis = Diagnosis(self._api, clock=clock, timing=self._timing, gateway_url=gateway_url)
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

    async def run(self, sink: Sink) -> None:
        self._health.began()
        try:
            await self._run(sink)
        except ChannelDown as down:
            self._health.lost(down.detail)
            raise
        finally:
            self._health.disconnected("nothing listens any more")

    async def _run(self, sink: Sink) -> None:
        bot = await self._identity()
        account = BotAccount(channel=self._name, id=bot.id, in_threads=self._in_threads)
        intake = Intake(
            self._api,
            account,
            interactions=self._interactions,
            health=self._health,
            clock=self._clock,
            timing=self._timing,
            sink=sink,
        )
        waiting: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(_EVENTS_READ_AHEAD)

        async def take(name: str, event: dict[str, Any]) -> None:
            if name == INTERACTION:
                intake.take_interaction(event)
            else:
                await waiting.put((name, event))

        async def work() -> None:
            while True:
                await intake.take(*await waiting.get())

        async with self._interactions, intake, self._offering_commands():
            await _first_to_end(self._gateway.run(take), work())

    async def _identity(self) -> BotIdentity:
        """Return who the bot is, however long that takes.

        Raises:
            ChannelDown: Its token is refused.
        """
        try:
            return await self._answered(self._api.identity)
        except ChannelDown as refused:
            raise ChannelDown(TOKEN_REFUSED) from refused

    async def _answered(self, call: Callable[[], Awaitable[_T]]) -> _T:
        backoff = Backoff(self._timing.reconnect_first, self._timing.reconnect_longest)
        return await answered(call, clock=self._clock, backoff=backoff, failed=self._note_failure)

    def _note_failure(self, error: ChannelError, wait: timedelta) -> None:
        if not self._is_running:
            self._health.disconnected(error.detail)
        logger.warning("discord_not_reached", extra={"detail": error.detail, "wait": wait.total_seconds()})

    @asynccontextmanager
    async def _offering_commands(self) -> AsyncIterator[None]:
        """See to the commands beside the block; they never hold up what people write."""
        self._is_running = True
        task = asyncio.create_task(self._offer_commands(), name="commands")
        try:
            yield
        finally:
            self._is_running = False
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def _offer_commands(self) -> None:
        if not self._menus:
            return
        try:
            application = await self._answered(self._api.application)
        except ChannelDown:
            return  # Whoever receives says so.
        publisher = CommandPublisher(
            self._api, self._menus, application=application.id, clock=self._clock, timing=self._timing
        )
        await publisher.publish()

    def reply(self, address: Address, on_sent: SentCallback) -> AbstractAsyncContextManager[Reply]:
        return self._replies.open(address, on_sent)

    async def deliver(self, item: OutboundItem) -> str:
        return await self._deliveries.deliver(item)

    async def find(self, item: OutboundItem) -> str | None:
        return await self._deliveries.find(item)

    async def download(self, attachment: Attachment, into: Path, *, limit_bytes: int) -> int:
        return await self._downloads.download(attachment, into, limit_bytes=limit_bytes)

    async def leave(self, address: Address) -> None:
        if address.space is None:
            return
        try:
            await self._api.leave(address.space)
        except NotInGuild:
            return

    async def acknowledge(self, asked: PressBody | CommandBody, text: str) -> None:
        await self._interactions.answer(asked, text)

    async def open_form(self, press: PressBody, form: Form) -> None:
        await self._interactions.open_form(press, form)

    async def probe(self) -> Probe:
        return self._health.probe()

    async def diagnose(self) -> tuple[Finding, ...]:
        return await self._diagnosis.findings(self._health.probe() if self._is_running else None)


async def _first_to_end(*works: Coroutine[Any, Any, None]) -> None:
    """Await several endless works; the first error of one ends all, and is raised."""
    tasks = {asyncio.create_task(work) for work in works}
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()


def _capabilities(timing: Timing) -> Capabilities:
    return Capabilities(
        text_limit=TEXT_LIMIT_UTF16,
        text_unit=TextUnit.UTF16,
        edits=True,
        buttons=True,
        edit_interval=timing.edit_interval,
        code_limit=CARD_CODE_LIMIT_UTF16,
        lookup=True,
        files=True,
        reactions=True,
        removals=True,
        forms=True,
    )


if TYPE_CHECKING:
    _conforms: type[Channel] = DiscordChannel
    _can_be_diagnosed: type[Diagnosable] = DiscordChannel
