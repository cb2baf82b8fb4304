import asyncio
import logging
from datetime import timedelta

import pytest

from channels.telegram.polling import Backoff
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable

CONFLICT = {"ok": False, "error_code": 409, "description": "Conflict: terminated by other getUpdates request"}


def offsets(world):
    return [call.params.get("offset") for call in world.server.calls_of("getUpdates")]


async def test_an_update_is_confirmed_only_after_it_was_accepted_c04(world):
    entered, may_go = asyncio.Event(), asyncio.Event()

    class SlowSink:
        async def accept(self, event):
            entered.set()
            await may_go.wait()

    world.server.user_says(111, "one")
    world.tasks.append(asyncio.create_task(world.channel.run(SlowSink())))
    await entered.wait()
    assert len(world.server.updates.unconfirmed) == 1
    may_go.set()
    await world.server.wait_for(lambda: not world.server.updates.unconfirmed)

    assert offsets(world) == [None, 5002]


async def test_what_a_killed_process_had_fetched_comes_again_after_the_restart_c04(world):
    for text in ("one", "two", "three"):
        world.server.user_says(111, text)
    world.sink.errors = [StoreUnavailable("killed here")]
    first = world.run()
    await world.until(lambda: not world.sink.errors)
    await world.stop(first)

    async with world.channel_with() as restarted:
        world.run(restarted)
        await world.polls()

    assert world.sink.texts == ["one", "two", "three"]


async def test_an_update_that_was_stored_but_not_confirmed_comes_again_with_the_same_key_c04(world):
    world.server.user_says(111, "/restart")
    gate = None

    class DyingSink:
        async def accept(self, event):
            nonlocal gate
            world.sink.events.append(event)
            gate = world.server.gate_next("getUpdates")

    dying = asyncio.create_task(world.channel.run(DyingSink()))
    await world.until(lambda: gate is not None and gate.entered.is_set())
    await world.stop(dying)
    async with world.channel_with() as restarted:
        world.run(restarted)
        await world.until(lambda: len(world.sink.events) == 2)

    assert world.sink.events[0].key == world.sink.events[1].key


@pytest.mark.parametrize("error", [StorageFull("full"), StoreUnavailable("locked")])
async def test_a_failing_store_stops_confirming_and_retries_slowly(world, error):
    world.sink.errors = [error] * 3
    world.server.user_says(111, "one")
    world.server.user_says(111, "two")
    world.run()
    await world.until(lambda: len(world.sink.errors) == 2)

    assert len(world.server.updates.unconfirmed) == 2
    assert not (await world.channel.probe()).healthy
    await world.pass_time(10)
    await world.polls()
    assert world.sink.texts == ["one", "two"]
    assert (await world.channel.probe()).healthy
    assert len(offsets(world)) <= 6


async def test_what_was_stored_before_the_failure_is_confirmed(world):
    class OnceSink:
        seen = 0

        async def accept(self, event):
            OnceSink.seen += 1
            if OnceSink.seen == 2:
                raise StoreUnavailable("locked")

    for text in ("one", "two", "three"):
        world.server.user_says(111, text)
    world.tasks.append(asyncio.create_task(world.channel.run(OnceSink())))
    await world.polls()

    assert offsets(world) == [None, 5002, 5004]


async def test_malformed_and_unknown_updates_are_skipped_and_confirmed(world, caplog):
    world.server.push_update({"message": {"text": "no chat, no id: \N{SNOWMAN}"}})
    world.server.push_update({"message": "not even an object"})
    world.server.push_update({"shiny_new_update": {}})
    world.server.user_says(111, "fine")
    world.run()
    await world.polls()

    assert world.sink.texts == ["fine"]
    assert offsets(world) == [None, 5005]
    assert [record.message for record in caplog.records].count("telegram_update_malformed") == 2
    assert "\N{SNOWMAN}" not in caplog.text


async def test_an_event_that_breaks_the_host_does_not_stop_the_others(world, caplog):
    world.sink.errors = [RuntimeError("a bug")]
    world.server.user_says(111, "poison")
    world.server.user_says(111, "fine")
    world.run()
    await world.polls()

    assert world.sink.texts == ["fine"]
    assert "telegram_event_crashed" in caplog.text


