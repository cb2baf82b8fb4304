"""The fake is held to what Discord documents of its gateway, by plain websockets."""

from datetime import timedelta

import aiohttp
import pytest

from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_account import INTENTS, Intent
from tests.platforms.discord_gateway import Close, Op
from tests.platforms.discord_guilds import ALICE, BOB, BOT, GENERAL, GUESTS, GUILD, KEEPERS, PRIVATE
from tests.platforms.telegram_faults import Fault

pytest_plugins = ["tests.platforms.discord_client"]


async def test_a_session_begins_with_who_and_where_the_bot_is(discord):
    async with discord.connected() as listener:
        ready = await listener.identify()
        guild = await listener.event("GUILD_CREATE")

    assert (ready["user"]["id"], ready["guilds"]) == (str(BOT), [{"id": str(GUILD), "unavailable": True}])
    assert ready["resume_gateway_url"] == f"{discord.server.gateway_url}-resume"
    assert [role["id"] for role in guild["roles"]] == [str(GUILD), str(KEEPERS), str(GUESTS), "9200"]
    assert {channel["name"]: channel["type"] for channel in guild["channels"]} == {
        "general": 0,
        "random": 0,
        "keepers": 0,
        "questions": 15,
    }
    assert [member["user"]["id"] for member in guild["members"]] == [str(BOT)]
    assert discord.server.gateway.identifies[0]["intents"] == INTENTS


async def test_a_heartbeat_is_acknowledged_unless_the_gateway_fell_silent(discord):
    async with discord.listening() as listener:
        await listener.send(Op.HEARTBEAT, listener.number)
        assert (await listener.frame())["op"] == Op.HEARTBEAT_ACK
        discord.server.gateway.fall_silent()
        await listener.send(Op.HEARTBEAT, listener.number)
        await discord.server.wait_for(lambda: discord.server.gateway.heartbeats == 2)

        assert not discord.server.gateway.is_live
        assert not listener.socket.closed


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"token": "wrong"}, Close.AUTHENTICATION_FAILED),
        ({"intents": INTENTS | Intent.GUILD_MEMBERS}, Close.DISALLOWED_INTENTS),
        ({"intents": 1 << 40}, Close.INVALID_INTENTS),
    ],
)
async def test_who_may_not_listen_is_sent_away_with_a_code(discord, data, code):
    async with discord.connected() as listener:
        asked = {"token": discord.server.token, "intents": INTENTS, "properties": {}}
        await listener.send(Op.IDENTIFY, asked | data)

        assert await listener.closed() == code


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("no json", Close.DECODE_ERROR),
        ('{"op": 99}', Close.UNKNOWN_OPCODE),
        ('{"op": 8, "d": {}}', Close.NOT_AUTHENTICATED),
    ],
)
async def test_what_cannot_be_understood_ends_the_websocket(discord, frame, code):
    async with discord.connected() as listener:
        await listener.socket.send_str(frame)

        assert await listener.closed() == code


async def test_a_second_identify_ends_the_websocket(discord):
    async with discord.listening() as listener:
        await listener.send(Op.IDENTIFY, {"token": discord.server.token, "intents": INTENTS})

        assert await listener.closed() == Close.ALREADY_AUTHENTICATED


async def test_an_intent_that_the_portal_allows_may_be_asked_for(discord):
    discord.server.account.privileged |= Intent.GUILD_MEMBERS
    async with discord.listening(INTENTS | Intent.GUILD_MEMBERS) as listener:
        discord.server.people.gives_roles(GUILD, BOB, KEEPERS)
        update = await listener.event("GUILD_MEMBER_UPDATE")

    assert (update["user"]["id"], update["roles"]) == (str(BOB), [str(KEEPERS)])


async def test_events_come_only_with_their_intents(discord):
    async with discord.listening(Intent.GUILDS | Intent.GUILD_MESSAGES) as listener:
        discord.server.user_says(discord.server.dm(ALICE), ALICE, "direct")
        hers = discord.server.user_says(GENERAL, ALICE, "in the guild")
        discord.server.user_reacts(GENERAL, hers, BOB, "👍")
        discord.server.people.gives_roles(GUILD, BOB, KEEPERS)
        discord.server.people.gives_roles(GUILD, BOT, 9200, KEEPERS)
        discord.server.user_deletes(GENERAL, hers)
        names = [name for name, _ in await listener.events(3)]

    assert names == ["MESSAGE_CREATE", "GUILD_MEMBER_UPDATE", "MESSAGE_DELETE"]


