"""The fake is held to what Discord documents of messages, by plain HTTP."""

from datetime import timedelta

import pytest

from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_guilds import ALICE, BOB, BOT, FORUM, GENERAL, KEEPERS, PRIVATE, RANDOM

pytest_plugins = ["tests.platforms.discord_client"]

HERE = f"/channels/{GENERAL}/messages"


async def test_a_message_is_seen_as_it_was_written(discord):
    sent = await discord.says(GENERAL, "  **hello**  ", nonce="abc")

    assert (sent["content"], sent["author"]["id"], sent["nonce"]) == ("**hello**", str(BOT), "abc")
    assert [message.text for message in discord.server.visible(GENERAL)] == ["**hello**"]
    assert "nonce" not in await discord.result("GET", f"{HERE}/{sent['id']}")


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"content": "a" * 2001}, "content", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "a", "nonce": "n" * 26}, "nonce", "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"title": "t" * 257}]}, "embeds.0.title", "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"description": "d" * 4097}]}, "embeds.0.description", "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"description": "d" * 3001}] * 2}, "embeds", "MAX_EMBED_SIZE_EXCEEDED"),
        ({"embeds": [{"title": "t"}] * 11}, "embeds", "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [{"fields": [{"name": "", "value": "v"}]}]}, "embeds.0.fields.0.name", "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [{"fields": [{"name": "n", "value": "v"}] * 26}]}, "embeds.0.fields", "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [{"footer": {"text": "f" * 2049}}]}, "embeds.0.footer.text", "BASE_TYPE_MAX_LENGTH"),
        ({"embeds": [{"author": {"name": "a" * 257}}]}, "embeds.0.author.name", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "a", "message_reference": {"message_id": "1"}}, "message_reference", "REPLIES_UNKNOWN_MESSAGE"),
        ({"content": "a", "attachments": [{"id": 7}]}, "attachments", "ATTACHMENT_NOT_FOUND"),
    ],
)
async def test_what_is_too_much_is_refused_and_the_field_is_named(discord, body, field, code):
    assert await discord.wrong_field("POST", HERE, body) == (field, code)
    assert discord.server.visible(GENERAL) == []


async def test_a_text_of_2000_characters_is_taken_whatever_they_are(discord):
    assert (await discord.says(GENERAL, "😀" * 2000))["content"] == "😀" * 2000


async def test_an_empty_message_is_refused(discord):
    assert await discord.refused("POST", HERE, {"content": " "}) == (400, 50006)


async def test_a_nonce_that_is_enforced_makes_one_message_for_five_minutes(discord):
    first = await discord.says(GENERAL, "a", nonce="n1", enforce_nonce=True)
    await discord.server.clock.advance(timedelta(minutes=4))
    again = await discord.says(GENERAL, "other", nonce="n1", enforce_nonce=True)
    other = await discord.says(GENERAL, "b", nonce="n2", enforce_nonce=True)
    unenforced = await discord.says(GENERAL, "c", nonce="n1")
    await discord.server.clock.advance(timedelta(minutes=6))
    later = await discord.says(GENERAL, "d", nonce="n1", enforce_nonce=True)

    assert again["id"] == first["id"]
    assert len({first["id"], other["id"], unenforced["id"], later["id"]}) == 4
    assert [message.text for message in discord.server.visible(GENERAL)] == ["a", "b", "c", "d"]


async def test_ids_grow_with_the_clock(discord):
    first = int((await discord.says(GENERAL, "a"))["id"])
    second = int((await discord.says(RANDOM, "b"))["id"])
    await discord.server.clock.advance(timedelta(seconds=7))
    third = int((await discord.says(GENERAL, "c"))["id"])

    assert first < second < third
    assert (third >> 22) - (first >> 22) == 7000


async def test_a_history_is_read_in_pages(discord):
    ids = [discord.server.user_says(GENERAL, ALICE, str(number)) for number in range(5)]

    async def texts(**query):
        return [message["content"] for message in await discord.result("GET", HERE, params=query)]

    assert await texts() == ["4", "3", "2", "1", "0"]
    assert await texts(limit=2) == ["4", "3"]
    assert await texts(after=ids[0], limit=2) == ["2", "1"]
    assert await texts(before=ids[2], limit=1) == ["1"]
    assert sorted(await texts(around=ids[2], limit=3)) == ["1", "2", "3"]
    assert await texts(after=ids[4]) == []
    assert await discord.refused("GET", HERE, params={"limit": 101}) == (400, 50035)