async def test_wanted_updates_are_named_in_every_poll(world):
    world.run()
    await world.polls()

    wanted = world.server.calls_of("getUpdates")[0].params["allowed_updates"]
    assert wanted == ["message", "edited_message", "callback_query", "my_chat_member"]


async def test_a_refused_token_is_down_at_the_start_and_later_c69(world):
    world.server.revoked = True
    with pytest.raises(ChannelDown):
        await world.channel.run(world.sink)
    world.server.revoked = False
    task = world.run()
    await world.polls()
    world.server.revoked = True
    world.server.user_says(111, "x")
    await asyncio.wait({task}, timeout=5)

    assert isinstance(task.exception(), ChannelDown)
    assert not (await world.channel.probe()).healthy


async def test_an_outage_is_waited_out_with_growing_pauses_and_one_warning(world, caplog):
    world.run()
    await world.polls()
    await world.server.stop()
    world.server.user_says(111, "meanwhile")
    await world.until(lambda: world.clock.sleeping)
    assert not (await world.channel.probe()).healthy
    await world.pass_time(60)
    await world.server.start()
    await world.pass_time(31)
    await world.server.wait_for(lambda: world.server.updates.is_polled and not world.server.updates.unconfirmed)

    assert world.sink.texts == ["meanwhile"]
    assert (await world.channel.probe()).healthy
    messages = [record.message for record in caplog.records]
    assert messages.count("telegram_polling_failed") == 1


async def test_a_host_that_starts_during_an_outage_connects_when_it_is_over(world):
    await world.server.stop()
    world.run()
    await world.until(lambda: world.clock.sleeping)
    await world.server.start()
    await world.pass_time(3)
    await world.polls()

    assert (await world.channel.probe()).healthy


async def test_two_pollers_warn_once_each_and_poll_a_few_times_a_minute_c74(world, caplog):
    async with world.channel_with() as other:
        world.run()
        world.run(other)
        await world.pass_time(60)
        in_first_minute = len(offsets(world))
        await world.pass_time(600)

        assert in_first_minute <= 14
        assert len(offsets(world)) - in_first_minute <= 60
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert [record.message for record in warnings] == ["telegram_poll_conflict"] * 2
        probes = [await world.channel.probe(), await other.probe()]
        assert any("another program polls" in probe.detail for probe in probes)
        await world.stop(world.tasks.pop())
        await world.pass_time(31)
        await world.polls()
        world.server.user_says(111, "alone again")
        await world.until(lambda: world.sink.texts == ["alone again"])
        assert (await world.channel.probe()).healthy


async def test_an_old_process_that_takes_20_seconds_to_stop_is_survived_c74(world):
    world.server.fail_next("getUpdates", 409, CONFLICT, times=1)
    world.run()
    await world.until(lambda: world.clock.sleeping)
    assert not (await world.channel.probe()).healthy
    world.server.user_says(111, "hello")
    await world.pass_time(16)
    await world.polls()

    assert world.sink.texts == ["hello"]
    assert (await world.channel.probe()).healthy


async def test_a_webhook_is_named_and_left_alone_c74(world, caplog):
    world.server.updates.webhook_url = "https://example.org/hook"
    world.run()
    await world.until(lambda: world.clock.sleeping)
    probe = await world.channel.probe()

    assert not probe.healthy
    assert "webhook" in probe.detail
    assert "deleteWebhook" in caplog.records[-1].advice
    assert world.server.calls_of("deleteWebhook") == []


def test_backoff_doubles_to_its_cap_with_a_jitter_and_can_be_reset():
    backoff = Backoff(timedelta(seconds=1), timedelta(seconds=30))
    waits = [backoff.next().total_seconds() for _ in range(20)]

    assert all(0.75 * full <= wait <= full for wait, full in zip(waits, [1, 2, 4, 8, 16, *[30] * 15], strict=True))
    assert len(set(waits[-10:])) > 1
    backoff.reset()
    assert backoff.next() <= timedelta(seconds=1)
