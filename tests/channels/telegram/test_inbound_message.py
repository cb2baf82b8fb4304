import pytest

from channels.telegram.inbound_message import message_body
from channels.telegram.inbound_senders import BotAccount
from core.contracts.addresses import Attachment, MessageBody, Quote
from tests.platforms.telegram_json import (
    ALICE,
    ANONYMOUS,
    BOB,
    BOT,
    CHANNEL,
    FORUM,
    GROUP,
    OTHER_BOT,
    in_group,
    message,
)

ACCOUNT = BotAccount(channel="telegram", id=900, username="lodger_bot")


def body(said):
    return message_body(said, ACCOUNT)


def test_the_text_stays_as_it_was_written():
    assert body(in_group("  @lodger_bot\nlunch? ")).text == "  @lodger_bot\nlunch? "


def test_commands_lose_the_bots_name_and_other_bots_commands_are_dropped():
    assert body(message(text="/new@Lodger_Bot now")).text == "/new now"
    assert body(message(text="/new now")).text == "/new now"
    assert body(in_group("/new@other_bot")) is None
    assert body(message(text="mail me@lodger_bot")).text == "mail me@lodger_bot"


@pytest.mark.parametrize(
    ("text", "addressed"),
    [
        ("lunch?", False),
        ("hey @lodger_bot, lunch?", True),
        ("hey @LODGER_BOT", True),
        ("hey @lodger_bot2", False),
        ("mail me@lodger_bot", False),
        ("/status", True),
        ("/status now", True),
        ("/status@lodger_bot", True),
        ("please /status@lodger_bot", True),
        ("/usr/bin is missing", False),
        ("/ what", False),
    ],
)
def test_group_talk_is_addressed_by_name_or_by_command(text, addressed):
    assert body(in_group(text)).addressed is addressed
    assert body(in_group(None, caption=text, photo=[{"file_id": "p"}])).addressed is addressed
    assert body(message(text=text)).addressed


@pytest.mark.parametrize("where", ["entities", "caption_entities"])
def test_a_mention_that_holds_the_bots_id_addresses_it(where):
    def mention(user):
        return {where: [{"type": "bold"}, {"type": "text_mention", "offset": 0, "length": 2, "user": user}]}

    assert body(in_group("hi", **mention(BOT))).addressed
    assert not body(in_group("hi", **mention(ALICE))).addressed


def test_a_reply_to_the_bot_addresses_it_and_a_reply_to_others_does_not():
    assert body(in_group("yes", reply_to_message=message(BOT, GROUP))).addressed
    assert not body(in_group("yes", reply_to_message=message(ALICE, GROUP))).addressed


def test_a_bot_without_a_name_is_addressed_by_replies():
    nameless = BotAccount(channel="telegram", id=900, username="")

    assert not message_body(in_group("mail me @ home"), nameless).addressed
    assert message_body(in_group("yes", reply_to_message=message(BOT, GROUP)), nameless).addressed


@pytest.mark.parametrize("creation", [{"forum_topic_created": {"name": "T"}}, {}])
def test_talk_in_a_topic_that_the_bot_opened_is_no_reply_to_it(creation):
    opening = message(BOT, FORUM, message_id=5, text=None, **creation)
    said = body(in_group(chat=FORUM, message_thread_id=5, is_topic_message=True, reply_to_message=opening))

    assert not said.addressed
    assert said.quote is None


def test_a_reply_in_general_is_a_reply_though_it_carries_its_thread_c20():
    said = body(in_group(chat=FORUM, message_thread_id=4711, reply_to_message=message(BOT, FORUM, message_id=4711)))

    assert said.addressed
    assert said.quote.external_id == "4711"


@pytest.mark.parametrize(
    "said",
    [
        in_group("/new @lodger_bot", ANONYMOUS, sender_chat=GROUP),
        in_group("@lodger_bot go", ANONYMOUS),
        in_group("@lodger_bot go", sender_chat=CHANNEL, is_automatic_forward=True),
        in_group("go", ANONYMOUS, sender_chat=GROUP, reply_to_message=message(BOT, GROUP)),
    ],
)
def test_what_is_written_in_the_name_of_a_chat_is_overheard_and_never_addressed(said):
    assert not body(said).addressed


def test_a_reply_quotes_the_message_it_answers():
    said = body(message(text="why?", reply_to_message=message(BOT, message_id=4, text="because")))

    assert said.quote == Quote(text="because", author="Lodger", by_agent=True, external_id="4")


