"""Schemas and arguments."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from core.contracts.errors import ToolError
from core.tools.schema import Arguments, decode_arguments, parse, schemas_json, tool_schema
from tests.core.tools.fakes import BROKEN_ARGUMENTS


class Inner(Arguments):
    """Not for the model."""

    kind: Literal["a", "b"]


class Example(Arguments):
    """Not for the model."""

    path: str = Field(description="Where")
    limit: int | None = Field(default=None, ge=1, description="How many")
    inner: tuple[Inner, ...] = ()


def test_a_schema_holds_only_what_a_model_needs_in_a_fixed_order():
    assert schemas_json([tool_schema("example", "Shows.", Example)]) == (
        '[{"name":"example","description":"Shows.","parameters":{"type":"object","properties":{'
        '"path":{"type":"string","description":"Where"},'
        '"limit":{"type":"integer","description":"How many"},'
        '"inner":{"type":"array","items":{"type":"object","properties":{'
        '"kind":{"type":"string","enum":["a","b"]}},"required":["kind"]}}},'
        '"required":["path"]}}]'
    )


@pytest.mark.parametrize("raw", BROKEN_ARGUMENTS, ids=range(len(BROKEN_ARGUMENTS)))
def test_broken_arguments_are_refused_with_a_bounded_excerpt_c30(raw):
    with pytest.raises(ToolError) as refusal:
        decode_arguments(raw)
    assert raw[:20] in str(refusal.value)
    assert len(str(refusal.value)) < 1_300


def test_empty_arguments_mean_none_and_miss_what_is_required_c30():
    assert decode_arguments("") == {}
    with pytest.raises(ToolError, match="`path` is required"):
        parse(Example, decode_arguments(""))


def test_half_an_emoji_in_arguments_is_replaced_and_a_pair_becomes_one_character_c80():
    raw = '{"text":"bad \\ud83d end","list":["\\ud83c\\udf78","a\\u0000b"]}'
    assert decode_arguments(raw) == {"text": "bad � end", "list": ["\U0001f378", "ab"]}


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_decoded_to_an_object_or_refused(raw):
    try:
        assert isinstance(decode_arguments(raw), dict)
    except ToolError as error:
        str(error).encode()


def test_every_fault_is_named_with_its_field_and_what_would_fit():
    with pytest.raises(ToolError) as refusal:
        parse(Example, {"limit": 0, "inner": [{"kind": "c"}], "colour": 1})
    text = str(refusal.value)
    assert "`path` is required" in text
    assert "`limit`: Input should be greater than or equal to 1, not 0" in text
    assert "`inner.0.kind`: Input should be 'a' or 'b', not 'c'" in text
    assert "`colour` is unknown; the fields are path, limit, inner" in text


def test_a_long_wrong_value_is_quoted_in_part():
    with pytest.raises(ToolError) as refusal:
        parse(Example, {"path": "a", "limit": "x" * 10_000})
    assert len(str(refusal.value)) < 400
