from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound import parse_update, update_id_of
from channels.telegram.inbound_json import MalformedUpdate
from channels.telegram.inbound_senders import BotAccount
from core.contracts.addresses import (
    EditBody,
    MembershipBody,
    MessageBody,
    MigrationBody,
    PressBody,
    Privacy,
    ReactionBody,
)
from tests.platforms.telegram_json import (
    ALICE,
    ANONYMOUS,
    BOT,
    CHANNEL,
    DATE,
    FORUM,
    GROUP,
    OTHER_BOT,
    PRIVATE,
    SENT_AT,
    emoji,
    in_group,
    membership,
    message,
    press,
    reaction,
)

ACCOUNT = BotAccount(channel="telegram", id=900, username="lodger_bot")
NOW = datetime(2026, 1, 1, 13, tzinfo=UTC)


def parse(number=5001, **update):
    return parse_update({"update_id": number, **update}, ACCOUNT, NOW)


def test_a_private_message_becomes_an_event():
    event = parse(message=message())

    assert event.address.key == "telegram/900/111"
    assert event.sender.identity == "telegram:111"
    assert event.sender.name == "Alice Smith"
    assert event.body == MessageBody(text="hello")
    assert event.privacy is Privacy.DIRECT
    assert event.sent_at == SENT_AT
    assert event.external_id == "7"


def test_a_message_delivered_again_has_the_same_key_whatever_its_update_id_c04():
    first = parse(1, message=message())

    assert parse(2, message=message()).key == first.key
    assert parse(message=message(message_id=8)).key != first.key
    assert parse(message=message(chat={"id": 222, "type": "private"})).key != first.key


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"message_thread_id": 1, "is_topic_message": True}, None),
        ({"message_thread_id": 4711, "reply_to_message": message(message_id=4711)}, None),
        ({"message_thread_id": 7, "is_topic_message": True}, "7"),
        ({}, None),
    ],
    ids=["A the General topic", "B a reply in General", "C a topic", "no topic"],
)
def test_only_a_topic_that_can_be_answered_is_a_thread_c20(fields, thread):
    event = parse(message=in_group(chat=FORUM, **fields))

    assert event.address.thread == thread
    assert event.address.chat == "-1001000000001"


def test_a_topic_of_a_private_chat_is_a_thread():
    event = parse(message=message(message_thread_id=12, is_topic_message=True))

    assert (event.address.thread, event.privacy, event.body.addressed) == ("12", Privacy.DIRECT, True)


def test_privacy_is_what_the_chat_says():
    assert parse(message=in_group()).privacy is Privacy.PRIVATE_GROUP
    assert parse(message=in_group(chat={**GROUP, "username": "open_team"})).privacy is Privacy.PUBLIC


def test_an_edit_names_the_message_it_changes_and_has_a_key_of_its_own_c05():
    original = parse(message=message())
    edit = parse(edited_message=message(text="hello!", edit_date=DATE + 60))
    next_edit = parse(5002, edited_message=message(text="hey"))

    assert edit.body == EditBody(message_key=original.key, text="hello!")
    assert edit.sent_at == SENT_AT + timedelta(minutes=1)
    assert len({original.key, edit.key, next_edit.key}) == 3


def test_an_edit_that_changes_nothing_that_can_be_read_is_an_edit_all_the_same_c05():
    """A preview was added: who knows the text compares."""
    edit = parse(edited_message=message(edit_date=DATE, link_preview_options={"url": "https://example.org/a"}))

    assert edit.body.text == "hello"


def test_an_edited_caption_is_an_edit_and_so_is_a_caption_that_is_taken_away():
    photo = [{"file_id": "p1"}]

    assert parse(edited_message=message(text=None, caption="new", photo=photo)).body.text == "new"
    assert parse(edited_message=message(text=None, photo=photo)).body.text == ""


@pytest.mark.parametrize(
    "edited",
    [
        message(text=None, location={"latitude": 1.0, "longitude": 2.0}),
        message(text=None, poll={"id": "1"}),
        message(text="/new@other_bot"),
        message(BOT, text="mine"),
    ],
)
def test_edits_without_a_text_for_this_bot_are_no_events_c05(edited):
    assert parse(edited_message=edited) is None


