from datetime import timedelta

import aiohttp
import pytest

from channels.slack.errors import (
    LIMIT_WITHOUT_TIME,
    ActGone,
    MessageGone,
    NotEditable,
    NotInChannel,
    ScopeMissing,
    StillStreaming,
    StreamOver,
    ThreadGone,
    refusal,
    unreached,
)
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, TextTooLong


def same(text):
    return text


def meaning(word, status=200, **body):
    return refusal(status, {"ok": False, "error": word, **body}, {}, same)


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("invalid_auth", ChannelDown),
        ("account_inactive", ChannelDown),
        ("token_revoked", ChannelDown),
        ("not_authed", ChannelDown),
        ("msg_too_long", TextTooLong),
        ("msg_blocks_too_long", TextTooLong),
        ("message_not_found", MessageGone),
        ("edit_window_closed", NotEditable),
        ("cant_update_message", NotEditable),
        ("streaming_state_conflict", StillStreaming),
        ("message_not_in_streaming_state", StreamOver),
        ("thread_not_found", ThreadGone),
        ("cannot_reply_to_message", ThreadGone),
        ("not_in_channel", NotInChannel),
        ("channel_not_found", NotInChannel),
        ("expired_trigger_id", ActGone),
        ("used_url", ActGone),
        ("ratelimited", SendLimited),
        ("fatal_error", SendUnknown),
        ("internal_error", SendUnknown),
        ("invalid_blocks", SendRejected),
        ("a_word_of_tomorrow", SendRejected),
    ],
)
def test_slacks_words_have_their_meaning(word, error):
    assert type(meaning(word)) is error
    assert word in meaning(word).detail


@pytest.mark.parametrize("word", ["is_archived", "restricted_action", "user_disabled", "invalid_name"])
def test_refusals_that_people_can_act_on_are_said_in_words(word):
    assert meaning(word).detail.endswith(f"({word})")


def test_a_missing_scope_is_named_with_what_to_do():
    error = meaning("missing_scope", needed="reactions:write", provided="chat:write")

    assert isinstance(error, ScopeMissing)
    assert error.needed == "reactions:write"
    assert "install the app again" in error.detail


def test_what_slack_says_beside_its_word_is_told_masked_and_short():
    body = {"error": "invalid_arguments", "response_metadata": {"messages": ["[ERROR] secret " + "x" * 500]}}
    error = refusal(200, body, {}, lambda text: text.replace("secret", "***"))

    assert error.detail.startswith("invalid_arguments; [ERROR] *** x")
    assert len(error.detail) == 300


@pytest.mark.parametrize("metadata", [None, "x", {}, {"messages": None}, {"messages": "x"}])
def test_what_it_says_may_be_of_any_kind(metadata):
    assert meaning("no_text", response_metadata=metadata).detail == "no_text"


@pytest.mark.parametrize(
    ("named", "wait"),
    [
        ("10", timedelta(seconds=10)),
        ("0.35", timedelta(seconds=0.35)),
        ("1e300", timedelta(days=1)),
        ("nan", LIMIT_WITHOUT_TIME),
        ("-1", LIMIT_WITHOUT_TIME),
        ("soon", LIMIT_WITHOUT_TIME),
        (None, LIMIT_WITHOUT_TIME),
    ],
)
def test_a_limit_says_how_long_to_wait_c15(named, wait):
    headers = {} if named is None else {"retry-AFTER": named}
    error = refusal(429, {"ok": False, "error": "ratelimited"}, headers, same)

    assert isinstance(error, SendLimited)
    assert error.retry_after == wait


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, {}, SendUnknown),
        (503, {"error": "anything"}, SendUnknown),
        (200, {}, SendUnknown),
        (200, {"ok": True}, SendUnknown),
        (302, {}, SendUnknown),
        (403, {}, SendLimited),
        (407, {}, SendLimited),
        (429, {}, SendLimited),
        (200, {"ok": False, "not_in_channel": True}, NotInChannel),
    ],
)
def test_only_what_surely_had_no_effect_is_known(status, body, error):
    assert type(refusal(status, body, {}, same)) is error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (aiohttp.ConnectionTimeoutError(), SendLimited),
        (aiohttp.InvalidURL("x"), SendLimited),
        (aiohttp.ServerDisconnectedError(), SendUnknown),
        (aiohttp.SocketTimeoutError(), SendUnknown),
        (aiohttp.ClientPayloadError(), SendUnknown),
        (TimeoutError(), SendUnknown),
        (OSError("secret"), SendUnknown),
    ],
)
def test_a_request_without_an_answer_is_unknown_unless_it_never_left(error, meaning):
    told = unreached(error, lambda text: text.replace("secret", "***"))

    assert type(told) is meaning
    assert "secret" not in told.detail