async def test_an_edit_changes_what_it_names_and_is_seen_to_be_one(discord):
    row = {"type": 1, "components": [{"type": 2, "style": 1, "label": "Go", "custom_id": "go"}]}
    sent = await discord.says(GENERAL, "a", components=[row])
    await discord.server.clock.advance(timedelta(seconds=5))
    edited = await discord.result("PATCH", f"{HERE}/{sent['id']}", {"content": "b"})

    assert (edited["content"], edited["edited_timestamp"]) == ("b", "2026-01-01T12:00:05.000000+00:00")
    [message] = discord.server.visible(GENERAL)
    assert (message.versions, message.buttons) == (["a", "b"], {"Go": "go"})
    await discord.result("PATCH", f"{HERE}/{sent['id']}", {"components": []})
    assert message.buttons == {}
    assert await discord.wrong_field("PATCH", f"{HERE}/{sent['id']}", {"content": "a" * 2001}) == (
        "content",
        "BASE_TYPE_MAX_LENGTH",
    )


async def test_only_own_messages_are_edited_and_others_are_deleted_with_the_right_to(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "mine")
    assert await discord.refused("PATCH", f"{HERE}/{hers}", {"content": "x"}) == (403, 50005)
    assert await discord.refused("DELETE", f"{HERE}/{hers}") == (403, 50013)
    discord.server.people.permits(GENERAL, BOT, allow=allowed.MANAGE_MESSAGES)
    await discord.result("DELETE", f"{HERE}/{hers}")

    assert await discord.refused("DELETE", f"{HERE}/{hers}") == (404, 10008)
    assert discord.server.visible(GENERAL, everyone=True) == []


async def test_what_is_not_there_is_unknown(discord):
    assert await discord.refused("POST", "/channels/1/messages", {"content": "a"}) == (404, 10003)
    assert await discord.refused("GET", f"{HERE}/1") == (404, 10008)
    assert await discord.refused("PATCH", f"{HERE}/1", {"content": "a"}) == (404, 10008)


async def test_without_a_permission_nothing_is_done(discord):
    discord.server.people.permits(GENERAL, BOT, deny=allowed.SEND_MESSAGES)
    assert await discord.refused("POST", HERE, {"content": "a"}) == (403, 50013)
    assert await discord.refused("POST", f"/channels/{GENERAL}/typing") == (403, 50013)
    discord.server.people.permits(GENERAL, BOT, deny=allowed.READ_MESSAGE_HISTORY | allowed.ADD_REACTIONS)
    hers = discord.server.user_says(GENERAL, ALICE, "a")
    assert await discord.result("GET", HERE) == []
    assert await discord.refused("GET", f"{HERE}/{hers}") == (403, 50001)
    assert await discord.refused("PUT", f"{HERE}/{hers}/reactions/👍/@me") == (403, 50013)
    discord.server.people.permits(GENERAL, BOT, deny=allowed.VIEW_CHANNEL)

    assert await discord.refused("GET", f"/channels/{GENERAL}") == (403, 50001)
    assert await discord.refused("POST", HERE, {"content": "a"}) == (403, 50001)


async def test_a_forum_takes_no_messages(discord):
    assert await discord.refused("POST", f"/channels/{FORUM}/messages", {"content": "a"}) == (400, 50008)
    assert await discord.refused("GET", f"/channels/{FORUM}/messages") == (400, 50008)


async def test_a_person_can_refuse_direct_messages(discord):
    dm = (await discord.result("POST", "/users/@me/channels", {"recipient_id": str(ALICE)}))["id"]
    assert int(dm) == discord.server.dm(ALICE)
    discord.server.people.blocks(ALICE)
    assert await discord.refused("POST", f"/channels/{dm}/messages", {"content": "a"}) == (403, 50007)
    discord.server.people.blocks(ALICE, False)

    assert (await discord.says(int(dm), "a"))["channel_id"] == dm
    assert await discord.refused("POST", "/users/@me/channels", {"recipient_id": "1"}) == (400, 50033)


async def test_mentions_are_those_of_the_text_that_the_message_allows(discord):
    discord.server.people.permits(GENERAL, BOT, allow=allowed.MENTION_EVERYONE)
    text = f"<@{ALICE}> <@!{BOB}> <@&{KEEPERS}> @everyone"

    async def mentioned(**fields):
        sent = await discord.says(GENERAL, text, **fields)
        people = [int(user["id"]) for user in sent["mentions"]]
        return people, [int(role) for role in sent["mention_roles"]], sent["mention_everyone"]

    assert await mentioned() == ([ALICE, BOB], [KEEPERS], True)
    assert await mentioned(allowed_mentions={"parse": []}) == ([], [], False)
    assert await mentioned(allowed_mentions={"parse": ["roles"], "users": [str(BOB)]}) == ([BOB], [KEEPERS], False)
    assert await mentioned(allowed_mentions={"parse": ["everyone"]}) == ([], [], True)
    discord.server.people.permits(GENERAL, BOT)
    assert await mentioned() == ([ALICE, BOB], [KEEPERS], False)
    both = {"content": "a", "allowed_mentions": {"parse": ["users"], "users": [str(BOB)]}}
    assert (await discord.wrong_field("POST", HERE, both))[0] == "allowed_mentions"


