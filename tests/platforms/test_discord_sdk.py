"""The real discord.py finds the fake to be what it knows: caches, events, errors, sessions."""

import asyncio
import io
from datetime import timedelta

import aiohttp
import pytest

from core.contracts.clock import FakeClock
from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_account import INTENTS, Intent
from tests.platforms.discord_files import Upload
from tests.platforms.discord_guilds import ALICE, BOB, BOT, FORUM, GENERAL, GUILD, KEEPERS, PRIVATE
from tests.platforms.discord_sdk import Bot, app_commands, discord, pointed_at, running
from tests.platforms.discord_server import DiscordServer
from tests.platforms.telegram_faults import Fault


@pytest.fixture
async def server():
    async with DiscordServer(clock=FakeClock()) as server:
        yield server


@pytest.fixture
async def bot(server):
    async with running(server) as bot:
        yield bot


def view(*custom_ids):
    shown = discord.ui.View(timeout=None)
    for custom_id in custom_ids:
        shown.add_item(discord.ui.Button(label=custom_id.title(), custom_id=custom_id))
    return shown


async def test_the_guild_is_cached_with_all_it_has(bot):
    guild = bot.get_guild(GUILD)
    forum, private = guild.get_channel(FORUM), guild.get_channel(PRIVATE)

    assert (guild.name, guild.me.id, guild.member_count) == ("Lodge", BOT, 4)
    assert [channel.name for channel in guild.text_channels] == ["general", "random", "keepers"]
    assert [tag.name for tag in forum.available_tags] == ["bug", "idea"]
    assert private.overwrites_for(guild.default_role).view_channel is False
    assert private.permissions_for(guild.me).view_channel
    assert guild.self_role.is_bot_managed()
    assert guild.me.guild_permissions.manage_threads
    assert bot.application_flags.gateway_message_content_limited


async def test_what_people_write_is_heard(server, bot):
    first = server.user_says(GENERAL, ALICE, f"<@{BOT}> look", files=[Upload("a.txt", b"hello")])
    message = await bot.hear("message")
    server.user_says(GENERAL, BOB, "I see", reply_to=first)
    reply = await bot.hear("message", 2)
    server.user_says(server.dm(ALICE), ALICE, "psst")
    direct = await bot.hear("message", 3)

    assert (message.author.display_name, message.mentions, message.channel.id) == ("Alice", [message.guild.me], GENERAL)
    assert [role.id for role in message.author.roles] == [GUILD, KEEPERS]
    assert await message.attachments[0].read() == b"hello"
    assert (reply.type, reply.reference.resolved.id) == (discord.MessageType.reply, first)
    assert (direct.guild, direct.content, direct.channel.type) == (None, "psst", discord.ChannelType.private)


async def test_an_edit_has_its_time_and_a_link_that_unfolds_has_none(server, bot):
    hers = server.user_says(GENERAL, ALICE, "a link")
    server.embeds_added(GENERAL, hers)
    unfolded = await bot.hear("raw_message_edit")
    server.user_edits(GENERAL, hers, "two links")
    edited = await bot.hear("raw_message_edit", 2)
    server.user_deletes(GENERAL, hers)

    assert (unfolded.message.edited_at, len(unfolded.message.embeds)) == (None, 1)
    assert (edited.message.content, edited.message.edited_at) == ("two links", server.clock.now())
    assert (await bot.hear("raw_message_delete")).message_id == hers


async def test_reactions_are_heard_and_given(server, bot):
    hers = server.user_says(GENERAL, ALICE, "a")
    message = await bot.hear("message")
    server.user_reacts(GENERAL, hers, BOB, "👍")
    added = await bot.hear("raw_reaction_add")
    await message.add_reaction("🎉")
    await message.remove_reaction("🎉", bot.user)

    assert (added.user_id, str(added.emoji), added.message_id) == (BOB, "👍", hers)
    assert server.visible(GENERAL, everyone=True)[0].reactions == {"👍": [BOB]}


