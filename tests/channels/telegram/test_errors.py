import json
from datetime import timedelta

import httpx
import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from channels.telegram.errors import (
    EntitiesRefused,
    FloodLimit,
    MediaRefused,
    MessageGone,
    NotInChat,
    NotModified,
    PollConflict,
    ThreadGone,
    TooOldToDelete,
    as_duration,
    flood_limit,
    translate,
)
from core.contracts.errors import (
    ChannelDown,
    ChatMoved,
    SendLimited,
    SendRejected,
    SendUnknown,
    TextTooLong,
)


def caused(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (FloodLimit(timedelta(seconds=3)), SendLimited),
        (InvalidToken("Unauthorized"), ChannelDown),
        (Conflict("Conflict: terminated by other getUpdates request"), PollConflict),
        (BadRequest("Bad Request: message is not modified: specified new"), NotModified),
        (BadRequest("Bad Request: message is too long"), TextTooLong),
        (BadRequest("Bad Request: MESSAGE_TOO_LONG"), TextTooLong),
        (BadRequest("Bad Request: message to edit not found"), MessageGone),
        (BadRequest("Bad Request: message thread not found"), ThreadGone),
        (BadRequest("Bad Request: BUTTON_DATA_INVALID"), SendRejected),
        (Forbidden("Forbidden: bot was blocked by the user"), SendRejected),
        (BadRequest("Bad Request: TOPIC_DELETED"), ThreadGone),
        (BadRequest("Bad Request: message to delete not found"), MessageGone),
        (BadRequest("Bad Request: message can't be deleted for everyone"), TooOldToDelete),
        (BadRequest("Bad Request: can't parse entities: unexpected end tag"), EntitiesRefused),
        (BadRequest("Bad Request: entity beginning at UTF-16 offset 7 ends after the end"), EntitiesRefused),
        (BadRequest("Bad Request: ENTITY_BOUNDS_INVALID"), EntitiesRefused),
        (BadRequest("Bad Request: PHOTO_INVALID_DIMENSIONS"), MediaRefused),
        (BadRequest("Bad Request: IMAGE_PROCESS_FAILED"), MediaRefused),
        (BadRequest("Bad Request: VOICE_MESSAGES_FORBIDDEN"), MediaRefused),
        (BadRequest("Bad Request: REACTION_INVALID"), SendRejected),
        (BadRequest("Bad Request: chat not found"), NotInChat),
        (Forbidden("Forbidden: bot was kicked from the supergroup chat"), NotInChat),
        (Forbidden("Forbidden: bot is not a member of the supergroup chat"), NotInChat),
        (ChatMigrated(-100200), ChatMoved),
        (NetworkError("Request Entity Too Large (413)"), SendRejected),
        (caused(TimedOut(), httpx.WriteTimeout("slow")), SendLimited),
        (caused(NetworkError("httpx.ConnectError: "), httpx.ConnectError("refused")), SendLimited),
        (caused(TimedOut(), httpx.ConnectTimeout("slow")), SendLimited),
        (caused(TimedOut(), httpx.PoolTimeout("full")), SendLimited),
        (caused(TimedOut(), httpx.ReadTimeout("slow")), SendUnknown),
        (caused(NetworkError("httpx.ReadError: "), httpx.ReadError("reset")), SendUnknown),
        (caused(NetworkError("x"), httpx.RemoteProtocolError("disconnected")), SendUnknown),
        (NetworkError("Bad Gateway"), SendUnknown),
        (TelegramError("Invalid server response"), SendUnknown),
    ],
)
def test_each_error_has_one_meaning(error, meaning):
    assert type(translate(error, lambda text: text)) is meaning


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        ("bot was blocked by the user", "the person has blocked the bot"),
        ("bot was kicked from the group chat", "the bot was removed from the chat"),
        ("user is deactivated", "account does not exist any more"),
        ("bot can't initiate conversation with a user", "never written to the bot"),
        ("not enough rights to send text messages to the chat", "the bot may not write there"),
    ],
)
def test_a_refusal_is_told_in_words_beside_telegrams_own(wording, words):
    detail = translate(Forbidden(f"Forbidden: {wording}"), lambda text: text).detail

    assert words in detail
    assert wording in detail


def test_a_moved_chat_names_where_it_goes_on_c20():
    assert translate(ChatMigrated(-1001000000002), lambda text: text).chat == "-1001000000002"


@pytest.mark.parametrize(
    ("retry_after", "seconds"), [(25, 25.0), (0.35, 0.35), (149, 149.0), (timedelta(seconds=30), 30.0)]
)
def test_every_form_of_a_waiting_time_is_understood_c15(retry_after, seconds):
    assert as_duration(retry_after).total_seconds() == seconds


@pytest.mark.parametrize("retry_after", [25, 0.35])
def test_the_waiting_time_is_read_from_the_answer_c15(retry_after):
    payload = json.dumps({"ok": False, "parameters": {"retry_after": retry_after}}).encode()

    assert flood_limit(payload).retry_after.total_seconds() == retry_after


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"parameters": {"retry_after": "soon"}}',
        b'{"parameters": {"retry_after": 1e300}}',
    ],
)
def test_a_429_that_names_no_time_waits_a_few_seconds(payload):
    assert flood_limit(payload).retry_after == timedelta(seconds=5)


def test_details_are_masked_and_short():
    error = NetworkError("secret " + "x" * 5000)
    meaning = translate(error, lambda text: text.replace("secret", "[secret NAME]"))

    assert meaning.detail.startswith("[secret NAME] xxx")
    assert len(meaning.detail) <= 300


def test_a_webhook_is_told_from_a_second_poller_c74():
    webhook = translate(Conflict("Conflict: can't use getUpdates method while webhook is active"), lambda text: text)
    poller = translate(Conflict("Conflict: terminated by other getUpdates request"), lambda text: text)

    assert (webhook.webhook, poller.webhook) == (True, False)
