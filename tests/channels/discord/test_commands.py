import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from channels.contract import CommandMenu, MenuScope
from channels.discord.commands import ASK_ABOUT_THIS, CommandPublisher, commands_of
from core.contracts.errors import ChannelDown
from tests.channels.discord.sending import opened
from tests.platforms.discord_commands import MESSAGE
from tests.platforms.discord_guilds import ALICE, BOT, GENERAL
from tests.platforms.telegram_faults import Fault

EVERYBODY = CommandMenu(scope=MenuScope.GROUP, commands=(("stop", "stop what runs"), ("help", "say what there is")))
OWNERS = CommandMenu(
    scope=MenuScope.OWNERS, commands=(("stop", "stop what runs"), ("pair", "let in")), identities=("1",)
)


async def published(world, *menus):
    """Publish menus while time passes as it needs."""
    publisher = CommandPublisher(
        world.api, menus or (EVERYBODY, OWNERS), application=str(BOT), clock=world.clock, timing=world.timing
    )
    await world.in_time(publisher.publish())


@asynccontextmanager
async def publishing(world):
    """Publish for the length of the block."""
    publisher = CommandPublisher(world.api, (EVERYBODY,), application=str(BOT), clock=world.clock, timing=world.timing)
    task = asyncio.create_task(publisher.publish())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


# What is offered


async def test_all_menus_make_one_list_and_every_message_has_a_menu():
    async with opened() as world:
        await published(world)

        assert world.server.commands.names() == ["stop", "help", "pair"]
        assert world.server.commands.names(kind=MESSAGE) == [ASK_ABOUT_THIS]


async def test_a_command_takes_a_text_or_none_in_servers_and_in_private():
    async with opened() as world:
        await published(world)
        dm = world.server.dm(ALICE)

        assert world.server.runs_command(ALICE, GENERAL, "stop").data["options"] == []
        (typed,) = world.server.runs_command(ALICE, dm, "stop", {"text": "all"}).data["options"]
        assert (typed["name"], typed["value"]) == ("text", "all")


def test_the_help_of_a_command_is_cut_to_what_discord_takes():
    menu = CommandMenu(scope=MenuScope.DIRECT, commands=(("a", "x" * 100), ("b", "y" * 101), ("c", " z ")))
    shown = {command["name"]: command["description"] for command in commands_of([menu])}

    assert shown["a"] == "x" * 100
    assert shown["b"] == "y" * 99 + "…"
    assert shown["c"] == "z"


@pytest.mark.parametrize(
    ("name", "text"),
    [("Stop", "words"), ("stop it", "words"), ("", "words"), ("n" * 33, "words"), ("stop", "  "), ("stöp", "words")],
)
def test_what_discord_would_not_take_is_left_out_and_logged(name, text, caplog):
    menu = CommandMenu(scope=MenuScope.DIRECT, commands=((name, text), ("fine", "words")))

    assert [command["name"] for command in commands_of([menu])] == [ASK_ABOUT_THIS, "fine"]
    assert [record.command for record in caplog.records] == [name]


async def test_no_more_commands_are_offered_than_discord_takes(caplog):
    menu = CommandMenu(scope=MenuScope.DIRECT, commands=tuple((f"c{number}", "words") for number in range(102)))
    async with opened() as world:
        await published(world, menu)

        assert world.server.commands.names() == [f"c{number}" for number in range(100)]
        assert caplog.text.count("discord_command_not_offered") == 2


# When it is set


async def test_commands_are_set_once_and_not_again_while_they_are_the_same():
    async with opened() as world:
        await published(world)
        await published(world)
        await published(world, OWNERS, EVERYBODY)

        assert world.server.commands.writes == 1
        assert len(world.server.calls_of("commands")) == 3


@pytest.mark.parametrize(
    "commands",
    [
        (("stop", "stop what runs"),),
        (("stop", "stop what runs"), ("help", "other words")),
        (("stop", "stop what runs"), ("help", "say what there is"), ("new", "begin anew")),
    ],
    ids=["fewer", "other words", "more"],
)
async def test_commands_are_set_again_where_discord_offers_others(commands):
    async with opened() as world:
        await published(world, EVERYBODY)
        await published(world, CommandMenu(scope=MenuScope.DIRECT, commands=commands))

        assert world.server.commands.writes == 2
        assert world.server.commands.names() == [name for name, _ in commands]


async def test_what_somebody_else_made_of_the_commands_is_put_right():
    async with opened() as world:
        await published(world, EVERYBODY)
        world.server.commands.overwrite(BOT, None, [{"name": "stop", "description": "stop what runs"}])
        await published(world, EVERYBODY)

        assert world.server.commands.names() == ["stop", "help"]
        assert world.server.commands.names(kind=MESSAGE) == [ASK_ABOUT_THIS]


# What goes wrong


@pytest.mark.parametrize("route", ["commands", "set_commands"])
@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.LOST_REQUEST])
async def test_what_fails_is_tried_again(route, fault, caplog):
    caplog.set_level(logging.INFO)
    async with opened() as world:
        world.server.fault(route, fault, times=2)
        await published(world, EVERYBODY)

        assert world.server.commands.names() == ["stop", "help"]
        assert caplog.text.count("discord_commands_not_set") == 2
        assert world.server.commands.writes == 1


async def test_commands_whose_setting_was_not_answered_are_looked_at_before_they_are_set_again():
    async with opened() as world:
        world.server.fault("set_commands", Fault.LOST_RESPONSE)
        await published(world, EVERYBODY)

        assert world.server.commands.writes == 1
        assert len(world.server.calls_of("set_commands")) == 1
        assert len(world.server.calls_of("commands")) == 2


async def test_a_refusal_is_tried_again_ever_more_rarely_and_holds_nothing_up():
    async with opened() as world:
        world.server.fail_next("set_commands", 400, times=1_000)
        async with publishing(world) as task:
            for _ in range(24):
                await world.pass_time(3600, step=300)
            tries = len(world.server.calls_of("set_commands"))

            assert not task.done()
            assert 24 < tries < 48


async def test_a_limit_is_kept():
    async with opened() as world:
        world.server.fault("commands", Fault.FLOODED, seconds=120)
        async with publishing(world) as task:
            await world.pass_time(119, step=1)
            assert len(world.server.calls_of("commands")) == 1
            await world.pass_time(2, step=1)
            async with asyncio.timeout(60):
                await task

        assert world.server.commands.writes == 1


async def test_a_token_that_is_refused_ends_it_without_a_word(caplog):
    async with opened() as world:
        world.server.account.revoked = True
        await published(world, EVERYBODY)
        with pytest.raises(ChannelDown):
            await world.api.commands(str(BOT))

        assert world.server.commands.writes == 0
        assert len(world.server.calls_of("commands")) == 2
        assert caplog.text == ""
