"""The JSON of the socket and of `stream-json`."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.control.wire import feed_json, line, plain
from channels.feed import Noticed, Previewed, Said, Shown, StatusSet
from core.contracts.addresses import Button, ButtonStyle, CardContent, TextContent
from tests.bot.console.fake_host import AGENT


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    at: datetime


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    wait: timedelta
    words: frozenset[str]
    path: Path
    colour: Colour


def test_domain_values_become_json_all_the_way_down():
    value = Outer(
        inner=(Inner(at=datetime(2026, 1, 1, 12, 0, tzinfo=UTC)),),
        wait=timedelta(minutes=1),
        words=frozenset({"b", "a"}),
        path=Path("/a/b"),
        colour=Colour.RED,
    )
    assert plain({"one": value, "none": None}) == {
        "one": {
            "inner": [{"at": "2026-01-01T12:00:00+00:00"}],
            "wait": 60.0,
            "words": ["a", "b"],
            "path": "/a/b",
            "colour": "red",
        },
        "none": None,
    }


def test_an_agent_is_an_object_with_its_model():
    told = plain(AGENT)
    assert (told["name"], told["model"]["model"], told["permission_mode"]) == ("lodger", "scripted/demo", "ask")


def test_a_value_without_a_json_form_is_a_bug_and_named():
    with pytest.raises(TypeError, match="no JSON form for object"):
        plain({"x": object()})


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Said(key="k", name="Ada", text="hi"), {"type": "said", "key": "k", "name": "Ada", "text": "hi"}),
        (Previewed(external_id="m", text="he"), {"type": "preview", "external_id": "m", "text": "he"}),
        (StatusSet(status="thinking"), {"type": "status", "status": "thinking"}),
        (Noticed(text="Approved."), {"type": "notice", "text": "Approved."}),
        (
            Shown(external_id="m", content=TextContent(markdown="hello")),
            {"type": "shown", "external_id": "m", "content": {"markdown": "hello", "silent": False}},
        ),
    ],
)
def test_every_feed_event_is_an_object_with_its_type(event, told):
    assert feed_json(event) == told


def test_a_card_goes_over_the_wire_whole():
    button = Button(token="t1", label="Deny", style=ButtonStyle.DANGER)
    told = feed_json(Shown(external_id="c", content=CardContent(text="Run?", code="ls", rows=((button,),))))
    assert told["content"] == {
        "text": "Run?",
        "code": "ls",
        "rows": [[{"token": "t1", "label": "Deny", "style": "danger", "opens_form": False}]],
        "silent": False,
    }


@given(st.dictionaries(st.text(), st.text(alphabet=st.characters(exclude_categories=()))))
def test_an_object_is_one_line_for_every_reader_whatever_it_holds(value):
    written = line(value)
    assert written.decode("ascii").splitlines(keepends=True) == [written.decode("ascii")]
    assert json.loads(written) == value