async def test_what_the_bot_writes_is_seen(server, bot):
    channel = bot.get_channel(GENERAL)
    async with channel.typing():
        sent = await channel.send("hello", nonce="n1", allowed_mentions=discord.AllowedMentions.none())
    again = await channel.send("hello", nonce="n1")
    await sent.edit(content="hello!", view=view("go"))
    with_file = await channel.send(file=discord.File(io.BytesIO(b"data"), "a b.txt"))
    await (await (await bot.fetch_user(ALICE)).create_dm()).send("psst")

    assert again.id == sent.id
    assert [message.text for message in server.visible(GENERAL)] == ["hello!", ""]
    assert server.visible(GENERAL)[0].buttons == {"Go": "go"}
    assert (with_file.attachments[0].filename, await with_file.attachments[0].read()) == ("a_b.txt", b"data")
    assert [message.text for message in server.visible(server.dm(ALICE))] == ["psst"]
    assert server.messages.typing[GENERAL]
    await sent.delete()
    assert len(server.visible(GENERAL)) == 1


async def test_a_history_is_read_from_where_the_bot_was(server, bot):
    ids = [server.user_says(GENERAL, ALICE, str(number)) for number in range(120)]
    channel = bot.get_channel(GENERAL)
    missed = [message async for message in channel.history(after=discord.Object(ids[9]), oldest_first=True, limit=None)]

    assert [message.content for message in missed] == [str(number) for number in range(10, 120)]


async def test_refusals_are_the_errors_that_the_sdk_knows(server, bot):
    channel = bot.get_channel(GENERAL)
    with pytest.raises(discord.HTTPException, match=r"In content: Must be 2000 or fewer in length\.") as too_long:
        await channel.send("a" * 2001)
    with pytest.raises(discord.NotFound) as unknown:
        await channel.fetch_message(1)
    server.people.permits(GENERAL, BOT, deny=allowed.SEND_MESSAGES)
    with pytest.raises(discord.Forbidden) as forbidden:
        await channel.send("a")

    assert (too_long.value.status, too_long.value.code) == (400, 50035)
    assert (unknown.value.code, forbidden.value.code) == (10008, 50013)


async def test_a_limit_is_waited_out_as_the_sdk_does(server, bot):
    server.fault("create_message", Fault.FLOODED, seconds=0.01)
    await bot.get_channel(GENERAL).send("hello")

    assert [call.status for call in server.calls_of("create_message")] == [429, 200]


async def test_a_long_limit_is_an_error_where_the_client_is_told_not_to_wait(server):
    with pointed_at(server):
        bot = Bot(server, INTENTS, max_ratelimit_timeout=30)
        async with bot:
            await bot.login(server.token)
            server.fault("channel", Fault.FLOODED, seconds=600)
            with pytest.raises(discord.RateLimited) as limited:
                await bot.fetch_channel(GENERAL)

    assert limited.value.retry_after == 600


async def test_a_press_is_answered_by_a_change_of_its_message(server, bot):
    sent = await bot.get_channel(GENERAL).send("Run it?", view=view("go", "no"))
    press = server.presses(ALICE, GENERAL, sent.id, "go")
    interaction = await bot.next_interaction()
    await interaction.response.edit_message(content="Approved", view=None)
    await interaction.followup.send("noted", ephemeral=True)

    assert (interaction.user.id, interaction.data["custom_id"], interaction.message.id) == (ALICE, "go", sent.id)
    assert (server.visible(GENERAL)[0].text, server.visible(GENERAL)[0].buttons) == ("Approved", {})
    assert (press.texts, press.failed) == (["noted"], False)


async def test_a_button_from_before_a_restart_still_works(server):
    async with running(server) as before:
        sent = await before.get_channel(GENERAL).send("Run it?", view=view("go"))
    await server.wait_for(lambda: not server.gateway.is_live)
    unheard = server.presses(ALICE, GENERAL, sent.id, "go")
    await server.clock.advance(timedelta(seconds=4))
    assert unheard.failed
    async with running(server) as after:
        press = server.presses(ALICE, GENERAL, sent.id, "go")
        interaction = await after.next_interaction()
        await interaction.response.defer()
        await interaction.edit_original_response(content="Approved")

        assert not after.all_of("message")
    assert (server.visible(GENERAL)[0].text, press.failed) == ("Approved", False)


