import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest
from aiohttp import web

from channels.discord.limits import Timing
from core.contracts.errors import ChannelDown
from tests.channels.discord.taking import direct, heartbeats, opened, place
from tests.platforms.discord_account import INTENTS, TOKEN, Intent
from tests.platforms.discord_guilds import ALICE, BOB, GENERAL, RANDOM
from tests.platforms.telegram_faults import Fault

IMPATIENT = Timing(gateway_silence=timedelta(seconds=0.4))
HASTY = Timing(answer_timeout=timedelta(seconds=0.5))


def offered(world):
    """Return the texts of all messages that were handed over, each as often as it was."""
    return [event.body.text for event in world.sink.offers if event.key.startswith("m/")]


async def interrupted(world, interrupt):
    """Say something before, during and after an interruption, and return when all that was heard."""
    await world.listen()
    world.server.user_says(GENERAL, ALICE, "before")
    world.server.user_says(world.server.dm(BOB), BOB, "in private")
    await world.heard(2)
    interrupt(world.server)
    world.server.user_says(world.server.dm(BOB), BOB, "during, in private")
    world.server.user_says(GENERAL, ALICE, "during")
    await world.in_time(lambda: len(world.sink.texts) == 4)
    world.server.user_says(GENERAL, ALICE, "after")
    await world.heard(5)
    await world.hears()


WHOLE = ["before", "in private", "during, in private", "during", "after"]
"""What is said around an interruption, in its order."""


# What it asks for


async def test_it_asks_for_what_it_needs_and_no_more():
    async with opened() as world:
        await world.listen()

        assert [identify["intents"] for identify in world.server.gateway.identifies] == [INTENTS]
        assert not Intent(INTENTS) & (Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES)


async def test_discord_says_where_to_listen_where_nobody_else_does():
    async with opened(gateway_url="") as world:
        await world.listen()

        assert len(world.server.gateway.identifies) == 1


async def test_what_is_configured_is_where_it_listens():
    async with opened(gateway_url="ws://127.0.0.1:9/gw") as world:
        world.run()
        await world.until(lambda: world.clock.sleeping)

        assert world.server.gateway.identifies == []
        assert "the connection broke" in (await world.channel.probe()).detail


async def test_the_token_is_in_no_log(caplog):
    caplog.set_level("DEBUG")
    async with opened() as world:
        await world.listen()
        world.server.gateway.cut()
        await world.in_time(lambda: world.server.gateway.resumes)
        world.server.revoke_token()
        with pytest.raises(ChannelDown):
            await world.tasks[0]

        assert "discord_listening" in caplog.text
        assert TOKEN not in caplog.text


# What ends it for good


async def refused(world, task):
    """Return what ended the channel, after a look that nothing is tried again."""
    with pytest.raises(ChannelDown) as down:
        await asyncio.wait_for(task, 30)
    probe = await world.channel.probe()
    assert (probe.healthy, probe.detail) == (False, down.value.detail)
    assert TOKEN not in down.value.detail
    assert world.clock.sleeping == 0
    await world.until(lambda: not heartbeats())
    return down.value.detail


async def test_a_token_that_is_taken_back_while_it_listens_ends_it():
    async with opened() as world:
        task = await world.listen()
        world.server.revoke_token()
        told = await refused(world, task)

        assert "Reset Token" in told
        assert "discord.com/developers/applications" in told
        assert len(world.server.gateway.identifies) == 1


async def test_a_token_that_is_taken_back_before_it_resumes_ends_it():
    async with opened() as world:
        task = await world.listen()
        world.server.account.revoked = True
        world.server.gateway.cut()
        await world.in_time(task.done)

        assert "Reset Token" in await refused(world, task)


async def test_a_token_that_is_refused_as_it_logs_in_ends_it():
    async with opened() as world:
        held = world.server.gate_answer("me")
        task = world.run()
        await held.entered.wait()
        world.server.account.revoked = True
        held.opened.set()

        assert "Reset Token" in await refused(world, task)


