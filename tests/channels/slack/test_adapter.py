import asyncio

import pytest

from channels.contract import TextUnit
from core.contracts.errors import ChannelDown, StoreUnavailable
from tests.channels.slack.taking import opened, place, posted_to, slack_channel
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import APP_TOKEN, TOKEN
from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM


async def diagnosis(channel):
    return {finding.name: finding for finding in await channel.diagnose()}


async def test_what_it_can_is_said_before_it_is_connected():
    async with opened() as world:
        can = world.channel.capabilities

        assert world.channel.name == "slack"
        assert (can.text_limit, can.text_unit) == (3800, TextUnit.BYTES)
        assert all((can.edits, can.buttons, can.lookup, can.files, can.reactions, can.removals, can.forms))
        assert can.is_installed
        assert world.server.calls == []


async def test_it_listens_until_it_is_cancelled():
    async with opened() as world:
        assert not (await world.channel.probe()).healthy
        task = await world.listen()
        world.server.user_says(ALICE_DM, ALICE, "hello")
        (event,) = await world.heard(1)
        await world.acked()
        await world.stop(task)

        assert task.cancelled()
        assert not (await world.channel.probe()).healthy
        assert event.body.text == "hello"
        await world.server.wait_for(lambda: not world.server.sockets.open)


async def test_it_can_listen_again_and_hears_what_came_between():
    async with opened() as world:
        await world.stop(await world.listen())
        world.server.user_says(ALICE_DM, ALICE, "meanwhile")
        await world.listen()
        world.server.user_says(ALICE_DM, ALICE, "again")
        await world.heard(2)

        assert world.sink.texts == ["meanwhile", "again"]


async def test_nothing_of_it_runs_when_it_was_cancelled():
    async with opened() as world:
        before = asyncio.all_tasks()
        task = await world.listen()
        world.server.user_says(ROOM, ALICE, "<@U0BOT> hello")
        await world.heard(1)
        await world.acked()
        await world.stop(task)
        ours = {one for one in asyncio.all_tasks() - before if "slack_sdk" in repr(one) or "slack-" in one.get_name()}

        assert ours == set()


@pytest.mark.parametrize("word", ["invalid_auth", "token_revoked", "account_inactive"])
async def test_a_token_that_is_refused_ends_it_for_good(word):
    async with opened() as world:
        world.server.revoke(word)
        with pytest.raises(ChannelDown) as refused:
            await world.channel.run(world.sink)

        assert word in str(refused.value)
        assert TOKEN not in str(refused.value)
        assert len(world.server.calls_of("auth.test")) == 1
        assert not (await world.channel.probe()).healthy


@pytest.mark.parametrize("word", ["invalid_auth", "not_allowed_token_type"])
async def test_an_app_token_that_is_refused_ends_it_for_good(word):
    async with opened() as world:
        world.server.refuse_next("apps.connections.open", word)
        with pytest.raises(ChannelDown) as refused:
            await world.channel.run(world.sink)

        assert word in str(refused.value)
        assert APP_TOKEN not in str(refused.value)


async def test_the_bots_token_is_told_to_be_taken_back_and_that_ends_it_for_good():
    async with opened() as world:
        task = await world.listen()
        world.server.deliver({"type": "tokens_revoked", "tokens": {"oauth": [], "bot": ["U0BOT"]}})
        with pytest.raises(ChannelDown, match="took the app's token back"):
            await asyncio.wait_for(task, 30)

        assert not (await world.channel.probe()).healthy


async def test_an_app_that_is_uninstalled_is_ended_for_good_over_http_too():
    async with posted_to() as (world, url):
        task = await world.listen()
        world.server.posts.url = url
        world.server.deliver({"type": "app_uninstalled"})
        with pytest.raises(ChannelDown, match="took the app's token back"):
            await asyncio.wait_for(task, 30)


async def test_a_person_who_takes_their_own_token_back_ends_nothing():
    async with opened() as world:
        await world.listen()
        world.server.deliver({"type": "tokens_revoked", "tokens": {"oauth": ["U0ALICE"], "bot": []}})
        await world.acked()
        world.server.user_says(ALICE_DM, ALICE, "still there?")
        await world.heard(1)

        assert (await world.channel.probe()).healthy


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_slack_that_does_not_answer_at_first_is_asked_again(fault, caplog):
    async with opened() as world:
        world.server.fault("auth.test", fault, times=2)
        world.run()
        await world.server.wait_for(lambda: world.server.calls_of("auth.test"))
        await world.until(lambda: world.clock.sleeping)
        probe = await world.channel.probe()
        await world.pass_time(5)
        await world.hears()

        assert not probe.healthy
        assert len(world.server.calls_of("auth.test")) == 3
        assert caplog.text.count("slack_not_reached") == 2


async def test_a_limit_at_the_start_is_kept():
    async with opened() as world:
        world.server.fault("auth.test", Fault.FLOODED, seconds=20)
        world.run()
        await world.until(lambda: world.clock.sleeping)
        await world.pass_time(19)
        assert len(world.server.calls_of("auth.test")) == 1
        await world.pass_time(2)
        await world.hears()


async def test_a_store_that_fails_turns_the_probe_red_until_it_works():
    async with opened() as world:
        await world.listen()
        world.sink.errors = [StoreUnavailable("locked")]
        world.server.user_says(ALICE_DM, ALICE, "hello")
        await world.until(lambda: world.sink.refused)
        await world.hears(well=False)
        red = await world.channel.probe()
        world.server.redeliver()
        await world.heard(1)
        await world.hears()

        assert "cannot be stored" in red.detail


async def test_it_diagnoses_itself_without_being_connected():
    async with opened() as world:
        found = await diagnosis(world.channel)

        assert "not listening" in found["receiving"].detail
        assert "sockets" not in found
        assert world.server.sockets.open == []


async def test_it_diagnoses_what_it_hears_and_that_it_is_alone():
    async with opened() as world:
        await world.listen()
        found = await diagnosis(world.channel)

        assert found["receiving"].ok
        assert found["receiving"].detail == "connected"
        assert (found["sockets"].ok, found["sockets"].detail[:1]) == (True, "1")


async def test_another_program_on_the_same_app_is_noticed():
    async with opened() as world, slack_channel(world.server, world.clock) as other:
        await world.listen()
        world.run(other)
        await world.hears(other)
        found = await diagnosis(other)

        assert not found["sockets"].ok
        assert "2 of at most 10" in found["sockets"].detail
        assert found["sockets"].fix


async def test_over_http_there_are_no_sockets_to_count():
    async with posted_to() as (world, _):
        await world.listen()
        found = await diagnosis(world.channel)

        assert found["receiving"].ok
        assert {"socket", "sockets"}.isdisjoint(found)
        assert world.server.calls_of("apps.connections.open") == []


async def test_it_is_called_over_http_or_opens_a_socket_never_both():
    async with opened() as by_socket, posted_to() as (by_http, _):
        assert by_socket.channel.webhook is None
        assert by_http.channel.webhook is not None


async def test_it_sends_without_listening_and_after_it_stopped():
    async with opened() as world:
        await world.channel.leave(place(ROOM))
        await world.stop(await world.listen())
        await world.channel.leave(place(ROOM))

        assert len(world.server.calls_of("conversations.leave")) == 2
