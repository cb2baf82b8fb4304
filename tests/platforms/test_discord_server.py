"""The fake is held to what Discord documents of requests, accounts and guilds, by plain HTTP."""

import asyncio
from datetime import timedelta

import httpx
import pytest

from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_channels import Kind
from tests.platforms.discord_guilds import (
    ALICE,
    BOB,
    BOT,
    BOT_ROLE,
    FORUM,
    GENERAL,
    GUESTS,
    GUILD,
    KEEPERS,
    PEER_BOT,
    PRIVATE,
    RANDOM,
)
from tests.platforms.discord_permissions import ROLE
from tests.platforms.telegram_faults import Fault

pytest_plugins = ["tests.platforms.discord_client"]

HERE = f"/channels/{GENERAL}/messages"
HELLO = {"content": "hello"}


async def test_the_bot_and_its_application_are_shown_to_whoever_has_the_token(discord):
    me = await discord.result("GET", "/users/@me")
    application = await discord.result("GET", "/oauth2/applications/@me")

    assert (me["id"], me["username"], me["bot"]) == (str(BOT), "lodger", True)
    assert (application["id"], application["flags"]) == (str(BOT), 1 << 19)
    for token in (None, "wrong"):
        assert await discord.refused("GET", "/users/@me", token=token) == (401, 0)
    assert (await discord.result("GET", "/gateway", token=None))["url"] == discord.server.gateway_url


async def test_what_is_no_route_is_not_found(discord):
    assert await discord.refused("GET", "/nothing/here") == (404, 0)
    assert await discord.refused("POST", "/users/@me") == (404, 0)
    assert [call.route for call in discord.server.calls] == ["unknown", "unknown"]


