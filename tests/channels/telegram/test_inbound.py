import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound import BotAccount, MalformedUpdate, parse_update
from core.contracts.addresses import Attachment, EditBody, MessageBody, PressBody, Privacy

ACCOUNT = BotAccount(channel="telegram", id=900, username="lodger_bot")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALICE = {"id": 111, "is_bot": False, "first_name": "Alice", "last_name": "Smith"}
PRIVATE = {"id": 111, "type": "private"}
GROUP = {"id": -1001000000001, "type": "supergroup", "title": "Team"}


def message(**fields):
    base = {"message_id": 7, "from": ALICE, "chat": PRIVATE, "date": 1_767_268_800, "text": "hello"}
    return {name: value for name, value in (base | fields).items() if value is not None}


def parse(**update):
    return parse_update({"update_id": 5001, **update}, ACCOUNT, NOW)


def test_a_private_message_becomes_an_event():
    event = parse(message=message())

    assert event.address.key == "telegram/900/111"
    assert event.sender.identity == "telegram:111"
    assert event.sender.name == "Alice Smith"
    assert event.body == MessageBody(text="hello")
    assert event.privacy is Privacy.DIRECT
    assert event.sent_at == NOW
    assert event.external_id == "7"


def test_a_message_delivered_again_has_the_same_key_whatever_its_update_id_c04():
    first = parse_update({"update_id": 1, "message": message()}, ACCOUNT, NOW)
    again = parse_update({"update_id": 2, "message": message()}, ACCOUNT, NOW)

    assert first.key == again.key
    assert parse(message=message(message_id=8)).key != first.key
    assert parse(message=message(chat={"id": 222, "type": "private"})).key != first.key


def test_an_edit_names_the_message_it_changes_and_has_a_key_of_its_own():
    original = parse(message=message())
    edit = parse(edited_message=message(text="hello!", edit_date=1_767_268_860))
    next_edit = parse_update({"update_id": 5002, "edited_message": message(text="hey")}, ACCOUNT, NOW)

    assert edit.body == EditBody(message_key=original.key, text="hello!")
    assert edit.sent_at.minute == 1
    assert len({original.key, edit.key, next_edit.key}) == 3


def test_a_press_carries_token_card_and_query():
    card = message(message_id=9, text="Run?", **{"from": {"id": 900, "is_bot": True, "first_name": "Lodger"}})
    event = parse(callback_query={"id": "42", "from": ALICE, "message": card, "data": "tok", "chat_instance": "1"})

    assert event.body == PressBody(token="tok", card="9", acknowledge="42")
    assert event.sender.identity == "telegram:111"
    assert event.address.chat == "111"
    assert event.sent_at == NOW


def test_a_press_on_a_message_that_telegram_no_longer_shows_is_heard():
    gone = {"chat": PRIVATE, "message_id": 9, "date": 0}

    assert parse(callback_query={"id": "42", "from": ALICE, "message": gone, "data": "tok"}).body.card == "9"


def test_commands_lose_the_bots_name():
    assert parse(message=message(text="/new@Lodger_Bot now")).body.text == "/new now"
    assert parse(message=message(text="/new now")).body.text == "/new now"
    assert parse(message=message(text="/new@other_bot", chat=GROUP)) is None
    assert parse(message=message(text="mail me@lodger_bot")).body.text == "mail me@lodger_bot"


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"message_thread_id": 5, "is_topic_message": True}, "5"),
        ({"message_thread_id": 5}, None),
        ({"message_thread_id": 1, "is_topic_message": True}, None),
        ({}, None),
    ],
)
def test_only_a_topic_that_can_be_answered_is_a_thread(fields, thread):
    assert parse(message=message(chat=GROUP, **fields)).address.thread == thread


def test_privacy_is_what_the_chat_says():
    assert parse(message=message(chat=GROUP)).privacy is Privacy.PRIVATE_GROUP
    assert parse(message=message(chat={**GROUP, "username": "open_team"})).privacy is Privacy.PUBLIC


