"""What may stand in a message, as the Bot API documents it."""

import pytest

PRE = {"type": "pre", "offset": 0, "length": 1}
KEYBOARD = {"inline_keyboard": [[{"text": "Approve", "callback_data": "tok"}]]}


@pytest.mark.parametrize(
    ("params", "description"),
    [
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "\U0001f600" * 2049}, "message is too long"),
        ({"text": "  \n"}, "message text is empty"),
        ({"text": "x", "chat_id": 999}, "chat not found"),
        ({"text": "x", "message_thread_id": 5}, "message thread not found"),
        ({"text": "x", "entities": [{"type": "pre", "offset": 0, "length": 2}]}, "ends after the end"),
        ({"text": "\U0001f600", "entities": [{"type": "pre", "offset": 1, "length": 1}]}, "inside a character"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "я" * 33}]]}}, "BUTTON"),
        ({"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": ""}]]}}, "BUTTON"),
    ],
)
async def test_limits_are_enforced(client, params, description):
    code, told = await client.refused("sendMessage", **({"chat_id": 111} | params))

    assert code == 400
    assert description in told
    assert client.server.visible(111) == []


async def test_what_fits_exactly_is_taken(client):
    markup = {"inline_keyboard": [[{"text": "a", "callback_data": "я" * 32}]]}
    answer = await client.call("sendMessage", chat_id=111, text="\U0001f600" * 2048, reply_markup=markup)

    assert answer["ok"]


async def test_more_entities_than_a_hundred_are_ignored(client):
    entities = [PRE | {"offset": place} for place in range(120)]
    await client.result("sendMessage", chat_id=111, text="x" * 120, entities=entities)

    assert len(client.server.visible(111)[0].entities) == 100


async def test_outer_blanks_go_and_entities_stay_where_their_text_is(client):
    entities = [PRE | {"offset": 2, "length": 7}, PRE | {"offset": 0, "length": 2}]
    await client.result("sendMessage", chat_id=111, text="  \U0001f600 end  ", entities=entities)
    (message,) = client.server.visible(111)

    assert message.text == "\U0001f600 end"
    assert [(entity["offset"], entity["length"]) for entity in message.entities] == [(0, 6)]


async def test_an_edit_must_change_something_after_trimming(client):
    sent = (await client.call("sendMessage", chat_id=111, text="same", reply_markup=KEYBOARD))["result"]
    where = {"chat_id": 111, "message_id": sent["message_id"]}

    _, told = await client.refused("editMessageText", text="same \n", reply_markup=KEYBOARD, **where)
    assert "message is not modified" in told
    assert (await client.call("editMessageText", text="same", **where))["ok"]
    assert client.server.visible(111)[0].buttons == {}
    client.server.delete(111, sent["message_id"])
    _, told = await client.refused("editMessageText", text="other", **where)
    assert "message to edit not found" in told
