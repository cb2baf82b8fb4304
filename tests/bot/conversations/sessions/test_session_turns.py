"""Sessions in a whole host: what a client says is answered like what comes from any other channel."""

from __future__ import annotations

from bot.conversations.sessions.protocol import CHANNEL
from bot.wiring.channels import open_channels
from bot.wiring.parts import LOCAL
from core.contracts.clock import FakeClock
from core.models.scripted import says
from core.secrets.redaction import ValueRedactor
from tests.bot.conversations.hosting import hosting, make_settings


async def test_a_message_of_a_session_is_answered(tmp_path):
    async with hosting(tmp_path, says("hi")) as host:
        opened = await host.app.sessions.open(agent="", conversation="")
        conversation_id = opened["conversation_id"]
        await host.app.sessions.take(conversation_id, {"type": "user", "text": "hello"})
        await host.settle()
        assert len(host.model.requests) == 1
        assert (await host.stores.ledger.latest_turn(conversation_id)).outcome == "completed"


async def test_every_channel_of_this_machine_is_open_also_without_platforms(tmp_path):
    async with open_channels(make_settings(tmp_path), FakeClock(), ValueRedactor([]), platforms=False) as channels:
        assert set(channels.by_name) == set(LOCAL)
        assert CHANNEL in channels.by_name
