"""The fake is held to what Discord documents of threads and forums, by plain HTTP."""

import pytest

from tests.platforms import discord_permissions as allowed
from tests.platforms.discord_guilds import ALICE, BOB, BOT, FORUM, GENERAL, GUILD, RANDOM

pytest_plugins = ["tests.platforms.discord_client"]

HERE = f"/channels/{GENERAL}"


async def started(discord, **fields):
    hers = discord.server.user_says(GENERAL, ALICE, "start here")
    return hers, await discord.result("POST", f"{HERE}/messages/{hers}/threads", {"name": "Talk"} | fields)


async def test_a_thread_at_a_message_has_its_id_and_there_is_one_at_most(discord):
    async with discord.listening() as listener:
        hers, thread = await started(discord, auto_archive_duration=60)
        events = await listener.events(4)

    assert (thread["id"], thread["parent_id"], thread["type"]) == (str(hers), str(GENERAL), 11)
    assert (thread["owner_id"], thread["thread_metadata"]["auto_archive_duration"]) == (str(BOT), 60)
    assert [name for name, _ in events] == ["MESSAGE_CREATE", "THREAD_CREATE", "MESSAGE_UPDATE", "MESSAGE_CREATE"]
    assert (events[1][1]["newly_created"], events[2][1]["thread"]["id"], events[3][1]["type"]) == (True, str(hers), 21)
    again = await discord.refused("POST", f"{HERE}/messages/{hers}/threads", {"name": "Again"})
    assert again == (400, 160004)


async def test_the_message_that_starts_a_thread_stays_in_the_parent(discord):
    hers, _ = await started(discord)

    assert (await discord.result("GET", f"{HERE}/messages/{hers}"))["content"] == "start here"
    assert await discord.refused("GET", f"/channels/{hers}/messages/{hers}") == (404, 10008)
    [starter] = await discord.result("GET", f"/channels/{hers}/messages")
    assert (starter["type"], starter["referenced_message"]["content"]) == (21, "start here")


async def test_a_thread_without_a_message_is_shown_in_the_channel(discord):
    public = await discord.result("POST", f"{HERE}/threads", {"name": "Talk", "type": 11})
    [note] = discord.server.visible(GENERAL)

    assert (note.kind, note.text, note.reply_to) == (18, "Talk", (int(public["id"]), 0))
    assert await discord.refused("POST", f"{HERE}/threads", {"name": "Talk"}) == (403, 50013)
    discord.server.people.permits(GENERAL, BOT, allow=allowed.CREATE_PRIVATE_THREADS)
    assert (await discord.result("POST", f"{HERE}/threads", {"name": "Hidden"}))["type"] == 12
    assert len(discord.server.visible(GENERAL)) == 1


async def test_an_archived_thread_takes_no_edits_and_a_message_opens_it_again(discord):
    thread = (await started(discord))[1]["id"]
    sent = (await discord.says(int(thread), "a"))["id"]
    discord.server.archives_thread(int(thread))
    there = f"/channels/{thread}"
    refusals = [
        await discord.refused("PATCH", f"{there}/messages/{sent}", {"content": "b"}),
        await discord.refused("DELETE", f"{there}/messages/{sent}"),
        await discord.refused("PUT", f"{there}/messages/{sent}/reactions/👍/@me"),
        await discord.refused("PUT", f"{there}/thread-members/@me"),
        await discord.refused("PATCH", there, {"name": "Other"}),
    ]
    assert refusals == [(400, 50083)] * 5
    async with discord.listening() as listener:
        await discord.wrong_field("POST", f"{there}/messages", {"content": "a" * 2001})
        assert discord.server.directory.channel(int(thread)).thread.archived
        await discord.says(int(thread), "b")
        update = await listener.event("THREAD_UPDATE")

    assert update["thread_metadata"]["archived"] is False
    await discord.result("PATCH", f"{there}/messages/{sent}", {"content": "c"})