def test_a_marked_part_is_the_quote():
    replied = message(BOB, GROUP, message_id=4, text="one two three")
    said = body(in_group(reply_to_message=replied, quote={"text": "two", "position": 4, "is_manual": True}))

    assert said.quote == Quote(text="two", author="Bob", external_id="4")


@pytest.mark.parametrize(
    ("replied", "text"),
    [
        ({"caption": "the cat", "photo": [{"file_id": "p"}]}, "the cat"),
        ({"photo": [{"file_id": "p"}]}, "a photo"),
        ({"document": {"file_id": "d", "file_name": "plan.pdf"}}, "a file, plan.pdf"),
        ({"sticker": {}}, "a sticker"),
    ],
)
def test_a_reply_to_something_without_text_says_what_it_was(replied, text):
    assert body(message(reply_to_message=message(BOB, text=None, **replied))).quote.text == text


def test_a_reply_to_what_shows_nothing_quotes_nothing():
    assert body(in_group(reply_to_message=message(BOB, GROUP, text=None, new_chat_title="T"))).quote is None


def test_a_reply_to_a_post_of_a_channel_names_the_channel():
    replied = in_group("news", sender_chat=CHANNEL)

    assert body(in_group("nice", reply_to_message=replied)).quote.author == "News"


@pytest.mark.parametrize(
    ("origin", "quote"),
    [
        ({"type": "user", "sender_user": BOB}, Quote(text="part", author="Bob")),
        ({"type": "user", "sender_user": BOT}, Quote(text="part", author="Lodger", by_agent=True)),
        ({"type": "channel", "chat": CHANNEL}, Quote(text="part", author="the channel News")),
    ],
)
def test_a_reply_to_a_message_of_another_chat_is_quoted_without_its_id(origin, quote):
    said = body(in_group(external_reply={"origin": origin, "message_id": 4}, quote={"text": "part"}))

    assert said.quote == quote
    assert not said.addressed


def test_a_reply_to_a_photo_of_another_chat_says_so():
    assert body(message(external_reply={"origin": {}, "photo": []})).quote == Quote(text="a photo", author="")


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"type": "user", "sender_user": ALICE}, "Alice Smith"),
        ({"type": "user", "sender_user": OTHER_BOT}, "Peer"),
        ({"type": "hidden_user", "sender_user_name": "Eve\n"}, "Eve"),
        ({"type": "chat", "sender_chat": GROUP}, "the group Team"),
        ({"type": "channel", "chat": CHANNEL, "message_id": 3}, "the channel News"),
        ({"type": "user"}, "somebody"),
        ({"type": "a kind to come"}, "somebody"),
        ("no object", ""),
        (None, ""),
    ],
)
def test_a_forwarded_message_says_in_words_where_it_is_from(origin, words):
    assert body(message(forward_origin=origin)).forwarded_from == words


def test_the_photos_of_an_album_say_that_they_belong_together_c10():
    said = [
        body(message(text=None, caption=caption, photo=[{"file_id": handle}], media_group_id="mg1"))
        for handle, caption in (("p1", "which is sharpest?"), ("p2", None), ("p3", None))
    ]

    assert [one.album for one in said] == ["mg1"] * 3
    assert [one.text for one in said] == ["which is sharpest?", "", ""]
    assert [file.handle for one in said for file in one.attachments] == ["p1", "p2", "p3"]
    assert body(message(text="hurry")).album is None


def test_a_caption_is_the_text_of_its_file():
    photo = Attachment(handle="p", name="photo.jpg", media_type="image/jpeg")

    assert body(message(text=None, caption="look", photo=[{"file_id": "p"}])) == MessageBody(
        text="look", attachments=(photo,)
    )


def test_what_cannot_be_taken_in_comes_as_words_without_a_text():
    assert body(message(text=None, sticker={"file_id": "s", "emoji": "🙂"})) == MessageBody(
        text="", unsupported="a sticker"
    )


@pytest.mark.parametrize(
    "service",
    [
        {"new_chat_members": [ALICE]},
        {"left_chat_member": BOB},
        {"pinned_message": message()},
        {"forum_topic_created": {"name": "T"}},
        {"new_chat_photo": [{"file_id": "p"}]},
        {},
    ],
)
def test_service_messages_say_nothing(service):
    assert body(in_group(None, **service)) is None