async def test_a_bot_that_may_not_read_messages_is_told_which_switch_to_set():
    async with opened() as world:
        world.server.account.privileged = Intent.NONE
        told = await refused(world, world.run())

        assert "message content intent is off" in told
        assert "Bot, Privileged Gateway Intents" in told


async def test_after_the_switch_is_set_it_listens_again():
    async with opened() as world:
        world.server.account.privileged = Intent.NONE
        await refused(world, world.run())
        world.server.account.privileged = Intent.MESSAGE_CONTENT
        await world.listen()

        assert (await world.channel.probe()).detail == "connected"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4004, "Reset Token"),
        (4010, "code 4010"),
        (4011, "more servers than one connection may serve"),
        (4012, "code 4012"),
        (4013, "code 4013"),
        (4014, "Privileged Gateway Intents"),
    ],
)
async def test_a_code_after_which_nothing_helps_ends_it_with_words(code, words):
    async with opened() as world:
        task = await world.listen()
        world.server.gateway.close(code)

        assert words in await refused(world, task)


# What is mended


@pytest.mark.parametrize("code", [1000, 1001, 4000, 4001, 4002, 4003, 4005, 4007, 4008, 4009])
async def test_every_other_code_is_no_end_and_loses_nothing(code):
    async with opened() as world:
        await interrupted(world, lambda server: server.gateway.close(code))

        assert offered(world) == WHOLE


@pytest.mark.parametrize(
    "interrupt",
    [
        lambda server: server.gateway.cut(),
        lambda server: server.gateway.ask_reconnect(),
        lambda server: server.gateway.invalidate(resumable=True),
    ],
    ids=["cut", "asked to reconnect", "a session that can be resumed"],
)
async def test_a_session_goes_on_where_its_connection_ended(interrupt):
    async with opened() as world:
        await interrupted(world, interrupt)
        gateway = world.server.gateway

        assert offered(world) == WHOLE
        assert (len(gateway.identifies), len(gateway.resumes), len(gateway.sessions)) == (1, 1, 1)
        assert len(world.server.calls_of("gateway_bot")) == 1
        assert world.server.calls_of("get_messages") == []


async def test_a_session_that_is_void_is_begun_anew_and_what_was_missed_is_read():
    async with opened() as world:
        await interrupted(world, lambda server: server.gateway.invalidate())
        gateway = world.server.gateway

        assert world.sink.texts == WHOLE
        assert (len(gateway.identifies), len(gateway.resumes), len(gateway.sessions)) == (2, 0, 1)


async def test_a_new_session_waits_a_while_after_the_old_one_was_void():
    async with opened() as world:
        await world.listen()
        world.server.gateway.invalidate()
        await world.hears(well=False)
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(0.75)
        assert len(world.server.gateway.identifies) == 1
        await world.in_time(lambda: len(world.server.gateway.identifies) == 2)


async def test_a_connection_that_falls_silent_is_noticed_and_resumed():
    async with opened(timing=IMPATIENT) as world:
        world.server.gateway.heartbeat_interval = timedelta(milliseconds=50)
        await interrupted(world, lambda server: server.gateway.fall_silent())

        assert offered(world) == WHOLE
        assert len(world.server.gateway.resumes) == 1
        assert len(world.server.gateway.identifies) == 1


async def test_it_hears_that_nothing_is_said_for_as_long_as_there_are_heartbeats():
    async with opened(timing=IMPATIENT) as world:
        world.server.gateway.heartbeat_interval = timedelta(milliseconds=50)
        await world.listen()
        await world.server.wait_for(lambda: world.server.gateway.heartbeats > 12)

        assert world.server.gateway.resumes == []
        assert (await world.channel.probe()).healthy


def resumed_more_than(world, number):
    return len(world.server.gateway.resumes) > number


async def test_many_cuts_one_after_another_lose_nothing_and_double_nothing():
    async with opened() as world:
        await world.listen()
        for number in range(6):
            world.server.user_says(GENERAL, ALICE, f"{number}")
            world.server.gateway.cut()
            world.server.user_says(RANDOM, BOB, f"{number} too")
            await world.in_time(partial(resumed_more_than, world, number))
        await world.in_time(lambda: len(world.sink.texts) == 12)

        assert offered(world) == [text for number in range(6) for text in (f"{number}", f"{number} too")]
        assert len(world.server.gateway.identifies) == 1


