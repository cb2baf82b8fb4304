import asyncio
from datetime import timedelta

import pytest

from channels.contract import CommandMenu, MenuScope, TextUnit
from channels.discord.commands import ASK_ABOUT_THIS
from core.contracts.addresses import MessageBody
from core.contracts.errors import ChannelDown, StoreUnavailable
from tests.channels.discord.taking import direct, discord_channel, heartbeats, opened, place
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_guilds import ALICE, BOT, GENERAL, GUILD
from tests.platforms.telegram_faults import Fault

MENU = CommandMenu(scope=MenuScope.DIRECT, commands=(("stop", "stop what runs"), ("help", "say what there is")))


async def test_what_it_can_is_said_before_it_is_connected():
    async with opened(name="ours") as world:
        can = world.channel.capabilities

        assert world.channel.name == "ours"
        assert (can.text_limit, can.text_unit, can.code_limit) == (2000, TextUnit.UTF16, 1400)
        assert all((can.edits, can.buttons, can.lookup, can.files, can.reactions, can.removals, can.forms))
        assert not can.is_installed
        assert world.server.calls == []
        assert not (await world.channel.probe()).healthy


async def test_it_listens_until_it_is_cancelled():
    async with opened() as world:
        task = await world.listen()
        world.server.user_says(world.server.dm(ALICE), ALICE, "hello")
        (event,) = await world.heard(1)
        healthy = await world.channel.probe()
        await world.stop(task)

        assert task.cancelled()
        assert event.address == direct(world.server, ALICE)
        assert event.body == MessageBody(text="hello", addressed=True)
        assert (healthy.healthy, healthy.detail) == (True, "connected")
        assert not (await world.channel.probe()).healthy
        await world.server.wait_for(lambda: not world.server.gateway.sessions)


async def test_the_bots_own_messages_are_not_handed_over():
    async with opened() as world:
        await world.listen()
        world.server.messages.send(GENERAL, {"content": "mine"}, [])
        world.server.user_says(GENERAL, ALICE, "hers")
        await world.heard(1)

        assert world.sink.texts == ["hers"]


async def test_it_can_listen_again_and_hears_what_came_between():
    async with opened() as world:
        task = await world.listen()
        world.server.user_says(GENERAL, ALICE, "before")
        await world.heard(1)
        await world.stop(task)
        world.server.user_says(GENERAL, ALICE, "meanwhile")
        world.run()
        await world.hears()
        await world.heard(2)
        world.server.user_says(GENERAL, ALICE, "again")
        await world.heard(3)

        assert world.sink.texts == ["before", "meanwhile", "again"]


async def test_nothing_of_it_runs_when_it_was_cancelled():
    async with opened(menus=(MENU,)) as world:
        before = asyncio.all_tasks(), heartbeats()
        task = await world.listen()
        world.server.user_says(GENERAL, ALICE, f"<@{BOT}> hello")
        await world.heard(1)
        await world.until(lambda: world.server.commands.writes)
        world.server.runs_command(ALICE, GENERAL, "stop")
        await world.until(lambda: len(world.sink.bodies) == 2)
        assert len(heartbeats()) == len(before[1]) + 1
        await world.stop(task)
        await world.until(lambda: heartbeats() == before[1])
        await world.server.wait_for(lambda: not world.server.gateway.sessions)
        await world.until(lambda: not (ours(asyncio.all_tasks()) - ours(before[0])))

        assert world.clock.sleeping == 0


def ours(tasks):
    """Return the tasks that are not the fake platform's nor the test's own."""
    return {task for task in tasks if "aiohttp/web" not in repr(task) and "discord_gateway" not in repr(task)}


async def test_it_ends_at_once_while_events_wait_for_a_store_that_hangs():
    async with opened() as world:
        task = await world.listen()
        world.sink.gate = asyncio.Event()
        for number in range(5):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        await world.until(lambda: world.sink.held)
        await world.stop(task)

        assert task.cancelled()
        assert world.sink.texts == []
        await world.until(lambda: not heartbeats())


async def test_what_waited_for_a_store_that_hung_when_it_ended_is_heard_by_the_next_run():
    async with opened() as world:
        task = await world.listen()
        await world.clock.advance(timedelta(minutes=1))
        world.sink.gate = asyncio.Event()
        for number in range(5):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        await world.until(lambda: world.sink.held)
        await world.stop(task)
        world.sink.gate = None
        world.run()
        await world.in_time(lambda: len(world.sink.texts) == 5)

        assert world.sink.texts == [f"{number}" for number in range(5)]


