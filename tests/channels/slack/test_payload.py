from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.payload import instant, item, items, text, ts_of

MICROSECOND = timedelta(microseconds=1)
CENTURY_MICROS = 100 * 365 * 86_400_000_000
INSTANTS = st.integers(0, CENTURY_MICROS).map(lambda micros: datetime(2000, 1, 1, tzinfo=UTC) + micros * MICROSECOND)


@pytest.mark.parametrize("value", [None, 5, True, ["x"], {"x": "y"}, b"x"])
def test_what_is_no_text_is_an_empty_one(value):
    assert text({"name": value}, "name") == ""
    assert text({}, "name") == ""
    assert text({"name": "x"}, "name") == "x"


@pytest.mark.parametrize("value", [None, 5, True, "x", [{"x": "y"}]])
def test_what_is_no_object_is_an_empty_one(value):
    assert item({"name": value}, "name") == {}
    assert item({}, "name") == {}
    assert item({"name": {"x": "y"}}, "name") == {"x": "y"}


@pytest.mark.parametrize("value", [None, 5, "x", {"x": "y"}, [], [None, 5, "x", []]])
def test_what_is_no_list_of_objects_is_an_empty_one(value):
    assert items({"name": value}, "name") == ()
    assert items({}, "name") == ()
    assert items({"name": [{"x": 1}, None, {"y": 2}]}, "name") == ({"x": 1}, {"y": 2})


@pytest.mark.parametrize(
    ("ts", "micros"),
    [
        ("1700000000.000100", 100),
        ("1700000000.999999", 999_999),
        ("1700000000.1", 100_000),
        ("1700000000.1234567", 123_456),
        ("1700000000.", 0),
        ("1700000000", 0),
    ],
)
def test_a_ts_is_an_instant_to_the_microsecond(ts, micros):
    assert instant(ts) == datetime(2023, 11, 14, 22, 13, 20, micros, tzinfo=UTC)


@pytest.mark.parametrize(
    "ts",
    [
        "",
        ".",
        ".5",
        "soon",
        "-1.0",
        "+1.0",
        " 1.0",
        "1.0 ",
        "1.x",
        "1.-5",
        "1e5",
        "1,5",
        "1.2.3",
        "²",
        "9" * 30,
        "9" * 5000,
    ],
)
def test_what_is_no_ts_is_no_instant(ts):
    assert instant(ts) is None


@given(INSTANTS)
def test_any_moment_is_the_same_as_its_ts(moment):
    assert instant(ts_of(moment)) == moment


@given(st.text())
def test_any_text_is_a_ts_or_is_none(ts):
    moment = instant(ts)

    assert moment is None or moment.tzinfo is UTC


@given(INSTANTS, INSTANTS)
def test_later_moments_have_later_ts(one, other):
    assert (one < other) == (float(ts_of(one)) < float(ts_of(other)))
