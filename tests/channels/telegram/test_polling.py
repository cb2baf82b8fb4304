import asyncio
import logging
from datetime import timedelta

import pytest

from channels.telegram.administrators import Administrators
from channels.telegram.health import PollHealth
from channels.telegram.limits import Timing
from channels.telegram.polling import Poller
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from core.contracts.addresses import EditBody, MigrationBody, ReactionBody
from core.contracts.errors import ChannelDown, StorageFull, StoreUnavailable
from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_json import ALICE, PRIVATE, emoji, reaction
from tests.platforms.telegram_server import TOKEN

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
    assert wanted == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
        "chat_member",
        "message_reaction",
    ]


async def test_a_refused_token_is_down_at_the_start_and_later_c69(world):
    world.server.revoked = True
    with pytest.raises(ChannelDown):
        await world.channel.run(world.sink)
    world.server.revoked = False
    task = world.run()
    await world.polls()
    world.server.revoked = True
    world.server.user_says(111, "x")
    await asyncio.wait({task}, timeout=30)

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
    caplog.set_level(logging.WARNING)
    world.server.updates.webhook_url = "https://example.org/secret-path"
    world.run()
    await world.pass_time(120)
    probe = await world.channel.probe()

    assert not probe.healthy
    assert "a webhook is set for this bot (at example.org)" in probe.detail
    (warning,) = caplog.records
    assert "deleteWebhook" in warning.advice
    assert "secret-path" not in caplog.text + probe.detail
    assert world.server.calls_of("deleteWebhook") == []
    assert len(world.server.calls_of("getWebhookInfo")) == 1
    assert len(offsets(world)) <= 8
    world.server.updates.webhook_url = ""
    await world.pass_time(31)
    await world.polls()
    assert (await world.channel.probe()).healthy


async def test_a_webhook_that_telegram_does_not_describe_is_reported_all_the_same_c74(world):
    world.server.updates.webhook_url = "https://example.org/hook"
    world.server.fail_next("getWebhookInfo", 500)
    world.run()
    await world.until(lambda: world.clock.sleeping)

    assert "a webhook is set for this bot, so" in (await world.channel.probe()).detail


@pytest.mark.parametrize("fault", [Fault.DUPLICATED, Fault.REORDERED])
async def test_a_batch_that_comes_doubled_or_out_of_order_is_accepted_in_order(world, fault):
    for text in ("one", "two", "three"):
        world.server.user_says(111, text)
    world.server.fault("getUpdates", fault)
    world.run()
    await world.polls()

    assert list(dict.fromkeys(world.sink.texts)) == ["one", "two", "three"]
    assert [event.key for event in world.sink.events] == sorted(event.key for event in world.sink.events)
    assert offsets(world) == [None, 5004]


async def test_nothing_behind_an_update_that_was_not_stored_is_confirmed_though_it_came_first(world):
    for text in ("one", "two", "three"):
        world.server.user_says(111, text)
    world.server.fault("getUpdates", Fault.REORDERED)
    world.sink.errors = [StoreUnavailable("locked")]
    world.run()
    await world.until(lambda: world.clock.sleeping)

    assert len(world.server.updates.unconfirmed) == 3
    await world.pass_time(3)
    await world.polls()
    assert world.sink.texts == ["one", "two", "three"]


async def test_what_was_said_during_a_downtime_is_handed_over_in_order_with_its_own_times(world):
    for text in ("first", "second"):
        world.server.user_says(111, text)
        await world.clock.advance(timedelta(hours=11))
    world.run()
    await world.polls()

    first, second = world.sink.events
    assert world.sink.texts == ["first", "second"]
    assert second.sent_at - first.sent_at == timedelta(hours=11)
    assert world.clock.now() - second.sent_at == timedelta(hours=11)


async def test_an_outage_of_more_than_a_day_is_told_when_it_is_over(world):
    world.run()
    await world.polls()
    await world.server.stop()
    await world.until(lambda: not world.server.updates.is_polled and world.clock.sleeping)
    await world.clock.advance(timedelta(hours=26))
    await world.server.start()
    await world.pass_time(31)
    await world.polls()

    probe = await world.channel.probe()
    assert probe.healthy
    assert "Telegram keeps messages for 24 hours only" in probe.detail