@pytest.mark.parametrize(
    ("fields", "addressed"),
    [
        ({"text": "lunch?"}, False),
        ({"text": "hey @lodger_bot, lunch?"}, True),
        ({"text": "hey @LODGER_BOT"}, True),
        ({"text": "hey @lodger_bot2"}, False),
        ({"text": "/status"}, True),
        ({"text": "yes", "reply_to_message": {"from": {"id": 900}}}, True),
        ({"text": "yes", "reply_to_message": {"from": {"id": 222}}}, False),
    ],
)
def test_group_talk_is_addressed_by_mention_reply_or_command(fields, addressed):
    assert parse(message=message(chat=GROUP, **fields)).body.addressed is addressed


@pytest.mark.parametrize(
    "update",
    [
        {"message": message(**{"from": {"id": 5, "is_bot": True, "first_name": "Other"}})},
        {"message": message(**{"from": {"id": 900, "is_bot": False, "first_name": "Me"}})},
        {"message": message(sender_chat=GROUP, chat=GROUP)},
        {"message": message(**{"from": None})},
        {"message": message(text=None, new_chat_members=[ALICE])},
        {"callback_query": {"id": "1", "from": ALICE, "game_short_name": "g", "chat_instance": "1"}},
        {"my_chat_member": {"chat": PRIVATE, "from": ALICE}},
        {"poll": {"id": "1"}},
        {},
    ],
)
def test_bots_channel_posts_and_other_updates_are_no_events(update):
    assert parse(**update) is None


def test_files_are_attachments_and_their_caption_is_the_text():
    sizes = [{"file_id": "small"}, {"file_id": "large", "file_size": 5}]
    document = {"file_id": "doc", "file_name": "plan.pdf", "mime_type": "application/pdf"}

    assert parse(message=message(text=None, caption="look", photo=sizes)).body == MessageBody(
        text="look",
        attachments=(Attachment(handle="large", name="photo.jpg", media_type="image/jpeg", size_bytes=5),),
    )
    (attached,) = parse(message=message(text=None, document=document)).body.attachments
    assert (attached.name, attached.media_type) == ("plan.pdf", "application/pdf")


def test_text_that_is_no_valid_unicode_is_made_valid():
    raw = json.loads(r'"a\ud800b\u0000c"')

    parse(message=message(text=raw)).body.text.encode()
    assert parse(message=message(text=raw)).body.text == "a\ufffdb\ufffdc"


def test_an_update_that_is_no_object_is_malformed():
    with pytest.raises(MalformedUpdate):
        parse_update(["update"], ACCOUNT, NOW)


@pytest.mark.parametrize(
    "update",
    [
        {"message": "text"},
        {"message": message(chat=None)},
        {"message": message(message_id="7")},
        {"message": message(text=5)},
        {"message": message(date="soon")},
        {"message": message(date=10**30)},
        {"message": message(**{"from": "Alice"})},
        {"callback_query": {"id": 4, "from": ALICE, "message": message(), "data": "t"}},
    ],
)
def test_a_malformed_update_is_named_as_such(update):
    with pytest.raises(MalformedUpdate):
        parse(**update)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
FIELDS = ("update_id", "message_id", "from", "chat", "date", "text", "photo", "document", "reply_to_message")


@given(
    kind=st.sampled_from(["message", "edited_message", "callback_query"]),
    spoilt=st.dictionaries(st.sampled_from([*FIELDS, "message_thread_id", "sender_chat", "edit_date"]), JSON),
    replaced=st.none() | JSON,
)
def test_no_update_raises_anything_but_malformed(kind, spoilt, replaced):
    body = message(chat=GROUP, is_topic_message=True) | spoilt
    update = {"id": "1", "data": "t", "from": ALICE, "message": body} if kind == "callback_query" else body
    try:
        parse(**{kind: update if replaced is None else replaced})
    except MalformedUpdate as error:
        assert str(error)  # noqa: PT017 - any other error fails the test by itself
