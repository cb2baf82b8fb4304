"""Domain values survive storage, whatever they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.addresses import CardContent, InboundEvent, TextContent
from core.contracts.agents import ModelSettings
from core.contracts.errors import StoreUnavailable
from core.contracts.events import MessageStored, RunEventBody
from core.contracts.messages import Part
from core.contracts.permissions import Decision, Verdict
from core.stores import address_codec, codec
from core.stores.codec import read_json
from core.stores.tables.columns import from_micros, to_micros
from core.stores.text import dump

CLEAN_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
st.register_type_strategy(str, CLEAN_TEXT)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
INSTANTS = st.integers(0, 4_000_000_000_000_000).map(from_micros)


def round_trip(value, to_json, from_json):
    return read_json(dump(to_json(value)), from_json)


@given(st.from_type(Part))
def test_every_part_survives(part):
    assert round_trip(part, codec.part_to_json, codec.part_from_json) == part


@given(st.lists(st.from_type(Part), max_size=4).map(tuple))
def test_parts_keep_their_order(parts):
    assert read_json(codec.parts_to_text(parts), codec.parts_from_json) == parts


@given(st.from_type(RunEventBody).filter(lambda body: not isinstance(body, MessageStored)))
def test_every_event_survives(body):
    assert round_trip(body, codec.event_to_json, codec.event_from_json) == body


@given(st.from_type(TextContent) | st.from_type(CardContent))
def test_every_content_survives(content):
    assert round_trip(content, address_codec.content_to_json, address_codec.content_from_json) == content


@given(st.builds(InboundEvent, sent_at=INSTANTS))
def test_every_inbound_event_survives(event):
    assert round_trip(event, address_codec.inbound_to_json, address_codec.inbound_from_json) == event


@given(st.from_type(Verdict))
def test_every_verdict_survives(verdict):
    assert round_trip(verdict, codec.verdict_to_json, codec.verdict_from_json) == verdict


@given(st.from_type(Decision))
def test_every_decision_survives(decision):
    assert round_trip(decision, codec.decision_to_json, codec.decision_from_json) == decision


def test_a_decision_of_an_older_release_changed_no_arguments():
    stored = {"approve": True, "by": "p1", "by_name": "Alice", "scope": "once", "feedback": ""}
    assert codec.decision_from_json(stored).edited is None


@given(st.from_type(ModelSettings))
def test_every_model_setting_survives(settings):
    assert round_trip(settings, codec.model_to_json, codec.model_from_json) == settings


def test_a_model_setting_of_an_older_release_says_nothing_of_images():
    assert codec.model_from_json({"name": "main", "model": "openai/gpt-4o"}).sees_images is None


@given(INSTANTS)
def test_instants_keep_their_microseconds(instant):
    assert from_micros(to_micros(instant)) == instant


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ('{"type":"hologram"}', codec.part_from_json),
        ('{"type":"from the future"}', codec.event_from_json),
        ('{"type":"poll"}', address_codec.content_from_json),
        ('{"type":"text"}', codec.part_from_json),
        ('{"type":"te', codec.part_from_json),
        ("[]", codec.part_from_json),
    ],
)
def test_what_cannot_be_read_says_so(text, reader):
    with pytest.raises(StoreUnavailable):
        read_json(text, reader)


def test_keys_that_are_missing_or_new_do_not_matter():
    text = '{"type":"text","markdown":"hi","reactions":[]}'
    assert read_json(text, address_codec.content_from_json) == TextContent(markdown="hi")
