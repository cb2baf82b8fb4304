"""Administrators of groups and changes of members, as the Bot API documents them."""

from __future__ import annotations

from telegram import Bot, ChatMemberAdministrator, ChatMemberOwner

from tests.platforms.telegram_server import TOKEN

GROUP = -1001000000001
EVERYTHING = ["message", "my_chat_member", "chat_member"]


async def updates(client, **params):
    got = await client.result("getUpdates", **params)
    offset = got[-1]["update_id"] + 1 if got else 0
    await client.result("getUpdates", offset=offset, **params)
    return got


async def administrators(client):
    listed = await client.result("getChatAdministrators", chat_id=GROUP)
    return {member["user"]["id"]: member["status"] for member in listed}


async def test_owner_and_administrators_of_a_group_are_listed_and_nobody_else(client):
    client.server.open_chat(GROUP)
    assert await administrators(client) == {}
    client.server.appoint(GROUP, 111, "creator")
    client.server.appoint(GROUP, 222)
    client.server.appoint(GROUP, 333)
    client.server.appoint(GROUP, 333, "member")

    assert await administrators(client) == {111: "creator", 222: "administrator"}


async def test_the_real_sdk_reads_the_list(client):
    client.server.appoint(GROUP, 111, "creator")
    client.server.appoint(GROUP, 222)
    async with Bot(TOKEN, base_url=f"{client.server.api_base}/bot") as bot:
        listed = await bot.get_chat_administrators(GROUP)

    assert [type(member) for member in listed] == [ChatMemberOwner, ChatMemberAdministrator]


async def test_private_chats_and_those_the_bot_is_not_in_have_no_list(client):
    refused = await client.refused("getChatAdministrators", chat_id=111)
    assert refused == (400, "Bad Request: there are no administrators in the private chat")
    assert (await client.refused("getChatAdministrators", chat_id=-5))[0] == 400
    client.server.bar(GROUP, "bot was kicked from the supergroup chat")

    assert (await client.refused("getChatAdministrators", chat_id=GROUP))[0] == 403


async def test_asking_for_the_list_counts_against_no_chats_pace(client):
    client.server.min_interval = 60.0
    client.server.open_chat(GROUP)
    await client.result("sendMessage", chat_id=GROUP, text="x")

    assert await administrators(client) == {}


async def test_a_bot_is_told_of_others_only_as_an_administrator_who_asked(client):
    client.server.appoint(GROUP, 222)
    await updates(client, allowed_updates=["message", "my_chat_member"])
    client.server.appoint(GROUP, client.server.bot["id"])
    client.server.appoint(GROUP, 222, "member")
    (own,) = await updates(client, allowed_updates=EVERYTHING)
    client.server.appoint(GROUP, 222)
    (told,) = await updates(client)
    client.server.appoint(GROUP, client.server.bot["id"], "member")
    client.server.appoint(GROUP, 222, "member")
    (last,) = await updates(client)

    assert own["my_chat_member"]["new_chat_member"]["status"] == "administrator"
    change = told["chat_member"]
    assert change["new_chat_member"]["user"]["first_name"] == "Bob"
    assert (change["old_chat_member"]["status"], change["new_chat_member"]["status"]) == ("member", "administrator")
    assert list(last) == ["update_id", "my_chat_member"]


async def test_a_webhook_says_what_is_wanted_too(client):
    await client.result("setWebhook", url="https://bot.example.org/hook", allowed_updates=EVERYTHING)
    client.server.appoint(GROUP, client.server.bot["id"])
    client.server.appoint(GROUP, 222)

    assert [list(update)[1] for update in client.server.updates.unconfirmed] == ["my_chat_member", "chat_member"]


async def test_a_group_that_moves_takes_its_administrators_along(client):
    client.server.appoint(-4001, 111, "creator")
    client.server.migrate(-4001, GROUP)

    assert await administrators(client) == {111: "creator"}
