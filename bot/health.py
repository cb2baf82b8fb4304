"""Readiness: what must be well before the host is, asked anew every time."""

from __future__ import annotations

from collections.abc import Mapping

from bot.conversations.sink import InboxSink
from bot.host_api import Check
from channels.contract import Channel
from core.contracts.errors import ChannelDown, LodgerError
from core.contracts.sandbox import Sandbox
from core.contracts.store import TranscriptStore


class Health:
    """Checks database, sandbox and channels; a channel that ended for good stays red."""

    def __init__(
        self, *, transcripts: TranscriptStore, sink: InboxSink, sandbox: Sandbox, channels: Mapping[str, Channel]
    ) -> None:
        self._transcripts = transcripts
        self._sink = sink
        self._sandbox = sandbox
        self._channels = channels
        self._ended: dict[str, str] = {}
        self._draining = False

    def channel_ended(self, name: str, error: ChannelDown) -> None:
        """Remember why a channel will not come back by itself."""
        self._ended[name] = str(error)

    def start_draining(self) -> None:
        """Be red from now on: the host takes no new work."""
        self._draining = True

    async def checks(self) -> tuple[Check, ...]:
        """Return one check a part; the required ones decide."""
        return (
            Check(name="intake", ok=not self._draining, detail="stopping" if self._draining else "open"),
            await self._database(),
            Check(
                name="sandbox",
                ok=self._sandbox.report.works,
                detail=f"{self._sandbox.report.kind}: {self._sandbox.report.detail}",
                required=False,
            ),
            *[await self._channel(name, channel) for name, channel in self._channels.items()],
        )

    async def _database(self) -> Check:
        try:
            await self._transcripts.agents()
        except LodgerError as error:
            return Check(name="database", ok=False, detail=str(error))
        if self._sink.failing:
            return Check(name="database", ok=False, detail="the newest event could not be stored")
        return Check(name="database", ok=True, detail="reads and writes")

    async def _channel(self, name: str, channel: Channel) -> Check:
        if name in self._ended:
            return Check(name=name, ok=False, detail=self._ended[name])
        probe = await channel.probe()
        return Check(name=name, ok=probe.healthy, detail=probe.detail)
