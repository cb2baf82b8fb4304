"""What a bot proves of itself, tried against the platform."""

import asyncio
from datetime import timedelta

import pytest

from channels.contract import Probe
from channels.discord.diagnosis import Diagnosis, allowed_in, granted_in
from channels.discord.invite import NEEDED, Permission
from channels.discord.limits import Timing
from core.contracts.clock import FakeClock
from tests.channels.discord.sending import opened
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_account import Intent
from tests.platforms.discord_guilds import BOT, BOT_ROLE, FORUM, GENERAL, GUILD, KEEPERS, PRIVATE, RANDOM
from tests.platforms.discord_permissions import MEMBER, Overwrite
from tests.platforms.telegram_faults import Fault

HEALTHY = Probe(healthy=True, detail="Discord: a heartbeat was answered 3 s ago.")


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


async def diagnosed(world, *, listening=None, gateway_url="", clock=None):
    """Return the findings by name."""
    diagnosis = Diagnosis(world.api, clock=clock or world.clock, timing=Timing(), gateway_url=gateway_url)
    return {finding.name: finding for finding in await diagnosis.findings(listening)}


async def test_a_bot_with_nothing_wrong_proves_it_and_changes_nothing(world):
    found = await diagnosed(world, listening=HEALTHY)

    assert list(found) == ["token", "clock", "intents", "gateway", "starts", "receiving", "servers", "server Lodge"]
    assert [finding for finding in found.values() if not finding.ok or finding.fix] == []
    assert "lodger" in found["token"].detail
    assert "Lodge" in found["servers"].detail
    assert found["receiving"].detail == HEALTHY.detail
    assert "1000 of 1000" in found["starts"].detail
    assert {call.route for call in world.server.calls} <= {
        "me", "application", "gateway", "gateway_bot", "guilds", "guild", "guild_member", "guild_channels"
    }  # fmt: skip
    assert world.server.gateway.identifies == []


async def test_a_refused_token_is_the_only_finding_and_names_the_way_out(world):
    world.server.account.revoked = True
    found = await diagnosed(world)

    assert list(found) == ["token"]
    assert not found["token"].ok
    assert "Reset Token" in found["token"].fix


async def test_an_outage_is_told_from_a_refused_token(world):
    await world.server.stop()
    found = await diagnosed(world)

    assert [(name, finding.ok) for name, finding in found.items()] == [("connection", False)]
    assert "api_base" in found["connection"].fix


async def test_a_missing_intent_is_named_with_where_it_is_switched_on(world):
    world.server.account.privileged = Intent.NONE
    found = await diagnosed(world)

    assert not found["intents"].ok
    assert "Message Content Intent" in found["intents"].fix


async def test_a_gateway_that_takes_no_connection_is_told(world):
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    for url in (f"ws://127.0.0.1:{port}", "wss://127.0.0.1:nonsense", "nowhere"):
        found = await diagnosed(world, gateway_url=url)
        assert not found["gateway"].ok
        assert "gateway_url" in found["gateway"].fix


async def test_a_gateway_that_nobody_tells_is_told(world):
    world.server.fail_next("gateway_bot", 503)
    found = await diagnosed(world)

    assert not found["gateway"].ok
    assert "starts" not in found


async def test_few_starts_that_are_left_are_a_warning(world):
    world.server.gateway.spend_identifies(left=3)
    found = await diagnosed(world)

    assert not found["starts"].ok
    assert "3 of 1000" in found["starts"].detail
    assert found["starts"].fix


async def test_a_clock_that_is_off_is_told_with_by_how_much(world):
    found = await diagnosed(world, clock=FakeClock(await world.api.server_time() + timedelta(minutes=10)))

    assert not found["clock"].ok
    assert "600 s apart" in found["clock"].detail
    assert found["clock"].fix


async def test_a_bot_in_no_server_is_told_how_it_is_invited(world):
    world.server.removes_bot(GUILD)
    found = await diagnosed(world)

    assert found["servers"].ok
    assert f"client_id={BOT}" in found["servers"].fix


async def test_a_permission_that_is_missing_in_a_server_is_named(world):
    guild = world.server.directory.guilds[GUILD]
    for role in (BOT_ROLE, GUILD):
        guild.roles[role].permissions &= ~(allowed.CREATE_PUBLIC_THREADS | allowed.ATTACH_FILES)
    found = await diagnosed(world)

    assert not found["server Lodge"].ok
    assert found["server Lodge"].detail == "The bot lacks Attach Files, Create Public Threads."
    assert "oauth2/authorize" in found["server Lodge"].fix


async def test_channels_where_the_bot_may_not_do_all_are_named_and_those_it_does_not_see_are_private(world):
    world.server.directory.channel(GENERAL).overwrites = [Overwrite(BOT_ROLE, deny=allowed.SEND_MESSAGES)]
    world.server.directory.channel(RANDOM).overwrites = [Overwrite(GUILD, deny=allowed.VIEW_CHANNEL)]
    found = await diagnosed(world)

    assert found["server Lodge"].ok
    assert "#general" in found["server Lodge"].detail
    assert "#random" not in found["server Lodge"].detail
    assert found["server Lodge"].fix


async def test_an_administrator_may_do_everything(world):
    world.server.directory.guilds[GUILD].roles[BOT_ROLE].permissions = allowed.ADMINISTRATOR
    world.server.directory.channel(GENERAL).overwrites = [Overwrite(BOT_ROLE, deny=allowed.ALL)]
    found = await diagnosed(world)

    assert found["server Lodge"].fix == ""


@pytest.mark.parametrize("route", ["guilds", "guild", "guild_member", "guild_channels"])
async def test_an_outage_in_between_is_a_finding_and_no_error(world, route):
    world.server.fault(route, Fault.LOST_RESPONSE)
    found = await diagnosed(world)

    assert not found["servers"].ok


async def test_permissions_are_counted_as_discord_counts_them(world):
    directory = world.server.directory
    guild = directory.guilds[GUILD]
    guild.members[BOT].roles.append(KEEPERS)
    directory.channel(FORUM).overwrites = [
        Overwrite(GUILD, deny=allowed.ALL, allow=allowed.VIEW_CHANNEL),
        Overwrite(KEEPERS, allow=allowed.SEND_MESSAGES),
        Overwrite(BOT_ROLE, deny=allowed.SEND_MESSAGES | allowed.ADD_REACTIONS),
        Overwrite(BOT, MEMBER, allow=allowed.ATTACH_FILES, deny=allowed.READ_MESSAGE_HISTORY),
    ]
    shown, member = await world.api.guild(str(GUILD)), await world.api.member(str(GUILD), str(BOT))
    granted = granted_in(shown, member)
    assert granted & NEEDED == NEEDED
    every = sum(Permission)
    for channel_id in (GENERAL, PRIVATE, FORUM):
        channel = directory.channel(channel_id)
        counted = allowed_in(channel.as_json(), shown, member, granted)

        assert int(counted) == directory.permissions(channel, BOT) & every, channel.name
