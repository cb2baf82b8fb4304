"""The fake is held to what Discord documents of commands, by plain HTTP."""

from datetime import timedelta

import pytest

from tests.platforms.discord_commands import MESSAGE
from tests.platforms.discord_guilds import ALICE, BOB, BOT, GENERAL, GUILD

pytest_plugins = ["tests.platforms.discord_client"]

EVERYWHERE = f"/applications/{BOT}/commands"
HERE = f"/applications/{BOT}/guilds/{GUILD}/commands"
WHAT = {"type": 3, "name": "what", "description": "What to keep", "required": True}


def command(name="remember", **more):
    return {"name": name, "description": "Keep something", **more}


async def test_all_commands_are_set_at_once_and_keep_their_ids(discord):
    first = await discord.result("PUT", EVERYWHERE, [command(), command("forget")])
    second = await discord.result("PUT", EVERYWHERE, [command(description="Other"), command("status")])

    assert [offered["name"] for offered in await discord.result("GET", EVERYWHERE)] == ["remember", "status"]
    assert second[0]["id"] == first[0]["id"]
    assert second[1]["id"] not in {offered["id"] for offered in first}
    assert (discord.server.commands.names(), discord.server.commands.writes) == (["remember", "status"], 2)


async def test_a_guild_has_commands_of_its_own(discord):
    await discord.result("PUT", HERE, [command("local")])

    assert (discord.server.commands.names(GUILD), discord.server.commands.names()) == (["local"], [])
    assert await discord.refused("PUT", f"/applications/{BOT}/guilds/1/commands", []) == (404, 10004)
    assert await discord.refused("PUT", "/applications/1/commands", []) == (403, 20012)


@pytest.mark.parametrize(
    ("commands", "field"),
    [
        ([command("Remember")], "0.name"),
        ([command("two words")], "0.name"),
        ([command("n" * 33)], "0.name"),
        ([command(description="")], "0.description"),
        ([command(description="d" * 101)], "0.description"),
        ([command(options=[WHAT | {"name": "What"}])], "0.options.0.name"),
        ([command(options=[WHAT | {"name": f"o{n}"} for n in range(26)])], "0.options"),
        ([command(options=[WHAT | {"required": False}, WHAT | {"name": "more"}])], "0.options"),
        ([command(), command()], ""),
        ([{"name": "Ask", "type": MESSAGE, "description": "no"}], "0.description"),
        ([{"name": "n" * 33, "type": MESSAGE}], "0.name"),
    ],
)
async def test_a_command_that_is_not_as_it_should_be_is_refused(discord, commands, field):
    assert (await discord.wrong_field("PUT", EVERYWHERE, commands))[0] == field
    assert discord.server.commands.all_of() == []


async def test_a_hundred_commands_are_taken_and_no_more(discord):
    many = [command(f"c{number}") for number in range(101)]
    assert await discord.refused("PUT", EVERYWHERE, many) == (400, 30032)

    assert len(await discord.result("PUT", EVERYWHERE, many[:100])) == 100


async def test_new_commands_are_counted_by_the_day(discord):
    for start in (0, 100):
        await discord.result("PUT", EVERYWHERE, [command(f"c{number}") for number in range(start, start + 100)])
    await discord.result("PUT", EVERYWHERE, [command(f"c{number}", description="d") for number in range(100, 200)])
    assert await discord.refused("PUT", EVERYWHERE, [command("another")]) == (400, 30034)
    await discord.server.clock.advance(timedelta(days=1))

    assert await discord.result("PUT", EVERYWHERE, [command("another")])


async def test_a_call_carries_its_options(discord):
    nested = [{"type": 1, "name": "add", "description": "Add", "options": [WHAT]}]
    await discord.result("PUT", EVERYWHERE, [command(options=[WHAT]), command("memory", options=nested)])
    async with discord.listening() as listener:
        discord.server.runs_command(ALICE, GENERAL, "remember", {"what": "milk"})
        discord.server.runs_command(ALICE, discord.server.dm(ALICE), "memory add", {"what": "tea"})
        (_, plain), (_, inner) = await listener.events(2)

    assert (plain["type"], plain["data"]["name"]) == (2, "remember")
    assert plain["data"]["options"] == [{"name": "what", "type": 3, "value": "milk"}]
    [group] = inner["data"]["options"]
    assert (group["name"], group["options"]) == ("add", [{"name": "what", "type": 3, "value": "tea"}])


async def test_a_command_of_a_messages_menu_carries_the_message(discord):
    await discord.result("PUT", EVERYWHERE, [{"name": "Ask about this", "type": MESSAGE}])
    his = discord.server.user_says(GENERAL, BOB, "words")
    async with discord.listening() as listener:
        interaction = discord.server.uses_message_command(ALICE, GENERAL, "Ask about this", his)
        shown = await listener.event("INTERACTION_CREATE")

    assert (shown["data"]["type"], shown["data"]["target_id"]) == (3, str(his))
    assert shown["data"]["resolved"]["messages"][str(his)]["content"] == "words"
    body = {"type": 4, "data": {"content": "about words"}}
    await discord.result("POST", f"/interactions/{interaction.id}/{interaction.token}/callback", body, token=None)
    [answer] = discord.server.visible(GENERAL)
    assert (answer.kind, answer.reply_to, interaction.texts) == (23, (GENERAL, his), ["about words"])


async def test_only_what_is_offered_can_be_called(discord):
    await discord.result("PUT", EVERYWHERE, [command(options=[WHAT]), command("here", contexts=[0])])
    for name, options in (("forget", {}), ("remember", {}), ("remember", {"what": "a", "other": "b"})):
        with pytest.raises(AssertionError):
            discord.server.runs_command(ALICE, GENERAL, name, options)
    with pytest.raises(AssertionError):
        discord.server.runs_command(ALICE, discord.server.dm(ALICE), "here")

    assert discord.server.runs_command(ALICE, GENERAL, "here").data["name"] == "here"
