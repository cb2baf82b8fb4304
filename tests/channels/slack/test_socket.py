"""Socket Mode by the real SDK: what is acknowledged when, and what becomes of a connection that ends."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from channels.health import Health
from channels.slack.limits import Timing
from channels.slack.socket import Socket
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable
from tests.channels.slack.sending import opened as sending
from tests.channels.slack.taking import opened, slack_channel
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import APP_TOKEN
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, BOB_DM, TEAM

IMPATIENT = Timing(answer_timeout=timedelta(milliseconds=200), socket_silence=timedelta(milliseconds=200))


@asynccontextmanager
async def socket(timing=None, **options):
    """Give a socket that runs beside its fake Slack, what it hands over, and how often it was greeted."""
    async with sending(timing) as scene:
        health, taken, greetings = Health("Slack"), [], []

        async def take(payload):
            taken.append(payload["event"]["text"])

        receiver = Socket(
            scene.api,
            app_token=APP_TOKEN,
            api_base=scene.server.api_base,
            clock=scene.clock,
            timing=scene.timing,
            health=health,
            ping_interval=timedelta(milliseconds=100),
            **options,
        )
        task = asyncio.create_task(receiver.run(take, team=TEAM, connected=lambda: greetings.append(len(taken))))
        try:
            yield scene, receiver, health, taken, greetings, task
        finally:
            task.cancel()
            await asyncio.wait({task})


# Acknowledgements


async def test_an_event_is_acknowledged_when_it_is_stored_and_not_before():
    async with opened() as world:
        await world.listen()
        world.sink.gate = asyncio.Event()
        ts = world.server.user_says(ALICE_DM, ALICE, "hello")
        (delivery,) = world.server.deliveries.all
        await world.until(lambda: world.sink.held)
        # Something that came later is stored: had the first been acknowledged, Slack knew by now.
        (one,) = world.server.sockets.open
        other = world.server.runs_command("/lodger", "status")
        await world.until(lambda: len(world.sink.held) == 2)
        await world.pass_time(1)
        await world.server.acked(other)
        assert (delivery.acked_at, len(one.received)) == (None, 1)
        world.sink.gate.set()
        await world.server.acked(delivery)

        assert world.sink.events[0].external_id == ts


@pytest.mark.parametrize("error", [StoreUnavailable("locked"), StorageFull("disk full")])
async def test_what_could_not_be_stored_is_not_acknowledged_and_comes_again(error):
    async with opened() as world:
        await world.listen()
        world.sink.errors = [error]
        world.server.user_says(ALICE_DM, ALICE, "first")
        await world.until(lambda: world.sink.refused)
        world.server.user_says(BOB_DM, BOB, "second")
        first, second = world.server.deliveries.all
        await world.server.acked(second)
        assert world.server.deliveries.unacked() == [first]
        world.server.redeliver()
        await world.server.acked(first)

        assert sorted(world.sink.texts) == ["first", "second"]


async def test_an_acknowledgement_that_was_lost_makes_no_second_event_c01():
    async with opened() as world:
        await world.listen()
        world.server.fault("ack", Fault.LOST_REQUEST)
        world.server.user_says(ALICE_DM, ALICE, "hello")
        await world.heard(1)
        world.server.redeliver()
        await world.acked()

        assert len(world.sink.offers) == 2
        assert world.sink.texts == ["hello"]


@pytest.mark.parametrize("fault", [Fault.DUPLICATED, Fault.REORDERED])
async def test_envelopes_that_come_twice_or_late_lose_and_double_nothing(fault):
    async with opened() as world:
        await world.listen()
        world.server.fault("envelope", fault)
        for text in ("one", "two", "three"):
            world.server.user_says(ALICE_DM, ALICE, text)
        await world.acked()

        assert sorted(world.sink.texts) == ["one", "three", "two"]


# Connections


async def test_a_socket_is_connected_when_slack_says_hello():
    async with socket() as (scene, receiver, health, _, greetings, _):
        assert not health.probe().healthy
        await scene.until(lambda: health.probe().healthy)

        assert (greetings, receiver.sockets) == ([0], 1)


async def test_a_greeting_is_told_before_what_comes_behind_it():
    async with socket() as (scene, _, _, taken, greetings, _):
        scene.server.user_says(ALICE_DM, ALICE, "waited")
        await scene.until(lambda: taken)

        assert (taken, greetings) == (["waited"], [0])


async def test_a_connection_that_ends_without_a_word_is_opened_again():
    async with socket() as (scene, _, health, taken, greetings, _):
        await scene.until(lambda: greetings)
        scene.server.sockets.cut()
        await scene.server.wait_for(lambda: not scene.server.sockets.open)
        scene.server.user_says(ALICE_DM, ALICE, "meanwhile")
        await scene.until(lambda: len(greetings) == 2)
        await scene.until(lambda: taken == ["meanwhile"])

        assert health.probe().healthy


@pytest.mark.parametrize("reason", ["refresh_requested", "warning"])
async def test_where_slack_asks_for_another_socket_it_gets_one_at_once(reason):
    async with socket() as (scene, _, health, taken, greetings, _):
        await scene.until(lambda: greetings)
        (old,) = scene.server.sockets.open
        scene.server.sockets.refresh(reason)
        await scene.server.wait_for(lambda: scene.server.sockets.open and old not in scene.server.sockets.open)
        await scene.until(lambda: len(greetings) == 2)
        scene.server.user_says(ALICE_DM, ALICE, "hello")
        await scene.until(lambda: taken == ["hello"])

        assert len(scene.server.sockets.open) == 1
        assert health.probe().healthy
        assert scene.clock.sleeping == 0


async def test_a_deaf_socket_is_noticed_and_what_was_said_to_it_comes_again():
    async with socket() as (scene, _, _, taken, greetings, _):
        await scene.until(lambda: greetings)
        scene.server.sockets.deafen()
        scene.server.user_says(ALICE_DM, ALICE, "hello?")
        await scene.until(lambda: len(greetings) == 2)
        assert taken == []
        scene.server.redeliver()
        await scene.until(lambda: taken == ["hello?"])


@pytest.mark.parametrize("reason", ["too_many_websockets", "link_disabled"])
async def test_a_socket_that_slack_refuses_is_not_asked_for_again_at_once(reason):
    async with socket() as (scene, receiver, health, _, greetings, _):
        await scene.until(lambda: greetings)
        scene.server.sockets.refresh(reason)
        await scene.until(lambda: scene.clock.sleeping)
        asked = len(scene.server.calls_of("apps.connections.open"))
        red = health.probe()
        await scene.pass_time(0.5)
        assert len(scene.server.calls_of("apps.connections.open")) == asked
        assert receiver.sockets is None
        await scene.pass_time(1)
        await scene.until(lambda: health.probe().healthy)

        # One of them is the SDK's own.
        assert asked <= 2
        assert (red.healthy, reason in red.detail) == (False, True)
        assert len(greetings) == 2


async def test_sockets_that_are_refused_again_and_again_are_asked_for_more_and_more_seldom(caplog):
    async with sending() as scene:
        ours = [await scene.api.open_socket() for _ in range(10)]
        session = scene.api._connection.session
        links = [await session.ws_connect(url) for url in ours]
        before = len(scene.server.calls_of("apps.connections.open"))
        health = Health("Slack")
        receiver = Socket(
            scene.api,
            app_token=APP_TOKEN,
            api_base=scene.server.api_base,
            clock=scene.clock,
            timing=scene.timing,
            health=health,
        )
        task = asyncio.create_task(receiver.run(None, team=TEAM, connected=lambda: None))
        for _ in range(5):
            await scene.until(lambda: scene.clock.sleeping)
            await scene.clock.advance(timedelta(seconds=100))
        await scene.until(lambda: scene.clock.sleeping)
        waits = [record.wait for record in caplog.records if record.message == "slack_socket_ended"]
        asked = len(scene.server.calls_of("apps.connections.open")) - before
        for link in links:
            await link.close()
        task.cancel()
        await asyncio.wait({task})

    assert waits == sorted(waits)
    assert waits[-1] > 10 * max(waits[0], 1)
    # Each time ours, and one of the SDK's.
    assert asked <= 12


async def test_where_no_socket_opens_slack_is_asked_for_another_address_after_a_while():
    async with socket(IMPATIENT) as (scene, _, health, _, greetings, _):
        scene.server.fault("link", Fault.HALF_OPEN)
        await scene.until(lambda: scene.clock.sleeping)
        red = health.probe()
        await scene.pass_time(1)
        await scene.until(lambda: greetings)

        assert "cannot be opened" in red.detail
        assert len(scene.server.calls_of("apps.connections.open")) == 2


async def test_an_outage_turns_the_probe_red_and_is_over_when_it_is_over():
    async with socket(IMPATIENT) as (scene, _, health, taken, greetings, task):
        await scene.until(lambda: greetings)
        await scene.server.stop()
        await scene.until(lambda: not health.probe().healthy)
        scene.server.user_says(ALICE_DM, ALICE, "meanwhile")
        await scene.server.start()
        async with asyncio.timeout(60):
            while not taken:
                await scene.clock.advance(timedelta(seconds=1))
                await asyncio.sleep(0)

        assert taken == ["meanwhile"]
        assert health.probe().healthy
        assert not task.done()


async def test_an_app_that_is_let_in_no_more_is_told_so_while_it_is_cut_off():
    async with socket() as (scene, _, _, _, greetings, task):
        await scene.until(lambda: greetings)
        scene.server.revoke("account_inactive")
        scene.server.sockets.cut()
        with pytest.raises(ChannelDown, match="account_inactive"):
            await asyncio.wait_for(task, 30)


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST])
async def test_an_address_that_slack_does_not_give_is_asked_for_at_growing_intervals(fault, caplog):
    async with sending() as scene:
        scene.server.fault("apps.connections.open", fault, times=4)
        health = Health("Slack")
        receiver = Socket(
            scene.api,
            app_token=APP_TOKEN,
            api_base=scene.server.api_base,
            clock=scene.clock,
            timing=scene.timing,
            health=health,
        )
        task = asyncio.create_task(receiver.run(None, team=TEAM, connected=lambda: None))
        await scene.until(lambda: scene.clock.sleeping)
        assert not health.probe().healthy
        for _ in range(4):
            await scene.until(lambda: scene.clock.sleeping)
            await scene.clock.advance(timedelta(seconds=10))
        await scene.until(lambda: health.probe().healthy)
        task.cancel()
        await asyncio.wait({task})

    waits = [record.wait for record in caplog.records if record.message == "slack_not_reached"]
    assert len(waits) == 4
    assert all(first < second for first, second in itertools.pairwise(waits))


# Two sockets


async def test_of_two_hosts_each_event_reaches_one_and_all_are_heard_once():
    async with opened() as world, slack_channel(world.server, world.clock) as other:
        first = await world.listen()
        world.run(other)
        await world.hears(other)
        for number in range(10):
            world.server.user_says(ALICE_DM, ALICE, f"{number}")
        await world.acked()
        received = [len(one.received) for one in world.server.sockets.open]
        await world.stop(first)
        await world.server.wait_for(lambda: len(world.server.sockets.open) == 1)
        world.server.user_says(ALICE_DM, ALICE, "and on")
        await world.acked()

        assert received == [5, 5]
        assert sorted(world.sink.texts) == sorted([*map(str, range(10)), "and on"])
        assert world.server.sockets.unknown_acks == []


async def test_no_address_of_a_socket_and_no_token_is_logged_c69(caplog):
    caplog.set_level("DEBUG")
    async with opened() as world:
        await world.listen()
        world.server.user_says(ALICE_DM, ALICE, "nobody logs this")
        await world.heard(1)
        world.server.sockets.refresh()
        await world.server.wait_for(lambda: len(world.server.calls_of("apps.connections.open")) == 2)
        await world.acked()

    for secret in (world.server.token, world.server.app_token, "ticket-", "nobody logs this"):
        assert secret not in caplog.text
