"""Groups, topics, reactions and removals, as the Bot API documents them."""

from datetime import timedelta

import pytest

THUMB = [{"type": "emoji", "emoji": "\N{THUMBS UP SIGN}"}]


async def sent(client, chat_id=111, **more):
    return (await client.result("sendMessage", chat_id=chat_id, text="x", **more))["message_id"]


@pytest.mark.parametrize(
    ("chat_id", "topics", "kind"),
    [(111, (), "private"), (-4001, (), "group"), (-1001000000001, (), "supergroup"), (-1001000000001, (7,), "forum")],
)
async def test_a_chat_shows_what_it_is(client, chat_id, topics, kind):
    client.server.open_chat(chat_id, topics=topics)
    client.server.user_says(chat_id, "hi", user=111)
    chat = (await client.result("getUpdates"))[0]["message"]["chat"]

    assert chat["type"] == ("supergroup" if kind == "forum" else kind)
    assert chat.get("is_forum", False) is (kind == "forum")


async def test_only_topics_that_exist_can_be_written_to_c20(client):
    client.server.open_chat(-1001000000001, topics=(7,))
    for thread in (1, 4711):
        told = await client.refused("sendMessage", chat_id=-1001000000001, text="x", message_thread_id=thread)
        assert told == (400, "Bad Request: message thread not found")
    message = await client.result("sendMessage", chat_id=-1001000000001, text="x", message_thread_id=7)

    assert (message["message_thread_id"], message["is_topic_message"]) == (7, True)


@pytest.mark.parametrize("told", [True, False])
async def test_a_group_that_moved_answers_with_its_new_id_c20(client, told):
    client.server.open_chat(-4001, title="Team")
    client.server.migrate(-4001, -1001000000002, told=told)
    answer = await client.call("sendMessage", chat_id=-4001, text="x")
    services = [update["message"] for update in await client.result("getUpdates")]

    assert (answer["error_code"], answer["parameters"]) == (400, {"migrate_to_chat_id": -1001000000002})
    assert [(m.get("migrate_to_chat_id"), m.get("migrate_from_chat_id")) for m in services] == (
        [(-1001000000002, None), (None, -4001)] if told else []
    )
    assert await sent(client, -1001000000002)


async def test_a_bot_reacts_once_to_a_message_with_what_is_offered(client):
    message = {"chat_id": 111, "message_id": client.server.user_says(111, "hi")}
    await client.result("setMessageReaction", reaction=THUMB, **message)
    assert client.server.visible(111, everyone=True)[0].reactions == ["\N{THUMBS UP SIGN}"]
    for reaction, told in ((THUMB * 2, "TOO_MANY"), ([{"type": "emoji", "emoji": "\N{GREEN APPLE}"}], "INVALID")):
        assert told in (await client.refused("setMessageReaction", reaction=reaction, **message))[1]
    await client.result("setMessageReaction", reaction=[], **message)

    assert client.server.visible(111, everyone=True)[0].reactions == []
    assert "not found" in (await client.refused("setMessageReaction", chat_id=111, message_id=99, reaction=THUMB))[1]


async def test_a_message_is_deleted_within_two_days_and_other_peoples_not_in_groups(client):
    client.server.open_chat(-4001)
    young, theirs = await sent(client), client.server.user_says(-4001, "mine", user=111)
    await client.result("deleteMessage", chat_id=111, message_id=young)
    assert "to delete not found" in (await client.refused("deleteMessage", chat_id=111, message_id=young))[1]
    assert "can't be deleted" in (await client.refused("deleteMessage", chat_id=-4001, message_id=theirs))[1]
    old = await sent(client)
    await client.server.clock.advance(timedelta(hours=48, seconds=1))

    assert "can't be deleted" in (await client.refused("deleteMessage", chat_id=111, message_id=old))[1]


async def test_a_bot_that_left_or_was_barred_is_refused(client):
    client.server.open_chat(-4001)
    await client.result("leaveChat", chat_id=-4001)
    assert (await client.refused("leaveChat", chat_id=-4001))[0] == 403
    client.server.bar(111, "bot was kicked from the group chat")

    assert (await client.refused("sendMessage", chat_id=111, text="x"))[1].startswith("Forbidden: bot was kicked")
    client.server.bar(111, "")
    assert (await client.refused("leaveChat", chat_id=111))[0] == 400
