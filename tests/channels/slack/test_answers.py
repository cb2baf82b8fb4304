from datetime import UTC, datetime

import pytest

from channels.slack.answers import Answer, is_after


def answer(body=None, **headers):
    return Answer(body=body or {}, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("value", [None, 1, [1], {"a": 1}, "x"])
def test_what_is_of_another_kind_is_read_as_nothing(value):
    read = answer({"value": value, "response_metadata": value})

    assert read.text("value") == (value if isinstance(value, str) else "")
    assert read.item("value") == (value if isinstance(value, dict) else {})
    assert read.items("value") == ()
    assert read.texts("value") == ()
    assert read.next_cursor == ""
    assert answer().text("missing") == ""


def test_lists_are_read_without_what_does_not_belong_there():
    assert answer({"value": [{"a": 1}, "x", None]}).items("value") == ({"a": 1},)
    assert answer({"value": [{"a": 1}, "x", None]}).texts("value") == ("x",)


def test_headers_tell_scopes_and_the_time_however_they_are_written():
    assert answer(X_OAuth_Scopes="chat:write, users:read,").scopes == {"chat:write", "users:read"}
    assert answer().scopes == frozenset()
    assert answer(date="Mon, 30 Nov 2026 12:00:00 GMT").sent_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert answer(Date="soon").sent_at is None


def test_messages_are_ordered_by_their_ts():
    assert is_after("1700000001.000200", "1700000001.000100")
    assert is_after("1700000001.2", "1700000001.000100")
    assert not is_after("1700000001.000100", "1700000001.000100")
    assert not is_after("999999999.999999", "1700000001.000100")
    assert is_after("1.0", "")
    assert not is_after("nonsense", "1.0")
