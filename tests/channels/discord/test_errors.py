import json
from datetime import timedelta

import httpx
import pytest

from channels.discord.errors import (
    BAN_WITHOUT_TIME,
    RETRY_SOON,
    InteractionAnswered,
    InteractionGone,
    MessageGone,
    NotInGuild,
    OldEditsLimited,
    PlaceGone,
    ReactionGone,
    ThreadArchived,
    ThreadExists,
    is_old_edits_limit,
    limit_of,
    no_json,
    refusal_of,
    unreached,
)
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, TextTooLong
from tests.platforms.discord_refusals import invalid_form, too_long


def answer(status, code=0, message="Words", **fields):
    return httpx.Response(status, json={"code": code, "message": message, **fields})


def meaning(response, mask=lambda text: text):
    return refusal_of(response, mask)


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, 0, ChannelDown),
        (401, 50027, InteractionGone),
        (404, 10003, PlaceGone),
        (404, 10004, NotInGuild),
        (404, 10008, MessageGone),
        (400, 10014, ReactionGone),
        (404, 10015, InteractionGone),
        (404, 10062, InteractionGone),
        (400, 40060, InteractionAnswered),
        (400, 50083, ThreadArchived),
        (400, 160004, ThreadExists),
        (403, 50001, SendRejected),
        (403, 50013, SendRejected),
        (403, 50007, SendRejected),
        (413, 40005, SendRejected),
        (400, 50006, SendRejected),
        (400, 50035, SendRejected),
        (404, 0, SendRejected),
        (400, 20016, SendLimited),
        (429, 0, SendLimited),
        (429, 30046, OldEditsLimited),
        (400, 30046, OldEditsLimited),
        (500, 0, SendUnknown),
        (503, 10008, SendUnknown),
        (302, 0, SendUnknown),
    ],
)
def test_every_refusal_has_its_meaning(status, code, error):
    assert type(meaning(answer(status, code))) is error


def test_a_text_that_is_too_long_is_told_from_other_fields_that_are_c14():
    def refused(refusal):
        return type(meaning(httpx.Response(refusal.status, json=refusal.as_json())))

    assert refused(too_long("content", 2000)) is TextTooLong
    assert refused(too_long("data.content", 2000)) is TextTooLong
    assert refused(too_long("nonce", 25)) is SendRejected
    assert refused(invalid_form("content", "BASE_TYPE_REQUIRED", "Required")) is SendRejected


def test_a_refusal_tells_the_field_and_what_it_means_to_people():
    form = too_long("embeds.0.title", 256)

    assert meaning(httpx.Response(400, json=form.as_json())).detail == (
        "Invalid Form Body [50035] embeds.0.title: Must be 256 or fewer in length."
    )
    assert meaning(answer(403, 50013, "Missing Permissions")).detail == (
        "the bot lacks a permission there (Missing Permissions [50013])"
    )


@pytest.mark.parametrize(
    "body",
    ["[]", '"text"', '{"code": "x", "errors": [1, {"_errors": 3}]}', '{"errors": {"a": {"_errors": [null]}}}', "{}"],
)
def test_refusals_of_any_form_are_understood(body):
    assert isinstance(meaning(httpx.Response(400, text=body)), SendRejected)


@pytest.mark.parametrize(
    ("named", "seconds"),
    [
        (0.35, 0.35),
        (3, 3),
        ("2.5", 2.5),
        (None, 5),
        ("soon", 5),
        (-1, 5),
        (float("inf"), 5),
        (149, 149),
        (10**12, 2_592_000),
    ],
)
def test_a_waiting_time_may_be_any_number_c15(named, seconds):
    body = json.dumps({"retry_after": named, "global": False})
    limit = limit_of(httpx.Response(429, content=body))

    assert limit.retry_after == timedelta(seconds=seconds)
    assert not limit.everywhere
    assert meaning(httpx.Response(429, content=body)).retry_after == timedelta(seconds=seconds)


def test_a_limit_may_be_for_everything_c15():
    by_body = httpx.Response(429, json={"retry_after": 1.5, "global": True})
    by_header = httpx.Response(429, json={"retry_after": 1}, headers={"X-RateLimit-Global": "true"})
    not_of_discord = httpx.Response(429, text="<html>1015</html>", headers={"Retry-After": "20"})

    assert [limit_of(response).everywhere for response in (by_body, by_header, not_of_discord)] == [True] * 3
    assert limit_of(not_of_discord).retry_after == timedelta(seconds=20)


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, SendLimited), (429, SendLimited), (413, SendRejected), (404, SendRejected), (502, SendUnknown)],
)
def test_a_page_of_what_stands_before_discord_is_told_from_its_words(status, error):
    refused = meaning(httpx.Response(status, text="<html>no</html>"))

    assert type(refused) is error
    if error is SendLimited:
        assert refused.retry_after == BAN_WITHOUT_TIME


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), SendLimited),
        (httpx.ConnectTimeout("slow"), SendLimited),
        (httpx.PoolTimeout("busy"), SendLimited),
        (httpx.WriteTimeout("slow"), SendLimited),
        (httpx.ReadTimeout("slow"), SendUnknown),
        (httpx.ReadError("cut"), SendUnknown),
        (httpx.WriteError("cut"), SendUnknown),
        (httpx.RemoteProtocolError("cut"), SendUnknown),
    ],
)
def test_only_what_surely_never_left_is_safe_to_try_again(error, kind):
    told = unreached(error, lambda text: text)

    assert type(told) is kind
    if kind is SendLimited:
        assert told.retry_after == RETRY_SOON


def test_details_are_masked_and_short():
    hidden = meaning(answer(400, 1, "a secret " + "x" * 999), lambda text: text.replace("secret", "***"))

    assert "secret" not in hidden.detail
    assert len(hidden.detail) == 300
    assert "***" in unreached(httpx.ReadError("a secret"), lambda text: text.replace("secret", "***")).detail


def test_the_limit_on_old_edits_is_told_from_that_of_a_route():
    assert is_old_edits_limit(answer(429, 30046))
    assert not is_old_edits_limit(answer(429, 0))
    assert not is_old_edits_limit(httpx.Response(429, text="no"))


def test_a_success_without_json_leaves_the_outcome_open():
    assert "text/html" in no_json(httpx.Response(200, html="<p>portal</p>")).detail