async def test_a_connection_on_which_nothing_comes_any_more_is_told_as_deafness(world):
    world.run()
    await world.polls()
    silent = world.server.fault("getUpdates", Fault.HALF_OPEN)
    world.server.user_says(111, "one")
    await silent.entered.wait()
    await world.clock.advance(timedelta(seconds=61))
    probe = await world.channel.probe()

    assert not probe.healthy
    assert "nothing is heard" in probe.detail


async def test_a_wall_clock_that_steps_and_comes_back_stops_nothing(world):
    world.run()
    await world.polls()
    world.clock.step_wall(timedelta(days=-3))
    world.server.user_says(111, "one")
    await world.until(lambda: world.sink.texts == ["one"])
    world.clock.step_wall(timedelta(days=3))
    world.server.user_says(111, "two")
    await world.until(lambda: world.sink.texts == ["one", "two"])

    assert (await world.channel.probe()).healthy


class StumblingApi(BotApi):
    """Has a bug that shows a few times."""

    def __init__(self, token, api_base, mask):
        super().__init__(token, api_base, mask)
        self.bugs = 3

    async def updates(self, offset, *, wait):
        if self.bugs:
            self.bugs -= 1
            raise KeyError("a bug")
        return await super().updates(offset, wait=wait)


async def test_a_poller_that_breaks_goes_on_after_a_pause(world, caplog):
    api, health = StumblingApi(TOKEN, world.server.api_base, lambda text: text), PollHealth(world.clock)
    world.server.user_says(111, "hello")
    asked = Administrators(api, channel="telegram", clock=world.clock, timing=Timing())
    async with PressAnswers(api, world.clock, Timing()) as presses, asked as administrators:
        poller = Poller(
            api,
            name="telegram",
            clock=world.clock,
            timing=Timing(),
            health=health,
            presses=presses,
            administrators=administrators,
        )
        polling = asyncio.create_task(poller.run(world.sink))
        world.tasks.append(polling)
        await world.until(lambda: world.clock.sleeping)
        assert not health.probe().healthy
        await world.pass_time(10)
        await world.until(lambda: world.sink.texts == ["hello"])
        await world.stop(polling)
    await api.aclose()

    assert [record.message for record in caplog.records].count("telegram_poll_crashed") == 3
    assert health.probe().healthy


async def test_edits_previews_and_messages_without_text_break_nothing_c05(world, caplog):
    caplog.set_level(logging.WARNING)
    said = world.server.user_says(111, "see https://example.org/a")
    shown = {"message_id": said, "from": ALICE, "chat": PRIVATE, "date": 1_767_268_800}
    world.server.user_edits(111, said, "see https://example.org/a")
    world.server.push_update({"edited_message": shown | {"reply_markup": {"inline_keyboard": []}, "edit_date": 1}})
    world.server.push_update({"message": shown | {"message_id": 90}})
    world.server.push_update({"message_reaction": reaction(emoji("👀"))})
    world.server.user_says(111, "next")
    world.run()
    await world.polls()

    first, edit, reacted, last = world.sink.events
    assert edit.body == EditBody(message_key=first.key, text="see https://example.org/a")
    assert reacted.body == ReactionBody(message="9", emoji=("👀",))
    assert last.body.text == "next"
    assert caplog.records == []


async def test_a_group_that_becomes_a_supergroup_is_told_as_one_move_c20(world):
    world.server.open_chat(-4001, "group", "Team")
    world.server.migrate(-4001, -1001000000002)
    world.server.user_says(-1001000000002, "here we are", user=111)
    world.run()
    await world.polls()

    moved, again, said = world.sink.events
    assert moved.key == again.key
    assert moved.address.chat == again.address.chat == "-4001"
    assert moved.body == again.body == MigrationBody(chat="-1001000000002")
    assert said.address.chat == "-1001000000002"