async def test_a_cut_before_the_session_has_a_name_is_mended():
    async with opened() as world:
        world.server.gateway.refuses = True
        world.run()
        await world.until(lambda: world.clock.sleeping)
        broken = await world.channel.probe()
        world.server.gateway.come_up()
        await world.hears_again()

        assert "the connection broke and is being opened again" in broken.detail
        assert len(world.server.gateway.identifies) == 1


async def test_a_gateway_that_was_down_for_long_is_followed_by_what_was_missed():
    async with opened() as world:
        await world.listen()
        world.server.user_says(GENERAL, ALICE, "before")
        world.server.user_says(world.server.dm(BOB), BOB, "in private")
        await world.heard(2)
        world.server.gateway.go_down()
        await world.pass_time(60, step=5)
        world.server.user_says(GENERAL, ALICE, "while it was down")
        world.server.user_says(world.server.dm(BOB), BOB, "in private, too")
        await world.pass_time(240, step=10)
        red = await world.channel.probe()
        world.server.gateway.come_up()
        await world.in_time(lambda: len(world.sink.texts) == 4)
        world.server.user_says(GENERAL, ALICE, "after")
        await world.heard(5)

        assert not red.healthy
        assert [(event.address.chat, event.body.text) for event in world.sink.messages if event.address.space] == [
            (str(GENERAL), "before"),
            (str(GENERAL), "while it was down"),
            (str(GENERAL), "after"),
        ]
        assert direct(world.server, BOB) in {event.address for event in world.sink.messages[2:]}
        assert world.sink.memberships == [(place().space, True)]


async def test_a_session_that_ran_out_is_begun_anew():
    async with opened() as world:
        await world.listen()
        world.server.gateway.refuses = True
        world.server.gateway.cut()
        await world.pass_time(200, step=5)
        world.server.user_says(GENERAL, ALICE, "to nobody")
        world.server.gateway.come_up()
        await world.hears_again()
        gateway = world.server.gateway

        assert (len(gateway.identifies), len(gateway.resumes)) == (2, 1)


async def test_a_gateway_that_is_down_is_not_hammered():
    async with opened() as world:
        world.server.gateway.refuses = True
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(600, step=2)

        assert 10 < len(world.server.calls_of("gateway_bot")) < 22


async def test_a_cut_after_a_long_outage_is_mended_as_soon_as_any():
    async with opened() as world:
        world.server.gateway.refuses = True
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(300, step=5)
        world.server.gateway.come_up()
        await world.hears_again()
        world.server.gateway.cut()
        await world.hears(well=False)
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(1)
        await world.hears()

        assert len(world.server.gateway.resumes) == 1


@asynccontextmanager
async def speechless(code=None):
    """Give the address of a gateway that opens connections and is then silent, or closes them, and counts them."""
    seen = Counter()

    async def serve(request):
        socket = web.WebSocketResponse(timeout=0.1)
        await socket.prepare(request)
        seen["opened"] += 1
        try:
            if code is not None:
                await socket.close(code=code)
            async for _ in socket:
                pass
        finally:
            seen["ended"] += 1
        return socket

    app = web.Application()
    app.router.add_get("/gw", serve)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/gw", seen
    finally:
        await runner.cleanup()


async def test_a_gateway_that_says_nothing_is_tried_again_and_its_connection_closed():
    async with speechless() as (url, seen), opened(gateway_url=url, timing=HASTY) as world:
        world.run()
        await world.until(lambda: world.clock.sleeping)
        broken = await world.channel.probe()
        await world.until(lambda: seen["ended"] == 1)
        await world.in_time(lambda: seen["opened"] == 2)

        assert "TimeoutError" in broken.detail


async def test_a_gateway_that_closes_a_connection_at_once_is_tried_again():
    async with speechless(4000) as (url, seen), opened(gateway_url=url) as world:
        world.run()
        await world.in_time(lambda: seen["opened"] == 3)

        assert "being opened again" in (await world.channel.probe()).detail


