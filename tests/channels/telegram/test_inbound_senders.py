import pytest

from channels.telegram.inbound_json import MalformedUpdate
from channels.telegram.inbound_senders import BotAccount, is_in_name_of_chat, sender_of, user_as_sender
from core.contracts.addresses import Sender
from tests.platforms.telegram_json import ALICE, ANONYMOUS, BOB, BOT, CHANNEL, GROUP, OTHER_BOT, in_group, message

ACCOUNT = BotAccount(channel="telegram", id=900, username="lodger_bot")
CHANNEL_BOT = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}
TELEGRAM = {"id": 777000, "is_bot": False, "first_name": "Telegram"}


def test_a_person_and_another_bot_are_who_they_are():
    assert sender_of(message(ALICE), GROUP, ACCOUNT) == Sender(identity="telegram:111", name="Alice Smith")
    assert sender_of(message(OTHER_BOT), GROUP, ACCOUNT).is_bot


@pytest.mark.parametrize("own", [BOT, {"id": 900, "first_name": "Me"}])
def test_the_bot_itself_is_nobody_to_hear_c08(own):
    assert sender_of(message(own), GROUP, ACCOUNT) is None
    assert user_as_sender(own, GROUP, ACCOUNT) is None


def test_an_anonymous_administrator_is_the_group_and_not_a_person():
    posted = in_group("hi", ANONYMOUS, sender_chat=GROUP)

    sender = sender_of(posted, GROUP, ACCOUNT)
    assert (sender.identity, sender.name) == ("telegram:-1001000000001", "anonymous admin")
    assert is_in_name_of_chat(posted)
    assert is_in_name_of_chat(in_group("hi", ANONYMOUS))
    assert not is_in_name_of_chat(in_group("hi", OTHER_BOT))


def test_an_anonymous_administrator_is_one_by_what_telegram_says_and_never_the_owner():
    posted = in_group("hi", ANONYMOUS, sender_chat=GROUP)

    assert sender_of(posted, GROUP, ACCOUNT).roles == ("telegram:administrator",)


@pytest.mark.parametrize(
    "posted",
    [
        in_group("hi", ANONYMOUS),
        in_group("hi", BOB, sender_chat=GROUP),
        in_group("hi", None, sender_chat=GROUP),
        in_group("hi", ANONYMOUS, sender_chat=CHANNEL),
        in_group("hi", CHANNEL_BOT, sender_chat=CHANNEL),
    ],
    ids=["no chat", "a person", "nobody", "another chat", "a channel"],
)
def test_nobody_else_in_the_name_of_a_chat_is_an_administrator(posted):
    assert sender_of(posted, GROUP, ACCOUNT).roles == ()


def test_a_post_of_the_linked_channel_is_the_channels():
    forwarded = in_group("news", TELEGRAM, sender_chat=CHANNEL, is_automatic_forward=True)

    assert sender_of(forwarded, GROUP, ACCOUNT) == Sender(identity="telegram:-1002000000002", name="News")


def test_a_chat_can_never_have_the_identity_of_a_person():
    disguised = in_group("hi", sender_chat={"id": 111, "type": "channel", "title": "Alice"})

    assert sender_of(disguised, GROUP, ACCOUNT).identity == "telegram:-111"


def test_whoever_has_no_name_is_called_by_a_number():
    assert sender_of(message({"id": 5, "first_name": ""}), GROUP, ACCOUNT).name == "5"
    assert sender_of(in_group(sender_chat={"id": -5}), GROUP, ACCOUNT).name == "-5"


def test_names_are_one_short_line_of_valid_text():
    name = sender_of(message({"id": 5, "first_name": "A\x00\n" + "b" * 300, "last_name": 7}), GROUP, ACCOUNT).name

    assert len(name) == 128
    assert name.startswith("A\ufffd bbb")


def test_a_sender_without_an_id_is_malformed():
    with pytest.raises(MalformedUpdate):
        sender_of(message({"first_name": "A"}), GROUP, ACCOUNT)
