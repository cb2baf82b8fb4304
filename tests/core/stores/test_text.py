"""Text that every database can hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.stores.text import clean, dump, load

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("dirty", "stored"),
    [
        ("a\0b", "a\ufffdb"),
        ("W\0s\0l\0", "W\ufffds\ufffdl\ufffd"),
        ("bad \ud83d end", "bad \ufffd end"),
        ("\udf78", "\ufffd"),
        ("ends in \ud83d", "ends in \ufffd"),
        ("\ud83c\udf78", "\U0001f378"),
        ("\ud83d\ud83c\udf78", "\ufffd\U0001f378"),
        ("\u2028\ufffe\u200f\u202e\ufeff", "\u2028\ufffe\u200f\u202e\ufeff"),
        ("a" + "\u0301" * 1_000_000, "a" + "\u0301" * 1_000_000),
    ],
    ids=["nul", "utf-16", "half", "other half", "half at the end", "pair", "half and pair", "odd", "combining"],
)
def test_c80_what_cannot_be_stored_becomes_visible(dirty, stored):
    assert clean(dirty) == stored


@given(ANY_TEXT)
@example("\ud83c\udf78")
def test_c80_clean_text_can_be_encoded_and_stays_as_it_is(text):
    cleaned = clean(text)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == cleaned
    assert clean(cleaned) == cleaned


@given(JSON_VALUES)
def test_json_comes_back_clean_from_any_value(value):
    text = dump(value)
    assert clean(text) == text
    assert dump(load(text)) == text


def test_equal_values_have_equal_texts():
    assert dump({"b": 1, "a": [True, None]}) == dump({"a": (True, None), "b": 1}) == '{"a":[true,null],"b":1}'


def test_c80_json_of_old_with_escaped_halves_and_nul_loads_clean():
    old = json.dumps({"te\ud83dxt": ["bad \ud83d end", "a\0b", "\ud83c\udf78"]})
    assert load(old) == {"te\ufffdxt": ["bad \ufffd end", "a\ufffdb", "\U0001f378"]}