async def test_a_body_that_is_no_json_is_refused(discord):
    headers = {"Authorization": f"Bot {discord.server.token}", "Content-Type": "application/json"}
    answer = await discord.http.post(discord.server.api_base + HERE, content=b"{", headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (400, 50109)


async def test_answers_are_plain_json_and_tell_the_time_and_the_budget(discord):
    discord.server.clock_skew = timedelta(minutes=5)
    headers = (await discord.call("GET", "/users/@me")).headers

    assert headers["content-type"] == "application/json"
    assert headers["date"] == "Thu, 01 Jan 2026 12:05:00 GMT"
    assert {"limit", "remaining", "reset", "reset-after", "bucket"} <= {
        name.removeprefix("x-ratelimit-") for name in headers if name.startswith("x-ratelimit-")
    }
    assert int(headers["x-ratelimit-remaining"]) > 100


async def test_calls_from_before_a_budget_is_enforced_do_not_count(discord):
    for _ in range(7):
        await discord.says(GENERAL, "free")
    discord.server.pace.enforced = True
    answers = [await discord.call("POST", HERE, HELLO) for _ in range(6)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [429]


async def test_a_budget_that_is_enforced_is_for_one_route_and_channel(discord):
    discord.server.pace.enforced = True
    left = [(await discord.call("POST", HERE, HELLO)).headers["x-ratelimit-remaining"] for _ in range(5)]
    await discord.server.clock.advance(timedelta(seconds=2))
    refused = await discord.call("POST", HERE, HELLO)
    elsewhere = await discord.call("POST", f"/channels/{RANDOM}/messages", HELLO)
    await discord.server.clock.advance(timedelta(seconds=3))
    again = await discord.call("POST", HERE, HELLO)

    assert left == ["4", "3", "2", "1", "0"]
    assert (refused.status_code, refused.json()["retry_after"], refused.json()["global"]) == (429, 3.0, False)
    assert (refused.headers["via"], refused.headers["retry-after"]) == ("1.1 google", "3")
    assert refused.headers["x-ratelimit-scope"] == "user"
    assert (elsewhere.status_code, again.status_code) == (200, 200)
    assert len(discord.server.visible(GENERAL)) == 6


async def test_too_many_requests_can_be_scripted_for_one_channel_or_everywhere(discord):
    discord.server.fault("create_message", Fault.FLOODED, channel_id=GENERAL, seconds=0.35, times=2)
    discord.server.fault("me", Fault.FLOODED, seconds=20, is_global=True)
    await discord.says(RANDOM, "not there")
    limited = [await discord.call("POST", HERE, HELLO) for _ in range(3)]
    everywhere = await discord.call("GET", "/users/@me")

    assert [answer.status_code for answer in limited] == [429, 429, 200]
    assert (limited[0].json()["retry_after"], limited[0].json()["global"]) == (0.35, False)
    assert (everywhere.json()["global"], everywhere.headers["x-ratelimit-global"]) == (True, "true")
    assert everywhere.headers["x-ratelimit-scope"] == "global"


@pytest.mark.parametrize(("fault", "carried_out"), [(Fault.LOST_REQUEST, False), (Fault.LOST_RESPONSE, True)])
async def test_a_lost_request_has_no_effect_and_a_lost_response_has_one(discord, fault, carried_out):
    discord.server.fault("create_message", fault)
    with pytest.raises(httpx.TransportError):
        await discord.call("POST", HERE, HELLO)

    assert bool(discord.server.visible(GENERAL)) is carried_out
    assert discord.server.calls_of("create_message", GENERAL)[-1].status == 0


async def test_an_error_can_be_scripted_with_its_body(discord):
    old = {"message": "Maximum number of edits to messages older than 1 hour reached", "code": 30046}
    discord.server.fail_next("create_message", 503)
    discord.server.fail_next("edit_message", 400, old)
    assert await discord.refused("POST", HERE, HELLO) == (503, 0)
    sent = await discord.says(GENERAL, "hello")

    assert await discord.refused("PATCH", f"{HERE}/{sent['id']}", HELLO) == (400, 30046)
    assert len(discord.server.visible(GENERAL)) == 1


async def test_a_slow_call_is_carried_out_when_its_time_has_come(discord):
    slow = discord.server.fault("create_message", Fault.SLOW, seconds=30)
    call = asyncio.create_task(discord.says(GENERAL, "hello"))
    await asyncio.wait_for(slow.entered.wait(), 30)
    assert discord.server.visible(GENERAL) == []
    await discord.server.clock.advance(timedelta(seconds=30))

    assert (await asyncio.wait_for(call, 30))["content"] == "hello"


async def test_a_half_open_call_is_never_answered(discord):
    held = discord.server.fault("create_message", Fault.HALF_OPEN)
    call = asyncio.create_task(discord.call("POST", HERE, HELLO))
    await asyncio.wait_for(held.entered.wait(), 30)
    await discord.server.stop()
    with pytest.raises(httpx.TransportError):
        await call

    assert discord.server.visible(GENERAL) == []


async def test_a_call_can_be_held_before_and_after_it_is_carried_out(discord):
    before, after = discord.server.gate_next("create_message"), discord.server.gate_answer("create_message")
    call = asyncio.create_task(discord.says(GENERAL, "hello"))
    await asyncio.wait_for(before.entered.wait(), 30)
    assert discord.server.visible(GENERAL) == []
    before.opened.set()
    await asyncio.wait_for(after.entered.wait(), 30)
    assert len(discord.server.visible(GENERAL)) == 1
    assert not call.done()
    after.opened.set()

    assert (await asyncio.wait_for(call, 30))["content"] == "hello"


async def test_an_outage_forgets_nothing(discord):
    await discord.says(GENERAL, "hello")
    base = discord.server.api_base
    async with discord.listening() as listener:
        await discord.server.stop()
        await listener.closed()
    with pytest.raises(httpx.TransportError):
        await discord.call("GET", "/users/@me")
    await discord.server.start()

    assert discord.server.api_base == base
    assert len(await discord.result("GET", HERE)) == 1
    async with discord.connected("-resume") as again:
        await again.resume(listener.session_id, listener.number)
        await again.event("RESUMED")


async def test_a_guild_is_shown_with_its_channels_roles_and_members(discord):
    guild = await discord.result("GET", f"/guilds/{GUILD}")
    channels = await discord.result("GET", f"/guilds/{GUILD}/channels")
    roles = await discord.result("GET", f"/guilds/{GUILD}/roles")
    private = await discord.result("GET", f"/channels/{PRIVATE}")

    assert (guild["name"], [guild["id"] for guild in await discord.result("GET", "/users/@me/guilds")]) == (
        "Lodge",
        [str(GUILD)],
    )
    assert [int(channel["id"]) for channel in channels] == [GENERAL, RANDOM, PRIVATE, FORUM]
    assert [int(role["id"]) for role in roles] == [GUILD, KEEPERS, GUESTS, BOT_ROLE]
    assert {overwrite["id"]: overwrite["deny"] for overwrite in private["permission_overwrites"]} == {
        str(GUILD): str(allowed.VIEW_CHANNEL),
        str(KEEPERS): "0",
        str(BOT): "0",
    }
    for user, of_user in ((ALICE, KEEPERS), (BOB, GUESTS), ("@me", BOT_ROLE)):
        assert (await discord.result("GET", f"/guilds/{GUILD}/members/{user}"))["roles"] == [str(of_user)]
    assert (await discord.result("GET", f"/users/{PEER_BOT}"))["bot"]


async def test_who_and_what_is_not_there_is_unknown(discord):
    assert await discord.refused("GET", "/guilds/1") == (404, 10004)
    assert await discord.refused("GET", f"/guilds/{GUILD}/members/1") == (404, 10007)
    assert await discord.refused("GET", "/users/1") == (404, 10013)


async def test_the_bot_is_put_out_of_a_guild_and_let_in_again(discord):
    async with discord.listening() as listener:
        discord.server.removes_bot(GUILD)
        left = await listener.event("GUILD_DELETE")
        assert await discord.refused("POST", HERE, HELLO) == (403, 50001)
        assert await discord.refused("GET", f"/guilds/{GUILD}") == (404, 10004)
        discord.server.user_says(GENERAL, ALICE, "unheard")
        discord.server.adds_bot(GUILD)
        joined = await listener.event("GUILD_CREATE")

    assert (left, joined["id"], "unavailable" in joined) == ({"id": str(GUILD)}, str(GUILD), False)
    await discord.says(GENERAL, "back")


async def test_the_bot_leaves_a_guild_by_itself(discord):
    async with discord.listening() as listener:
        await discord.result("DELETE", f"/users/@me/guilds/{GUILD}")
        await listener.event("GUILD_DELETE")

    assert await discord.refused("DELETE", f"/users/@me/guilds/{GUILD}") == (404, 10004)
    assert await discord.result("GET", "/users/@me/guilds") == []


async def test_the_bot_is_let_into_another_guild(discord):
    async with discord.listening() as listener:
        discord.server.adds_bot(9900, "Elsewhere")
        joined = await listener.event("GUILD_CREATE")
        discord.server.user_says(9901, BOB, "welcome")
        said = await listener.event("MESSAGE_CREATE")

    assert (joined["name"], [channel["id"] for channel in joined["channels"]]) == ("Elsewhere", ["9901"])
    assert said["guild_id"] == "9900"


async def test_a_guild_can_be_lost_for_a_while(discord):
    async with discord.listening() as listener:
        discord.server.people.loses_guild(GUILD)
        discord.server.people.loses_guild(GUILD, False)
        (_, lost), (name, back) = await listener.events(2)

    assert lost == {"id": str(GUILD), "unavailable": True}
    assert (name, back["unavailable"]) == ("GUILD_CREATE", False)


async def test_channels_are_made_and_deleted_with_their_threads(discord):
    async with discord.listening() as listener:
        discord.server.people.opens_channel(9190, "new", guild=GUILD)
        thread = discord.server.says_in_new_thread(9190, ALICE, "a")
        discord.server.people.deletes_channel(9190)
        names = [name for name, _ in await listener.events(5)]

    assert names == ["CHANNEL_CREATE", "THREAD_CREATE", "MESSAGE_CREATE", "MESSAGE_CREATE", "CHANNEL_DELETE"]
    for channel in (9190, thread):
        assert await discord.refused("GET", f"/channels/{channel}") == (404, 10003)


@pytest.mark.parametrize(
    ("overwrites", "may"),
    [
        ([], True),
        ([(GUILD, ROLE, 0, allowed.VIEW_CHANNEL)], False),
        ([(GUILD, ROLE, 0, allowed.VIEW_CHANNEL), (GUESTS, ROLE, allowed.VIEW_CHANNEL, 0)], True),
        ([(GUESTS, ROLE, allowed.VIEW_CHANNEL, 0), (BOB, 1, 0, allowed.VIEW_CHANNEL)], False),
        ([(GUESTS, ROLE, 0, allowed.VIEW_CHANNEL), (BOB, 1, allowed.VIEW_CHANNEL, 0)], True),
        ([(GUESTS, ROLE, 0, allowed.VIEW_CHANNEL), (KEEPERS, ROLE, allowed.VIEW_CHANNEL, 0)], False),
    ],
)
async def test_overwrites_apply_from_everyone_over_roles_to_the_member(discord, overwrites, may):
    for target, kind, allow, deny in overwrites:
        discord.server.people.permits(RANDOM, target, kind=kind, allow=allow, deny=deny)

    assert discord.server.directory.sees(discord.server.directory.channel(RANDOM), BOB) is may


async def test_an_allow_of_one_role_wins_over_a_deny_of_another(discord):
    discord.server.people.gives_roles(GUILD, BOB, GUESTS, KEEPERS)
    discord.server.people.permits(RANDOM, GUESTS, kind=ROLE, deny=allowed.VIEW_CHANNEL)
    discord.server.people.permits(RANDOM, KEEPERS, kind=ROLE, allow=allowed.VIEW_CHANNEL)

    assert discord.server.directory.sees(discord.server.directory.channel(RANDOM), BOB)


async def test_the_kinds_of_channels_are_told_apart(discord):
    kinds = {channel: (await discord.result("GET", f"/channels/{channel}"))["type"] for channel in (GENERAL, FORUM)}
    dm = await discord.result("GET", f"/channels/{discord.server.dm(BOB)}")

    assert kinds == {GENERAL: Kind.TEXT, FORUM: Kind.FORUM}
    assert (dm["type"], [user["id"] for user in dm["recipients"]]) == (Kind.DM, [str(BOB)])
