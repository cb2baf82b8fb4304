"""Reading failures: statuses, bodies and the wish to wait."""

from datetime import UTC, datetime, timedelta

import pytest

from core.contracts.errors import ModelBusy, ModelOverflow, ModelRejected, ModelUnreachable
from core.models.failures import Failure, body_text, error_status, retry_after, translate

NOW = datetime(2026, 10, 21, 7, 27, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, timedelta(seconds=7)),
        ({"retry-after": "0"}, timedelta(0)),
        ({"retry-after": "2.5"}, timedelta(seconds=2.5)),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, timedelta(seconds=20)),
        ({"retry-after": "Wed, 21 Oct 2026 07:00:00 GMT"}, timedelta(0)),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00"}, None),
        ({"retry-after": "86400"}, timedelta(days=1)),
        ({"retry-after": "1e300"}, timedelta(days=365)),
        ({"retry-after-ms": "250", "retry-after": "1"}, timedelta(milliseconds=250)),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_the_wish_to_wait_is_read_or_ignored(headers, expected):
    """C37 B to E."""
    assert retry_after(headers, NOW) == expected


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (529, "Overloaded", ModelBusy),
        (500, "overloaded_error", ModelBusy),
        (503, "The engine is currently overloaded", ModelBusy),
        (503, "Service Unavailable", ModelUnreachable),
        (None, "Connection refused", ModelUnreachable),
        (429, "You exceeded your current quota (insufficient_quota)", ModelRejected),
        (429, "quota per minute", ModelBusy),
        (429, "prompt is too long for your tier's limit", ModelBusy),
        (500, "the request exceeds the available context size", ModelOverflow),
        (None, "maximum context length is 10", ModelOverflow),
        (401, "context length", ModelRejected),
        (418, "teapot", ModelRejected),
    ],
)
def test_status_and_wording_decide_together(status, text, expected):
    error = translate(Failure(text=text, status=status), lambda text: text)
    assert type(error) is expected
    assert error.status == status


def test_a_server_error_with_a_wish_to_wait_is_busy():
    error = translate(Failure(text="later", status=503, retry_after=timedelta(seconds=3)), lambda text: text)
    assert isinstance(error, ModelBusy)
    assert error.retry_after == timedelta(seconds=3)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"error":{"message":"m","type":"t","code":"c"}}', "m (c, t)"),
        ('{"error":"plain"}', "plain"),
        ('{"message":"top"}', "top"),
        ('[{"error":{"message":"google","code":400}}]', "google"),
        ('{"error":{"message":null}}', '{"error":{"message":null}}'),
        ("<html>oops</html>", "<html>oops</html>"),
        ("[" * 100_000, "[" * 100_000),
        ("[]", "[]"),
        ("", ""),
    ],
)
def test_error_bodies_of_any_shape_are_read(body, text):
    assert body_text(body) == text


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"error": {"code": 429}}, 429),
        ({"error": {"code": "503"}}, 503),
        ({"error": {"code": "server_error"}}, None),
        ({"error": "x"}, None),
        ([], None),
    ],
)
def test_the_status_inside_a_stream_is_found(data, status):
    assert error_status(data) == status


def test_an_empty_body_still_says_something():
    assert translate(Failure(text="", status=500), lambda text: text).detail == "HTTP 500 without a message"