async def test_a_locked_thread_is_opened_only_by_who_may_manage_it(discord):
    thread = (await started(discord))[1]["id"]
    discord.server.archives_thread(int(thread), locked=True)
    discord.server.people.permits(GENERAL, BOT, deny=allowed.MANAGE_THREADS)
    assert await discord.refused("POST", f"/channels/{thread}/messages", {"content": "a"}) == (403, 160005)
    discord.server.people.permits(GENERAL, BOT)
    with pytest.raises(AssertionError):
        discord.server.user_says(int(thread), BOB, "let me in")

    await discord.says(int(thread), "a")


async def test_a_thread_is_changed_by_its_owner(discord):
    own = (await started(discord))[1]["id"]
    changed = await discord.result("PATCH", f"/channels/{own}", {"name": "Other", "archived": True})
    assert (changed["name"], changed["thread_metadata"]["archived"]) == ("Other", True)
    opened = await discord.result("PATCH", f"/channels/{own}", {"archived": False})
    assert opened["thread_metadata"]["archived"] is False
    theirs = discord.server.says_in_new_thread(GENERAL, BOB, "mine")
    discord.server.people.permits(GENERAL, BOT, deny=allowed.MANAGE_THREADS)

    assert await discord.refused("PATCH", f"/channels/{theirs}", {"name": "x"}) == (403, 50013)
    assert await discord.refused("PATCH", HERE, {"name": "x"}) == (403, 50013)


@pytest.mark.parametrize(
    ("body", "field"),
    [({"name": ""}, "name"), ({"name": "n" * 101}, "name"), ({"auto_archive_duration": 5}, "auto_archive_duration")],
)
async def test_a_thread_that_is_not_as_it_should_be_is_refused(discord, body, field):
    hers = discord.server.user_says(GENERAL, ALICE, "a")
    asked = {"name": "Talk"} | body

    assert (await discord.wrong_field("POST", f"{HERE}/messages/{hers}/threads", asked))[0] == field


async def test_threads_are_opened_only_with_the_right_to_and_only_in_text_channels(discord):
    hers = discord.server.user_says(GENERAL, ALICE, "a")
    discord.server.people.permits(GENERAL, BOT, deny=allowed.CREATE_PUBLIC_THREADS)
    assert await discord.refused("POST", f"{HERE}/messages/{hers}/threads", {"name": "Talk"}) == (403, 50013)
    discord.server.people.permits(GENERAL, BOT)
    thread = discord.server.says_in_new_thread(GENERAL, ALICE, "inside", at=hers)
    inside = discord.server.visible(thread, everyone=True)[-1].id

    assert await discord.refused("POST", f"/channels/{thread}/messages/{inside}/threads", {"name": "Deeper"}) == (
        400,
        50024,
    )
    assert await discord.refused("POST", f"/channels/{thread}/threads", {"name": "Deeper"}) == (400, 50024)


async def test_people_talk_in_threads_and_the_bot_hears_it(discord):
    async with discord.listening() as listener:
        thread = discord.server.says_in_new_thread(GENERAL, BOB, f"<@{BOT}> hi", name="Side")
        discord.server.user_says(thread, ALICE, "me too")
        events = await listener.events(4)

    assert [name for name, _ in events] == ["THREAD_CREATE", *["MESSAGE_CREATE"] * 3]
    assert [shown["channel_id"] for _, shown in events[1:]] == [str(GENERAL), str(thread), str(thread)]
    assert [shown["type"] for _, shown in events[1:]] == [18, 0, 0]
    assert (await discord.result("GET", f"/channels/{thread}"))["member_count"] == 2


async def test_a_private_thread_is_heard_once_the_bot_is_brought_in(discord):
    discord.server.people.permits(GENERAL, BOT, deny=allowed.MANAGE_THREADS)
    async with discord.listening() as listener:
        thread = discord.server.says_in_new_thread(GENERAL, BOB, "secret", private=True)
        assert await discord.refused("GET", f"/channels/{thread}") == (403, 50001)
        discord.server.user_says(thread, BOB, f"<@{BOT}> come in")
        (joined, _), (said, shown) = await listener.events(2)

    assert (joined, said, shown["content"]) == ("THREAD_CREATE", "MESSAGE_CREATE", f"<@{BOT}> come in")
    await discord.says(thread, "here I am")
    with pytest.raises(AssertionError):
        discord.server.user_says(thread, 7100, "I was not asked")