async def test_without_the_content_intent_a_message_is_hollow_unless_it_concerns_the_bot(discord):
    async with discord.listening(INTENTS & ~Intent.MESSAGE_CONTENT) as listener:
        row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
        discord.server.user_says(GENERAL, ALICE, "secret", embeds=[{"title": "t"}])
        discord.server.user_says(GENERAL, ALICE, f"<@{BOT}> for you")
        await discord.says(GENERAL, "own", components=[row])
        discord.server.user_says(discord.server.dm(ALICE), ALICE, "direct")
        hollow, mention, own, direct = [shown for _, shown in await listener.events(4)]

    assert [hollow[part] for part in ("content", "embeds", "attachments", "components")] == ["", [], [], []]
    assert [shown["content"] for shown in (mention, own, direct)] == [f"<@{BOT}> for you", "own", "direct"]
    assert own["components"][0]["components"][0]["custom_id"] == "go"


async def test_a_message_tells_of_its_author_as_a_member_and_whom_it_mentions(discord):
    async with discord.listening() as listener:
        discord.server.user_says(GENERAL, ALICE, f"<@{BOT}> and <@{BOB}>")
        shown = await listener.event("MESSAGE_CREATE")

    assert (shown["guild_id"], shown["author"]["id"]) == (str(GUILD), str(ALICE))
    assert shown["member"]["roles"] == [str(KEEPERS)]
    assert [(user["id"], "member" in user) for user in shown["mentions"]] == [(str(BOT), True), (str(BOB), True)]


async def test_changes_of_messages_and_reactions_are_told(discord):
    async with discord.listening() as listener:
        hers = discord.server.user_says(GENERAL, ALICE, "a link")
        discord.server.user_edits(GENERAL, hers, "two links")
        discord.server.embeds_added(GENERAL, hers)
        discord.server.user_reacts(GENERAL, hers, BOB, "👍")
        discord.server.people.unreacts(GENERAL, hers, BOB, "👍")
        discord.server.user_deletes(GENERAL, hers)
        (_, created), (_, edited), (_, linked), (_, added), (removed, _), (_, deleted) = await listener.events(6)

    assert created["edited_timestamp"] is None
    assert (edited["content"], edited["edited_timestamp"] is None) == ("two links", False)
    assert (linked["content"], linked["edited_timestamp"]) == ("two links", edited["edited_timestamp"])
    assert (edited["embeds"], len(linked["embeds"])) == ([], 1)
    assert (added["user_id"], added["emoji"]["name"], removed) == (str(BOB), "👍", "MESSAGE_REACTION_REMOVE")
    assert deleted == {"id": str(hers), "channel_id": str(GENERAL), "guild_id": str(GUILD)}


async def test_a_link_that_unfolds_is_no_edit(discord):
    async with discord.listening() as listener:
        hers = discord.server.user_says(GENERAL, ALICE, "a link")
        discord.server.embeds_added(GENERAL, hers)
        (_, created), (name, linked) = await listener.events(2)

    changed = {field for field in linked if linked[field] != created[field]}
    assert (name, changed, linked["edited_timestamp"]) == ("MESSAGE_UPDATE", {"embeds"}, None)


async def test_a_channel_that_the_bot_cannot_see_is_silent(discord):
    async with discord.listening() as listener:
        discord.server.user_says(PRIVATE, ALICE, "heard")
        discord.server.people.permits(PRIVATE, BOT, deny=allowed.VIEW_CHANNEL)
        discord.server.user_says(PRIVATE, ALICE, "not heard")
        discord.server.user_says(GENERAL, ALICE, "heard again")
        events = await listener.events(2)

    assert [shown["content"] for _, shown in events] == ["heard", "heard again"]


async def test_a_cut_session_is_resumed_with_what_it_missed(discord):
    async with discord.listening() as listener:
        discord.server.user_says(GENERAL, ALICE, "one")
        await listener.event("MESSAGE_CREATE")
        discord.server.gateway.cut()
        await listener.closed()
    discord.server.user_says(GENERAL, ALICE, "two")
    async with discord.connected("-resume") as again:
        await again.resume(listener.session_id, listener.number)
        missed = await again.event("MESSAGE_CREATE")
        await again.event("RESUMED")
        discord.server.user_says(GENERAL, ALICE, "three")
        later = await again.event("MESSAGE_CREATE")

    assert [missed["content"], later["content"]] == ["two", "three"]
    assert len(discord.server.gateway.identifies) == 1


async def test_a_silent_session_is_resumed_on_a_new_websocket(discord):
    async with discord.listening() as listener:
        discord.server.gateway.fall_silent()
        discord.server.user_says(GENERAL, ALICE, "into the void")
        async with discord.connected("-resume") as again:
            await again.resume(listener.session_id, listener.number)
            missed = await again.event("MESSAGE_CREATE")

    assert missed["content"] == "into the void"