def test_a_press_carries_token_card_and_query():
    event = parse(callback_query=press())

    assert event.body == PressBody(token="tok", card="9", acknowledge="42")
    assert event.sender.identity == "telegram:111"
    assert event.address.chat == "111"
    assert event.sent_at == NOW


def test_a_press_on_a_message_that_telegram_no_longer_shows_is_heard():
    gone = {"chat": PRIVATE, "message_id": 9, "date": 0}

    assert parse(callback_query={"id": "42", "from": ALICE, "message": gone, "data": "tok"}).body.card == "9"


@pytest.mark.parametrize("sender", [OTHER_BOT, ANONYMOUS, {**ANONYMOUS, "is_bot": False}, BOT])
def test_only_a_person_can_press(sender):
    assert parse(callback_query=press(sender, chat=GROUP)) is None


def test_a_reaction_holds_all_that_are_there_now():
    event = parse(message_reaction=reaction(emoji("👍"), {"type": "custom_emoji", "custom_emoji_id": "5368"}))

    assert event.body == ReactionBody(message="9", emoji=("👍", "custom emoji 5368"))
    assert (event.sender.identity, event.external_id, event.sent_at) == ("telegram:111", "9", SENT_AT)


def test_a_reaction_that_was_taken_back_leaves_none():
    assert parse(message_reaction=reaction(old_reaction=[emoji("👍")])).body == ReactionBody(message="9", emoji=())


def test_a_kind_of_reaction_that_nobody_knows_yet_is_still_one():
    assert parse(message_reaction=reaction({"type": "paid"}, {"type": "shiny"})).body.emoji == (
        "⭐",
        "another reaction",
    )


def test_reactions_of_chats_and_of_the_bot_itself_are_no_events_c08():
    assert parse(message_reaction=reaction(emoji("👍"), user=None, actor_chat=GROUP)) is None
    assert parse(message_reaction=reaction(emoji("👍"), user=BOT)) is None


@pytest.mark.parametrize(
    ("old", "new", "fields", "present"),
    [
        ("left", "member", {}, True),
        ("kicked", "administrator", {}, True),
        ("left", "restricted", {"is_member": True}, True),
        ("member", "left", {}, False),
        ("administrator", "kicked", {}, False),
        ("member", "restricted", {"is_member": False}, False),
        ("member", "a state to come", {}, False),
    ],
)
def test_being_let_in_and_removed_is_told_with_who_did_it(old, new, fields, present):
    event = parse(my_chat_member=membership(old, new, **fields))

    assert event.body == MembershipBody(present=present)
    assert (event.sender.identity, event.address.key) == ("telegram:111", "telegram/900/-1001000000001")


def test_a_person_who_blocks_the_bot_and_takes_it_back_is_told():
    blocked = parse(my_chat_member=membership("member", "kicked", chat=PRIVATE))
    unblocked = parse(my_chat_member=membership("kicked", "member", chat=PRIVATE))

    assert (blocked.body.present, unblocked.body.present) == (False, True)
    assert blocked.privacy is Privacy.DIRECT


@pytest.mark.parametrize(
    "change",
    [
        membership("member", "administrator"),
        membership("left", "kicked"),
        membership("member", "left", sender=BOT),
        membership("left", "administrator", chat=CHANNEL),
    ],
    ids=["promoted", "banned when out", "left by itself", "a channel"],
)
def test_a_membership_that_does_not_change_who_hears_whom_is_no_event(change):
    assert parse(my_chat_member=change) is None


def test_an_anonymous_administrator_who_lets_the_bot_in_is_nobodys_identity():
    event = parse(my_chat_member=membership("left", "member", sender=ANONYMOUS))

    assert (event.sender.identity, event.sender.name) == ("telegram:-1001000000001", "anonymous admin")


def test_both_tellings_of_a_migration_are_one_event_from_the_old_to_the_new_chat_c20():
    old, new = {"id": -4001, "type": "group", "title": "Team"}, {"id": -1001000000002, "type": "supergroup"}
    left = parse(1, message=in_group(None, chat=old, migrate_to_chat_id=-1001000000002))
    came = parse(2, message=in_group(None, ANONYMOUS, chat=new, sender_chat=new, migrate_from_chat_id=-4001))

    for event in (left, came):
        assert event.address.key == "telegram/900/-4001"
        assert event.body == MigrationBody(chat="-1001000000002")
        assert event.key == "migration/-4001/-1001000000002"