async def test_a_post_of_a_forum_is_a_thread_with_its_first_message_inside(discord):
    body = {"name": "How?", "message": {"content": "Like this"}}
    post = await discord.result("POST", f"/channels/{FORUM}/threads", body)
    first = await discord.result("GET", f"/channels/{post['id']}/messages/{post['id']}")

    assert (post["parent_id"], post["message"]["content"], first["content"]) == (str(FORUM), "Like this", "Like this")
    empty = {"name": "How?", "message": {"content": ""}}
    assert await discord.refused("POST", f"/channels/{FORUM}/threads", empty) == (400, 50006)
    assert await discord.refused("POST", f"/channels/{FORUM}/threads", {"name": "How?"}) == (400, 50035)
    assert len((await discord.result("GET", f"/guilds/{GUILD}/threads/active"))["threads"]) == 1


async def test_a_forum_may_require_a_tag(discord):
    discord.server.directory.channel(FORUM).requires_tag = True
    body = {"name": "How?", "message": {"content": "a"}}
    assert await discord.refused("POST", f"/channels/{FORUM}/threads", body) == (400, 40067)
    assert await discord.refused("POST", f"/channels/{FORUM}/threads", body | {"applied_tags": ["1"]}) == (404, 10087)
    post = await discord.result("POST", f"/channels/{FORUM}/threads", body | {"applied_tags": ["9160"]})

    assert post["applied_tags"] == ["9160"]


async def test_people_post_in_forums(discord):
    async with discord.listening() as listener:
        post = discord.server.posts_in_forum(FORUM, ALICE, "Broken", f"<@{BOT}> help", tags=(9160,))
        (_, thread), (_, first) = await listener.events(2)

    assert (thread["id"], thread["applied_tags"]) == (str(post), ["9160"])
    assert (first["id"], first["channel_id"], first["type"]) == (str(post), str(post), 0)


async def test_threads_are_listed_by_whether_they_are_archived(discord):
    first = discord.server.says_in_new_thread(GENERAL, ALICE, "a")
    second = discord.server.says_in_new_thread(GENERAL, ALICE, "b")
    other = discord.server.says_in_new_thread(RANDOM, ALICE, "c")
    discord.server.archives_thread(first)

    async def listed(path):
        return [int(thread["id"]) for thread in (await discord.result("GET", path))["threads"]]

    assert await listed(f"/guilds/{GUILD}/threads/active") == [other, second]
    assert await listed(f"{HERE}/threads/archived/public") == [first]
    assert await listed(f"{HERE}/threads/archived/private") == []


async def test_a_message_whose_thread_was_deleted_cannot_start_another(discord):
    hers, _ = await started(discord)
    discord.server.people.deletes_thread(hers)

    assert "thread" not in await discord.result("GET", f"{HERE}/messages/{hers}")
    again = await discord.refused("POST", f"{HERE}/messages/{hers}/threads", {"name": "Again"})
    assert again == (400, 160004)


async def test_the_bot_joins_leaves_and_deletes_threads(discord):
    thread = discord.server.says_in_new_thread(GENERAL, BOB, "a")
    there = f"/channels/{thread}"
    assert "member" not in await discord.result("GET", there)
    await discord.result("PUT", f"{there}/thread-members/@me")
    assert (await discord.result("GET", there))["member"]["user_id"] == str(BOT)
    await discord.result("DELETE", f"{there}/thread-members/@me")
    assert "member" not in await discord.result("GET", there)
    async with discord.listening() as listener:
        await discord.result("DELETE", there)
        gone = await listener.event("THREAD_DELETE")

    assert gone == {"id": str(thread), "parent_id": str(GENERAL), "type": 11, "guild_id": str(GUILD)}
    assert await discord.refused("GET", there) == (404, 10003)
    assert await discord.refused("DELETE", HERE) == (403, 50013)
    assert await discord.refused("PUT", f"{HERE}/thread-members/@me") == (400, 50024)