@pytest.mark.parametrize("how", ["too late", "closed by the bot", "forgotten", "unknown"])
async def test_a_session_that_is_over_cannot_be_resumed_and_a_new_one_is_told_nothing_of_the_past(discord, how):
    async with discord.listening() as listener:
        if how == "closed by the bot":
            await listener.socket.close(code=1000)
        else:
            discord.server.gateway.cut()
    await discord.server.wait_for(lambda: not discord.server.gateway.is_live)
    if how == "too late":
        await discord.server.clock.advance(timedelta(minutes=4))
    if how == "forgotten":
        discord.server.gateway.forget_sessions()
    discord.server.user_says(GENERAL, ALICE, "missed")
    async with discord.connected("-resume") as again:
        await again.resume("nothing" if how == "unknown" else listener.session_id, listener.number)
        frame = await again.frame()
    async with discord.listening() as new:
        discord.server.user_says(GENERAL, ALICE, "heard")
        heard = await new.event("MESSAGE_CREATE")

    assert (frame["op"], frame["d"], heard["content"]) == (Op.INVALID_SESSION, False, "heard")
    assert len(await discord.result("GET", f"/channels/{GENERAL}/messages")) == 2


async def test_the_gateway_can_ask_for_a_new_connection_or_a_new_session(discord):
    async with discord.listening() as listener:
        discord.server.gateway.ask_reconnect()
        assert (await listener.frame())["op"] == Op.RECONNECT
        discord.server.gateway.invalidate(resumable=True)
        assert await listener.frame() == {"op": Op.INVALID_SESSION, "d": True, "s": None, "t": None}
        discord.server.gateway.invalidate()
        assert (await listener.frame())["d"] is False
        assert discord.server.gateway.sessions == {}
        discord.server.gateway.close(4008)
        assert await listener.closed() == 4008


async def test_while_the_gateway_is_down_nobody_can_listen(discord):
    async with discord.listening() as listener:
        discord.server.gateway.go_down()
        await listener.closed()
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with discord.connected():
            pass
    discord.server.gateway.come_up()

    assert refused.value.status == 503
    async with discord.listening():
        assert discord.server.gateway.is_live


async def test_sessions_are_counted_and_too_many_cost_the_token(discord):
    discord.server.gateway.spend_identifies(left=1)
    async with discord.listening():
        limit = (await discord.result("GET", "/gateway/bot"))["session_start_limit"]
    assert (limit["total"], limit["remaining"]) == (1000, 0)
    async with discord.connected() as listener:
        await listener.send(Op.IDENTIFY, {"token": discord.server.token, "intents": INTENTS})
        assert await listener.closed() == Close.AUTHENTICATION_FAILED

    assert (await discord.refused("GET", "/users/@me"))[0] == 401


async def test_the_count_of_sessions_starts_anew_after_a_day(discord):
    discord.server.gateway.spend_identifies(left=0)
    await discord.server.clock.advance(timedelta(hours=23))
    limit = (await discord.result("GET", "/gateway/bot"))["session_start_limit"]
    await discord.server.clock.advance(timedelta(hours=1))

    assert (limit["remaining"], limit["reset_after"]) == (0, 3_600_000)
    assert discord.server.gateway.identifies_left == 1000


async def test_events_come_twice_or_late_when_that_is_scripted(discord):
    discord.server.fault("MESSAGE_CREATE", Fault.DUPLICATED)
    discord.server.fault("MESSAGE_CREATE", Fault.REORDERED)
    async with discord.listening() as listener:
        for text in ("one", "two", "three"):
            discord.server.user_says(GENERAL, ALICE, text)
        texts = [shown["content"] for _, shown in await listener.events(4)]

    assert texts == ["one", "one", "three", "two"]


async def test_members_are_sent_when_they_are_asked_for(discord):
    async with discord.listening() as listener:
        wanted = {"guild_id": str(GUILD), "user_ids": [str(ALICE)], "limit": 0, "nonce": "n"}
        await listener.send(Op.REQUEST_MEMBERS, wanted)
        chunk = await listener.event("GUILD_MEMBERS_CHUNK")

    assert ([member["user"]["id"] for member in chunk["members"]], chunk["nonce"]) == ([str(ALICE)], "n")


async def test_a_token_that_is_revoked_ends_the_session(discord):
    async with discord.listening() as listener:
        discord.server.revoke_token()

        assert await listener.closed() == Close.AUTHENTICATION_FAILED
    assert (await discord.refused("GET", "/users/@me"))[0] == 401