async def test_a_gateway_that_refuses_the_token_at_once_ends_it():
    async with speechless(4004) as (url, seen), opened(gateway_url=url) as world:
        told = await refused(world, world.run())

        assert "Reset Token" in told
        assert seen["opened"] == 1


@pytest.mark.parametrize(("status", "fault"), [(500, None), (200, Fault.LOST_RESPONSE)])
async def test_a_discord_that_does_not_say_where_to_listen_is_asked_again(status, fault):
    async with opened() as world:
        if fault is None:
            world.server.fail_next("gateway_bot", status, times=2)
        else:
            world.server.fault("gateway_bot", fault, times=2)
        world.run()
        await world.hears_again()

        assert len(world.server.calls_of("gateway_bot")) == 3


async def test_a_limit_on_asking_where_to_listen_is_waited_out_in_one_go(caplog):
    caplog.set_level("INFO")
    async with opened() as world:
        world.server.fault("gateway_bot", Fault.FLOODED, seconds=30)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(29, step=1)
        assert len(world.server.calls_of("gateway_bot")) == 1
        await world.hears_again()

        assert caplog.text.count("discord_gateway_lost") == 1


async def test_a_log_in_that_fails_is_tried_again():
    async with opened() as world:
        held = world.server.gate_answer("me")
        world.run()
        await held.entered.wait()
        world.server.fail_next("me", 503)
        held.opened.set()
        await world.until(lambda: world.clock.sleeping)
        broken = await world.channel.probe()
        await world.hears_again()

        assert "503" in broken.detail
        assert len(world.server.calls_of("me")) == 3


# How often a session may be started


async def test_a_start_that_is_one_of_the_last_waits_and_the_probe_says_why():
    async with opened() as world:
        world.server.gateway.spend_identifies(left=3)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        waiting = await world.channel.probe()
        await world.pass_time(8 * 3600 - 60, step=600)
        assert world.server.gateway.identifies == []
        await world.pass_time(120, step=30)
        await world.hears()

        assert not waiting.healthy
        assert "3 of 1000 starts are left" in waiting.detail
        assert "the next is in 28800 s" in waiting.detail
        assert not world.server.account.revoked


async def test_with_no_start_left_it_waits_until_there_are_more_and_keeps_its_token():
    async with opened() as world:
        world.server.gateway.spend_identifies(left=0)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(24 * 3600 - 60, step=3600)
        assert world.server.gateway.identifies == []
        await world.pass_time(120, step=30)
        await world.hears()

        assert not world.server.account.revoked


async def test_a_resumed_session_needs_no_start():
    async with opened() as world:
        await world.listen()
        world.server.gateway.spend_identifies(left=0)
        world.server.gateway.cut()
        await world.in_time(lambda: world.server.gateway.resumes)
        await world.hears_again()

        assert len(world.server.gateway.identifies) == 1


# How much is read


async def test_more_than_is_read_ahead_waits_at_discord_and_is_heard_in_order():
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        for number in range(1_200):
            world.server.user_says(GENERAL, ALICE, f"{number}")
        await world.until(lambda: world.sink.held)
        await world.settle()
        world.sink.gate.set()
        await world.heard(1_200)

        assert offered(world) == [f"{number}" for number in range(1_200)]


async def test_what_is_no_event_is_passed_over():
    async with opened() as world:
        await world.listen()
        for shown in ([], "text", None, 7, {}):
            world.server.gateway.publish("NO_SUCH_EVENT", shown, Intent.NONE)
        world.server.user_says(GENERAL, ALICE, "hello")
        await world.heard(1)

        assert len(world.server.gateway.sessions) == 1
        assert world.server.gateway.resumes == []


async def test_a_channel_that_is_cancelled_while_it_waits_to_come_back_ends():
    async with opened() as world:
        task = await world.listen()
        world.server.gateway.cut()
        await world.hears(well=False)
        await world.until(lambda: world.clock.sleeping)
        await world.stop(task)

        assert task.cancelled()
        assert world.clock.sleeping == 0
        await world.until(lambda: not heartbeats())