async def test_a_token_that_is_refused_ends_it_for_good_and_says_what_to_do():
    async with opened() as world:
        world.server.account.revoked = True
        with pytest.raises(ChannelDown, match="Reset Token") as refused:
            await world.channel.run(world.sink)
        probe = await world.channel.probe()

        assert TOKEN not in str(refused.value)
        assert len(world.server.calls) == 1
        assert world.server.gateway.identifies == []
        assert not probe.healthy
        assert "Reset Token" in probe.detail


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_discord_that_does_not_answer_at_first_is_asked_again(fault, caplog):
    async with opened() as world:
        world.server.fault("me", fault, times=2)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        probe = await world.channel.probe()
        await world.hears_again()

        assert not probe.healthy
        assert "Discord is not heard" in probe.detail
        assert caplog.text.count("discord_not_reached") == 2


async def test_a_limit_at_the_start_is_kept():
    async with opened() as world:
        world.server.fault("me", Fault.FLOODED, seconds=20)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(19, step=1)
        assert len(world.server.calls_of("me")) == 1
        await world.hears_again()


async def test_a_store_that_fails_turns_the_probe_red_until_it_works():
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked")]
        world.server.user_says(GENERAL, ALICE, "hello")
        red = await world.hears(well=False)
        await world.in_time(lambda: world.sink.texts)

        assert "cannot be stored" in red.detail
        assert (await world.channel.probe()).healthy


async def test_commands_are_offered_while_it_listens():
    async with opened(menus=(MENU,)) as world:
        await world.listen()
        await world.until(lambda: world.server.commands.writes)

        assert world.server.commands.names() == ["stop", "help"]
        assert world.server.commands.names(kind=3) == [ASK_ABOUT_THIS]


async def test_commands_that_cannot_be_set_hold_nothing_up():
    async with opened(menus=(MENU,)) as world:
        gate = world.server.gate_next("commands")
        await world.listen()
        world.server.user_says(GENERAL, ALICE, "hello")
        await world.heard(1)
        gate.opened.set()

        assert world.server.commands.writes == 0


async def test_without_menus_no_command_is_touched():
    async with opened() as world:
        await world.listen()
        world.server.user_says(GENERAL, ALICE, "hello")
        await world.heard(1)

        assert world.server.calls_of("commands") == []


async def test_an_application_that_is_not_told_at_first_is_asked_for_again():
    async with opened(menus=(MENU,)) as world:
        world.server.fail_next("application", 500)
        await world.listen()
        await world.in_time(lambda: world.server.commands.writes)

        assert (await world.channel.probe()).healthy


async def test_it_diagnoses_itself_without_being_connected():
    async with opened() as world:
        found = {finding.name: finding for finding in await world.channel.diagnose()}

        assert "receiving" not in found or not found["receiving"].ok
        assert world.server.gateway.identifies == []


async def test_it_diagnoses_that_it_hears():
    async with opened() as world:
        await world.listen()
        found = {finding.name: finding for finding in await world.channel.diagnose()}

        assert found["receiving"].ok
        assert len(world.server.gateway.identifies) == 1


async def test_it_leaves_a_guild_without_listening_and_being_out_of_it_is_no_failure():
    async with opened() as world:
        await world.channel.leave(place(GENERAL))
        await world.channel.leave(place(GENERAL))
        await world.channel.leave(direct(world.server, ALICE))

        assert BOT not in world.server.directory.guilds[GUILD].members
        assert [call.status for call in world.server.calls_of("leave_guild")] == [204, 404]


async def test_it_sends_after_it_stopped_listening():
    async with opened() as world:
        await world.stop(await world.listen())
        await world.channel.leave(place(GENERAL))

        assert [call.status for call in world.server.calls_of("leave_guild")] == [204]


async def test_two_bots_in_one_process_listen_beside_each_other():
    async with opened() as world, opened() as other:
        async with discord_channel(world.server, world.clock) as twin:
            await world.listen()
            await other.listen()
            world.run(twin)
            await world.hears(twin)
        world.server.user_says(GENERAL, ALICE, "here")
        other.server.user_says(GENERAL, ALICE, "there")
        await world.until(lambda: world.sink.texts and other.sink.texts)

        assert other.sink.texts == ["there"]
        assert set(world.sink.texts) == {"here"}