async def test_an_edit_without_allowed_mentions_mentions_all_again(discord):
    sent = await discord.says(GENERAL, f"<@{ALICE}>", allowed_mentions={"parse": []})
    assert sent["mentions"] == []
    edited = await discord.result("PATCH", f"{HERE}/{sent['id']}", {"content": f"<@{ALICE}>!"})

    assert [user["id"] for user in edited["mentions"]] == [str(ALICE)]


async def test_a_reply_shows_what_it_answers_and_notifies_its_author_unless_it_says_not_to(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "question")
    answer = {"message_reference": {"message_id": str(hers)}}
    loud = await discord.says(GENERAL, "a", **answer)
    quiet = await discord.says(GENERAL, "a", **answer, allowed_mentions={"parse": [], "replied_user": False})
    discord.server.user_deletes(GENERAL, hers)
    lenient = {"message_reference": {"message_id": str(hers), "fail_if_not_exists": False}}

    assert (loud["type"], loud["referenced_message"]["content"]) == (19, "question")
    assert [user["id"] for user in loud["mentions"]] == [str(ALICE)]
    assert quiet["mentions"] == []
    assert (await discord.says(GENERAL, "b", **lenient))["type"] == 0
    assert (await discord.result("GET", f"{HERE}/{loud['id']}"))["referenced_message"] is None


async def test_reactions_come_and_go_once_for_each_person(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "a")
    for _ in range(2):
        await discord.result("PUT", f"{HERE}/{hers}/reactions/%F0%9F%91%8D/@me")
    discord.server.user_reacts(GENERAL, hers, BOB, "👍")
    await discord.result("PUT", f"{HERE}/{hers}/reactions/party:123/@me")
    [thumb, party] = (await discord.result("GET", f"{HERE}/{hers}"))["reactions"]

    assert (thumb["emoji"]["name"], thumb["count"], thumb["me"]) == ("👍", 2, True)
    assert party["emoji"] == {"id": "123", "name": "party"}
    await discord.result("DELETE", f"{HERE}/{hers}/reactions/👍/@me")
    assert discord.server.visible(GENERAL, everyone=True)[0].reactions == {"👍": [BOB], "party:123": [BOT]}
    assert await discord.refused("PUT", f"{HERE}/{hers}/reactions/hello/@me") == (400, 10014)
    assert await discord.refused("DELETE", f"{HERE}/{hers}/reactions/🎉/@me") == (400, 10014)


async def test_a_message_takes_twenty_kinds_of_reactions(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "a")
    for number in range(20):
        discord.server.user_reacts(GENERAL, hers, BOB, f"e:{number}")

    assert await discord.refused("PUT", f"{HERE}/{hers}/reactions/👍/@me") == (400, 30010)


async def test_typing_is_noted(discord):
    await discord.result("POST", f"/channels/{GENERAL}/typing")
    await discord.server.clock.advance(timedelta(seconds=5))
    await discord.result("POST", f"/channels/{GENERAL}/typing")

    assert discord.server.messages.typing[GENERAL] == [0.0, 5.0]


async def test_without_the_content_intent_in_the_portal_requests_show_no_content_either(discord):
    discord.server.account.privileged = type(discord.server.account.privileged)(0)
    others = discord.server.user_says(GENERAL, ALICE, "secret", embeds=[{"title": "t"}])
    to_bot = discord.server.user_says(GENERAL, ALICE, f"<@{BOT}> hi")
    own = (await discord.says(GENERAL, "mine"))["id"]
    direct = discord.server.user_says(discord.server.dm(ALICE), ALICE, "psst")

    async def content(channel, message_id):
        return (await discord.result("GET", f"/channels/{channel}/messages/{message_id}"))["content"]

    assert [await content(GENERAL, message) for message in (others, to_bot, own)] == ["", f"<@{BOT}> hi", "mine"]
    assert await content(discord.server.dm(ALICE), direct) == "psst"
    assert (await discord.result("GET", f"{HERE}/{others}"))["embeds"] == []


async def test_people_write_only_where_they_can(discord):
    discord.server.user_says(PRIVATE, ALICE, "among keepers")
    with pytest.raises(AssertionError):
        discord.server.user_says(PRIVATE, BOB, "let me in")

    assert [message.text for message in discord.server.visible(PRIVATE, everyone=True)] == ["among keepers"]
