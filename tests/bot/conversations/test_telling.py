"""Turn events as objects that may leave the host."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.telling import LiveTeller, event_json, message_json
from core.contracts.events import RunEvent, RunFinished, TextDelta
from core.contracts.ids import CallId, RunId
from core.contracts.messages import ImagePart, ReasoningPart, ReminderPart, TextPart
from core.contracts.runs import StopReason
from core.secrets.redaction import ValueRedactor
from core.turns.observer import ApprovalsOpened
from tests.core.stores.samples import as_row, assistant_message, call, tool_return

SECRET = "hunter" + "2" * 12


def test_what_says_nothing_outside_is_left_out():
    assert event_json(ApprovalsOpened(approvals=())) is None


def test_every_part_of_a_message_says_what_it_is():
    parts = (
        TextPart(text="a"),
        ReasoningPart(text="b", form="openai"),
        ImagePart(attachment_id="i", media_type="image/png"),
        ReminderPart(kind="time", text="now"),
        call("c"),
        tool_return("c"),
    )
    told = message_json(as_row(assistant_message(*parts)))
    kinds = ["text", "reasoning", "image", "reminder", "tool_call", "tool_return"]
    assert [part["type"] for part in told["parts"]] == kinds
    assert told["parts"][-1]["parts"] == [{"type": "text", "text": "done"}]
    assert told["parts"][-1]["call_id"] == CallId("c")


def run_of(pieces: list[str]) -> list[RunEvent]:
    bodies = [*(TextDelta(text=piece) for piece in pieces), RunFinished(stop_reason=StopReason.END_TURN)]
    return [RunEvent(run_id=RunId("run-1"), seq=seq, body=body) for seq, body in enumerate(bodies, start=1)]


def told_live(pieces: list[str]) -> list[dict]:
    teller = LiveTeller(ValueRedactor([("password", SECRET)]))
    return [dict(told) for event in run_of(pieces) for told in teller.tell(event)]


@given(st.lists(st.integers(0, 40), max_size=6), st.sampled_from([SECRET, SECRET[:9], SECRET + SECRET[:3]]))
def test_however_text_is_cut_its_pieces_are_the_masked_whole(cuts, middle):
    whole = f"it is {middle} and more"
    places = sorted({0, *(min(cut, len(whole)) for cut in cuts), len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    told = told_live(pieces)
    deltas = [line["text"] for line in told if line["type"] == "text_delta"]
    assert "".join(deltas) == whole.replace(SECRET, "[secret password]")
    assert all(deltas)
    numbers = [line["seq"] for line in told]
    assert numbers == sorted(numbers)


def test_a_piece_is_told_before_the_next_one_comes():
    teller = LiveTeller(ValueRedactor([("password", SECRET)]))
    first, *_ = run_of(["Hello, ", "there"])
    assert [line["text"] for line in teller.tell(first)] == ["Hello, "]


def test_an_end_that_might_have_begun_a_secret_follows_with_the_number_of_what_ended_the_text():
    *_, rest, finished = told_live([f"it is {SECRET[:5]}"])
    assert (rest["type"], rest["text"], rest["seq"]) == ("text_delta", SECRET[:5], 2)
    assert (finished["type"], finished["seq"]) == ("run_finished", 2)
