"""Argument texts of tool calls."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.models.arguments import LIMIT_REACHED, parsed_object, read_arguments, stored_arguments

BROKEN = [
    '{"path":"a.md","content":"he said "hi""}',
    "null",
    '["a.md"]',
    '"a.md"',
    '{"path":"a.md",}',
    '{"path":"a.md"}{"path":"b.md"}',
    '{"path": NaN}',
    '{"path": -Infinity}',
    '{"path": 1e999}',
    '{"path":"a.md","path":"b.md"}',
    "{'path':'a.md'}",
    "[" * 500_000,
    '{"a":' * 500 + "1" + "}" * 500,
    "7",
    "\ufeff{}",
    '{"n": ' + "1" * 10_000 + "}",
]
CUT = [
    '{"path":"a',
    '{"path":"r.md","content":"line 1\\nline 2',
    "{",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":tr',
    '{"a":"\\u12',
    '{"a":["b",',
]


@pytest.mark.parametrize("raw", BROKEN, ids=range(len(BROKEN)))
def test_unusable_arguments_give_an_empty_object_and_a_short_fault(raw):
    """C30: every broken form, the deep one without a crash."""
    arguments, fault = read_arguments(raw)
    assert arguments == "{}"
    assert fault
    assert LIMIT_REACHED not in fault
    assert raw[:20] in fault
    assert len(fault) < 1_300


@pytest.mark.parametrize("raw", CUT)
def test_arguments_that_lack_their_end_are_recognised_as_cut(raw):
    """C33 B: the provider hides the limit, the broken JSON shows it."""
    arguments, fault = read_arguments(raw)
    assert arguments == "{}"
    assert LIMIT_REACHED in fault


@pytest.mark.parametrize("raw", ["", "  ", "{}", " { } "])
def test_no_arguments_are_an_empty_object(raw):
    """C30: whether that is enough is for the tool's schema to say."""
    assert read_arguments(raw) == ("{}", None)


def test_good_arguments_become_compact_and_keep_the_order_of_keys():
    raw = '{ "z": 1, "a": {"y": [1, 2.5, null, true], "b": "\\u00e4"} }'
    assert read_arguments(raw) == ('{"z":1,"a":{"y":[1,2.5,null,true],"b":"\u00e4"}}', None)


def test_half_characters_and_nuls_in_arguments_are_replaced():
    """C80: keys and values; a pair becomes its character."""
    arguments, fault = read_arguments('{"\\ud83d": "bad \\ud83d end", "ok": "\\ud83c\\udf78", "nul": "a\\u0000b"}')
    assert fault is None
    assert json.loads(arguments) == {"\ufffd": "bad \ufffd end", "ok": "\U0001f378", "nul": "a\ufffdb"}
    arguments.encode()


def test_half_a_character_in_an_old_row_is_replaced_when_sent():
    """C80: an old row does not block its session."""
    assert stored_arguments('{"a":"\\uD83D"}') == '{"a":"\ufffd"}'
    assert stored_arguments('{"a":"\\u00e4"}') == '{"a":"\\u00e4"}'


@pytest.mark.parametrize("stored", ["", "null", "[1]", "{", "[" * 100_000])
def test_an_old_row_without_an_object_counts_as_empty(stored):
    assert parsed_object(stored) == {}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_reading_twice_changes_nothing(value):
    once, fault = read_arguments(json.dumps(value))
    if fault is None:
        assert read_arguments(once) == (once, None)


@given(st.text())
def test_no_text_at_all_raises(raw):
    arguments, _ = read_arguments(raw)
    assert isinstance(json.loads(arguments), dict)
