"""How the steps of a turn ask for their runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.contracts.ids import TurnId
from core.turns.requests import request_id, step_of

TURNS = st.sampled_from([TurnId("turn-1"), TurnId("turn-11"), TurnId("turn-1/1"), TurnId("")])


@given(TURNS, st.integers(1, 10_000), st.integers(1, 50))
def test_a_request_tells_its_step_whatever_the_try(turn_id, step, attempt):
    assert step_of(turn_id, request_id(turn_id, step, attempt)) == step


@given(TURNS, TURNS, st.integers(1, 99), st.integers(1, 9))
def test_a_request_of_another_turn_has_no_step_of_this_one(one, other, step, attempt):
    if one != other:
        assert step_of(other, request_id(one, step, attempt)) is None


def test_tries_of_a_step_are_different_requests_and_the_first_has_no_mark():
    assert request_id(TurnId("turn-1"), 2) == "turn-1/2"
    assert request_id(TurnId("turn-1"), 2, 3) == "turn-1/2@3"