async def test_a_modal_is_opened_by_a_press_and_answered(server, bot):
    sent = await bot.get_channel(GENERAL).send("Run it?", view=view("no"))
    press = server.presses(ALICE, GENERAL, sent.id, "no")
    modal = discord.ui.Modal(title="Why not?", custom_id="reason:1", timeout=None)
    modal.add_item(discord.ui.TextInput(label="Reason", custom_id="why"))
    await (await bot.next_interaction()).response.send_modal(modal)
    server.submits_modal(press, {"why": "too risky"})
    submitted = await bot.next_interaction()
    await submitted.response.edit_message(content="Denied", view=None)

    assert submitted.type is discord.InteractionType.modal_submit
    assert submitted.data["custom_id"] == "reason:1"
    assert submitted.data["components"][0]["components"][0]["value"] == "too risky"
    assert server.visible(GENERAL)[0].text == "Denied"


async def test_a_late_answer_and_a_second_one_fail(server, bot):
    sent = await bot.get_channel(GENERAL).send("Run it?", view=view("go"))
    server.presses(ALICE, GENERAL, sent.id, "go")
    late = await bot.next_interaction()
    await server.clock.advance(timedelta(seconds=4))
    with pytest.raises(discord.NotFound) as unknown:
        await late.response.defer()
    press = server.presses(ALICE, GENERAL, sent.id, "go")
    first = await bot.next_interaction()
    server.fault("callback", Fault.LOST_RESPONSE)
    with pytest.raises(aiohttp.ClientConnectionError):
        await first.response.defer()
    with pytest.raises(discord.HTTPException) as twice:
        await first.response.defer()

    assert (unknown.value.code, twice.value.code, press.failed) == (10062, 40060, False)


async def test_commands_are_synced_called_and_answered(server, bot):
    @bot.tree.command(description="Keep something")
    async def remember(interaction: discord.Interaction, what: str):
        await interaction.response.send_message(f"kept {what}", ephemeral=True)

    @bot.tree.context_menu(name="Ask about this")
    async def ask(interaction: discord.Interaction, message: discord.Message):
        await interaction.response.defer(thinking=True)
        await interaction.followup.send(f"about {message.content}")

    synced = await bot.tree.sync()
    kept = server.runs_command(ALICE, GENERAL, "remember", {"what": "milk"})
    await server.wait_for(lambda: kept.texts)
    his = server.user_says(GENERAL, BOB, "words")
    asked = server.uses_message_command(ALICE, GENERAL, "Ask about this", his)
    await server.wait_for(lambda: asked.texts)

    assert [command.name for command in synced] == ["remember", "Ask about this"]
    assert isinstance(synced[0], app_commands.AppCommand)
    assert (kept.texts, kept.is_private) == (["kept milk"], True)
    assert [message.text for message in server.visible(GENERAL)] == asked.texts == ["about words"]


async def test_threads_and_posts_are_opened_and_heard(server, bot):
    sent = await bot.get_channel(GENERAL).send("topic")
    thread = await sent.create_thread(name="Talk", auto_archive_duration=60)
    await thread.send("inside")
    server.user_says(thread.id, ALICE, "me too")
    said = await bot.hear("message", 4)
    post = await bot.get_channel(FORUM).create_thread(name="How?", content="Like this")
    asked = server.posts_in_forum(FORUM, BOB, "Broken", "help")
    await bot.hear("thread_create", 3)

    assert (thread.id, thread.parent_id, thread.auto_archive_duration) == (sent.id, GENERAL, 60)
    assert (said.channel, said.content) == (thread, "me too")
    assert post.message.id == post.thread.id
    assert bot.get_channel(asked).parent.id == FORUM
    with pytest.raises(discord.HTTPException) as exists:
        await sent.create_thread(name="Again")
    server.archives_thread(thread.id)
    await bot.hear("raw_thread_update")
    with pytest.raises(discord.HTTPException) as archived:
        await server_message(bot, thread.id).edit(content="x")
    assert (exists.value.code, archived.value.code) == (160004, 50083)
    assert bot.get_channel(thread.id) is None