def test_a_migration_is_told_whoever_it_is_from_c20():
    for sender in (None, BOT):
        assert parse(message=in_group(None, sender, migrate_to_chat_id=-5)).body == MigrationBody(chat="-5")


@pytest.mark.parametrize(
    "update",
    [
        {"message": message(None)},
        {"message": message(BOT)},
        {"message": in_group("done", {**BOT, "is_bot": False})},
        {"message": message(text=None, new_chat_members=[ALICE])},
        {"message": in_group(None, pinned_message=message())},
        {"message": in_group(None, new_chat_title="Team 2")},
        {"message": in_group("/new@other_bot")},
        {"callback_query": {"id": "1", "from": ALICE, "game_short_name": "g", "chat_instance": "1"}},
        {"channel_post": message(None, chat=CHANNEL, sender_chat=CHANNEL)},
        {"poll": {"id": "1"}},
        {},
    ],
)
def test_own_messages_service_messages_and_other_updates_are_no_events_c08(update):
    assert parse(**update) is None


def test_what_another_bot_says_is_told_as_a_bots():
    event = parse(message=in_group("@lodger_bot ok, next?", OTHER_BOT))

    assert event.sender.is_bot
    assert event.body.addressed


def test_an_update_that_is_no_object_is_malformed():
    with pytest.raises(MalformedUpdate):
        parse_update(["update"], ACCOUNT, NOW)


@pytest.mark.parametrize(
    "update",
    [
        {"message": "text"},
        {"message": {"message_id": 7, "from": ALICE, "date": DATE, "text": "no chat"}},
        {"message": message(message_id="7")},
        {"message": message(message_id=True)},
        {"message": message(message_id=1 << 63)},
        {"message": message(text=5)},
        {"message": message(date="soon")},
        {"message": message(date=10**15)},
        {"message": message("Alice")},
        {"message": message(text=None, document={"file_name": "no id"})},
        {"callback_query": press() | {"id": 4}},
        {"message_reaction": reaction() | {"new_reaction": "👍"}},
        {"my_chat_member": membership("left", "member") | {"new_chat_member": {}}},
        {"edited_message": message(), "update_id": None},
    ],
)
def test_a_malformed_update_is_named_as_such(update):
    with pytest.raises(MalformedUpdate):
        parse_update({"update_id": 5001, **update}, ACCOUNT, NOW)


def test_an_update_is_numbered_or_not():
    assert update_id_of({"update_id": 5001}) == 5001
    assert [update_id_of(update) for update in ({}, [], {"update_id": "5001"}, {"update_id": 1 << 64})] == [None] * 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
WHOLE = {
    "message": in_group(
        chat=FORUM,
        message_thread_id=5,
        is_topic_message=True,
        entities=[{"type": "text_mention", "offset": 0, "length": 1, "user": BOT}],
        reply_to_message=message(BOT, message_id=4),
        quote={"text": "part"},
        forward_origin={"type": "user", "sender_user": ALICE},
        photo=[{"file_id": "p", "width": 1, "height": 1}],
    ),
    "edited_message": in_group(edit_date=DATE, document={"file_id": "d"}),
    "callback_query": press(),
    "message_reaction": reaction(emoji("👍")),
    "my_chat_member": membership("left", "restricted", is_member=True),
}


@st.composite
def spoilt(draw, whole):
    """Return `whole` with something else in up to three places, however deep."""
    if not isinstance(whole, dict) or draw(st.integers(0, 4)) == 0:
        return draw(JSON)
    result = dict(whole)
    for name in draw(st.lists(st.sampled_from([*whole, "sender_chat", "migrate_to_chat_id", "caption"]), max_size=3)):
        inner = result.get(name)
        result[name] = draw(spoilt(inner[0] if isinstance(inner, list) and inner else inner))
    return result


@given(st.sampled_from(list(WHOLE)).flatmap(lambda kind: st.tuples(st.just(kind), spoilt(WHOLE[kind]))), JSON)
def test_no_update_raises_anything_but_malformed(named, update_id):
    kind, body = named
    try:
        event = parse_update({"update_id": update_id, kind: body}, ACCOUNT, NOW)
    except MalformedUpdate as error:
        assert str(error)  # noqa: PT017 - any other error fails the test by itself
    else:
        assert event is None or len(event.sender.name) <= 128
