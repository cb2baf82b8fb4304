"""The menus of commands, as the platform then offers them."""

import asyncio
from datetime import timedelta

import pytest

from channels.contract import CommandMenu, MenuScope
from tests.platforms.telegram_faults import Fault

HELP = (("help", "What I can do"), ("cancel", "Stop what runs"))
DIRECT = CommandMenu(scope=MenuScope.DIRECT, commands=HELP)
GROUP = CommandMenu(scope=MenuScope.GROUP, commands=HELP[:1])
OWNERS = CommandMenu(
    scope=MenuScope.OWNERS,
    commands=(*HELP, ("pair", "Let somebody in")),
    identities=("telegram:111", "slack:U0ALICE", "telegram:alice"),
)


async def running(world, *menus):
    channel = world.channel_with(menus=menus)
    task = world.run(channel)
    await world.server.wait_for(lambda: world.server.updates.is_polled)
    return channel, task


async def stopped(world, channel, task):
    await world.stop(task)
    await channel.__aexit__(None, None, None)


async def test_each_place_offers_its_own_menu(world):
    run = await running(world, DIRECT, GROUP, OWNERS)
    await world.server.wait_for(lambda: world.server.menus.shown("chat", 111))
    shown = [world.server.menus.shown(scope) for scope in ("all_private_chats", "all_group_chats", "default")]
    owners = world.server.menus.shown("chat", 111)
    await stopped(world, *run)

    assert shown == [dict(HELP), dict(HELP[:1]), {}]
    assert list(owners) == ["help", "cancel", "pair"]
    assert len(world.server.calls_of("setMyCommands")) == 3


async def test_a_menu_that_is_offered_already_is_not_set_again(world):
    for menu in (DIRECT, DIRECT, CommandMenu(scope=MenuScope.DIRECT, commands=HELP[::-1])):
        asked = len(world.server.calls_of("getMyCommands"))
        run = await running(world, menu)
        await world.server.wait_for(lambda asked=asked: len(world.server.calls_of("getMyCommands")) > asked)
        expected = dict(menu.commands)
        await world.server.wait_for(lambda expected=expected: world.server.menus.shown("all_private_chats") == expected)
        await stopped(world, *run)

    assert len(world.server.calls_of("setMyCommands")) == 2
    assert list(world.server.menus.shown("all_private_chats")) == ["cancel", "help"]


@pytest.mark.parametrize("method", ["getMyCommands", "setMyCommands"])
async def test_a_menu_that_could_not_be_set_is_tried_again_while_messages_come(world, method):
    world.server.fail_next(method, 500, times=2)
    world.server.fault(method, Fault.LOST_REQUEST)
    run = await running(world, DIRECT)
    await world.server.wait_for(lambda: len(world.server.calls_of(method)) == 1)
    world.server.user_says(111, "hello")
    await world.until(lambda: world.sink.texts == ["hello"])
    await world.pass_time(60, step=5)
    await world.server.wait_for(lambda: world.server.menus.shown("all_private_chats"))
    await stopped(world, *run)

    assert len(world.server.calls_of(method)) == 4


async def test_a_flood_wait_is_waited_out(world):
    world.server.fault("setMyCommands", Fault.FLOODED, seconds=100)
    run = await running(world, DIRECT)
    await world.server.wait_for(lambda: len(world.server.calls_of("setMyCommands")) == 1)
    await world.pass_time(95, step=5)
    assert len(world.server.calls_of("setMyCommands")) == 1
    await world.pass_time(10, step=5)
    await world.server.wait_for(lambda: world.server.menus.shown("all_private_chats"))
    await stopped(world, *run)


async def test_an_owner_who_has_not_written_yet_gets_the_menu_afterwards_and_costs_few_calls(world):
    menu = CommandMenu(scope=MenuScope.OWNERS, commands=HELP, identities=("telegram:333",))
    run = await running(world, menu)
    await world.server.wait_for(lambda: len(world.server.calls_of("getMyCommands")) == 1)
    await world.pass_time(3600, step=60)
    world.server.open_chat(333)
    await world.pass_time(2 * 3600, step=60)
    await stopped(world, *run)

    assert world.server.menus.shown("chat", 333) == dict(HELP)
    assert len(world.server.calls_of("getMyCommands")) < 20


async def test_what_telegram_does_not_take_is_left_out_or_cut(world, caplog):
    commands = (("no-dash", "x"), ("Upper", "x"), ("x" * 33, "x"), ("blank", " "), ("long", "y" * 300), ("fits", "z"))
    many = tuple((f"c{number}", "x") for number in range(120))
    run = await running(world, CommandMenu(scope=MenuScope.DIRECT, commands=commands + many))
    await world.server.wait_for(lambda: world.server.menus.shown("all_private_chats"))
    shown = world.server.menus.shown("all_private_chats")
    await stopped(world, *run)

    assert list(shown)[:3] == ["long", "fits", "c0"]
    assert (len(shown), shown["long"]) == (100, "y" * 255 + "…")
    assert "telegram_command_not_offered" in caplog.text


async def test_a_refused_token_ends_the_menus_and_is_told_by_run_alone(world):
    world.server.revoked = True
    channel = world.channel_with(menus=(DIRECT,))
    task = world.run(channel)
    await asyncio.wait({task}, timeout=30)
    await world.clock.advance(timedelta(hours=1))
    await channel.__aexit__(None, None, None)

    assert type(task.exception()).__name__ == "ChannelDown"
    assert len(world.server.calls_of("getMyCommands")) <= 1