def server_message(bot, thread_id):
    """Return the bot's own message in a thread as the SDK keeps it."""
    return next(m for m in bot.cached_messages if m.channel.id == thread_id and m.content == "inside")


async def test_guilds_are_left_and_joined(server, bot):
    server.removes_bot(GUILD)
    assert (await bot.hear("guild_remove")).id == GUILD
    server.adds_bot(9900, "Elsewhere")
    joined = await bot.hear("guild_join")
    server.user_says(9901, BOB, "welcome")

    assert (joined.name, (await bot.hear("message")).guild) == ("Elsewhere", joined)
    await joined.leave()
    await bot.hear("guild_remove", 2)
    assert list(bot.guilds) == []


@pytest.mark.parametrize("how", ["cut", "ask_reconnect", "close", "invalidate"])
async def test_a_session_goes_on_after_a_break_with_what_was_missed(server, bot, how):
    if how == "invalidate":
        server.gateway.invalidate(resumable=True)
    else:
        getattr(server.gateway, how)()
    server.user_says(GENERAL, ALICE, "meanwhile")
    await bot.hear("resumed")
    server.user_says(GENERAL, ALICE, "afterwards")
    await bot.hear("message", 2)

    assert [message.content for message in bot.all_of("message")] == ["meanwhile", "afterwards"]
    assert (len(server.gateway.identifies), len(server.gateway.resumes)) == (1, 1)


async def test_a_gateway_that_fell_silent_is_noticed_and_the_session_resumed(server):
    server.gateway.heartbeat_interval = timedelta(milliseconds=50)
    async with running(server, heartbeat_timeout=0.3) as bot:
        server.gateway.fall_silent()
        server.user_says(GENERAL, ALICE, "meanwhile")
        await bot.hear("resumed")

        assert [message.content for message in bot.all_of("message")] == ["meanwhile"]
    assert server.gateway.heartbeats > 1


async def test_after_a_restart_nothing_is_replayed_and_the_history_has_it(server):
    async with running(server):
        last = server.user_says(GENERAL, ALICE, "before")
    await server.wait_for(lambda: not server.gateway.is_live)
    missed = server.user_says(GENERAL, ALICE, "meanwhile")
    async with running(server) as bot:
        found = [message.id async for message in bot.get_channel(GENERAL).history(after=discord.Object(last))]

        assert (bot.all_of("message"), found) == ([], [missed])


async def test_an_intent_that_is_not_switched_on_is_refused(server):
    with pointed_at(server):
        bot = Bot(server, INTENTS | Intent.GUILD_MEMBERS)
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await bot.start(server.token)
        await bot.close()

    assert server.gateway.identifies[0]["intents"] == INTENTS | Intent.GUILD_MEMBERS


async def test_a_wrong_token_is_refused(server):
    with pointed_at(server):
        bot = Bot(server, INTENTS)
        with pytest.raises(discord.LoginFailure):
            await bot.login("wrong")
        await bot.close()


async def test_members_are_cached_with_the_intent_for_them(server):
    server.account.privileged |= Intent.GUILD_MEMBERS
    async with running(server, intents=INTENTS | Intent.GUILD_MEMBERS) as bot:
        server.people.gives_roles(GUILD, BOB, KEEPERS)
        await bot.hear("member_update")

        assert [role.id for role in bot.get_guild(GUILD).get_member(BOB).roles] == [GUILD, KEEPERS]


async def test_events_that_come_twice_or_late_are_handed_on_as_they_come(server, bot):
    server.fault("MESSAGE_CREATE", Fault.DUPLICATED)
    server.fault("MESSAGE_CREATE", Fault.REORDERED)
    for text in ("one", "two", "three"):
        server.user_says(GENERAL, ALICE, text)
    await bot.hear("message", 4)
    await asyncio.sleep(0)

    assert [message.content for message in bot.all_of("message")] == ["one", "one", "three", "two"]
