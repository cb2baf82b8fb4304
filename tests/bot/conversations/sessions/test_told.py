"""What stored lines say was told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.sessions.told import last_seq, read_told
from core.contracts.sessions import SessionLine
from tests.core.stores.samples import CONVERSATION

TOOL = {"name": "weather", "description": "d", "parameters": {"type": "object"}}
START = {"type": "turn_started", "turn_id": "turn-1", "inputs": ["m1"], "tools_seq": 0}
NOISE = {"type": "queued", "id": "m"}


class Log:
    """Lines in memory; `removed` of the oldest are gone, as retention leaves them. Counts reads."""

    def __init__(self, *lines: dict, removed: int = 0) -> None:
        texts = [json.dumps(line) for line in lines]
        self.lines = [SessionLine(seq=seq, text=text) for seq, text in enumerate(texts, start=1)][removed:]
        self.reads = 0

    async def append_lines(self, conversation_id, texts):
        raise NotImplementedError

    async def lines_after(self, conversation_id, after, *, limit=500):
        self.reads += 1
        return tuple([line for line in self.lines if line.seq > after][:limit])


async def read(*lines: dict, removed: int = 0):
    return await read_told(Log(*lines, removed=removed), CONVERSATION)


async def test_an_empty_log_says_nothing():
    told = await read()
    assert (told.last_seq, told.turn, told.tools) == (0, None, ())


async def test_the_newest_turn_is_known_with_all_that_was_told_of_it():
    told = await read(
        {**START, "turn_id": "turn-0"},
        {"type": "result", "turn_id": "turn-0"},
        START,
        {"type": "steered", "inputs": ["m2"]},
        {"type": "message", "message": {"seq": 7}, "run_id": "r", "run_seq": 1},
        {"type": "message", "message": {"seq": 8}, "run_id": "r", "run_seq": 4},
        {"type": "approval_opened", "approval_id": "a"},
        {"type": "approval_opened", "approval_id": "b"},
        {"type": "approval_settled", "approval_id": "b"},
        {"type": "tool_request", "call_id": "c"},
        {"type": "tool_request", "call_id": "d"},
        {"type": "tool_request", "call_id": "e"},
        {"type": "call_finished", "call_id": "d"},
        {"type": "tool_withdrawn", "call_id": "e"},
    )
    turn = told.open_turn
    assert (turn.id, turn.inputs, turn.runs) == ("turn-1", {"m1", "m2"}, {"r": 4})
    assert (turn.first_message, turn.last_message) == (7, 8)
    assert (turn.open_approvals, turn.settled_approvals, turn.open_requests) == ({"a"}, {"b"}, {"c"})


async def test_a_turn_with_a_result_is_not_open():
    told = await read(START, {"type": "result", "turn_id": "turn-1"})
    assert told.open_turn is None
    assert told.turn.id == "turn-1"


async def test_a_result_is_known_where_the_beginning_of_its_turn_is_kept_no_longer():
    told = await read(START, {"type": "result", "turn_id": "turn-1"}, removed=1)
    assert (told.turn.id, told.turn.has_ended, told.last_seq) == ("turn-1", True, 2)


async def test_tools_are_found_by_the_number_that_the_turn_names():
    registered = {"type": "tools", "tools": [TOOL]}
    told = await read(registered, *[NOISE] * 1_200, {**START, "tools_seq": 1})
    assert ([tool.name for tool in told.tools], told.tools_seq) == (["weather"], 1)


async def test_tools_that_were_registered_in_the_turn_replace_those_before():
    told = await read({"type": "tools", "tools": [TOOL]}, {**START, "tools_seq": 1}, {"type": "tools", "tools": []})
    assert (told.tools, told.tools_seq) == ((), 3)


async def test_tools_whose_line_is_gone_are_not_guessed():
    told = await read({"type": "tools", "tools": [TOOL]}, NOISE, {**START, "tools_seq": 1}, removed=1)
    assert told.tools == ()


@pytest.mark.parametrize("distance", [0, 1, 498, 499, 500, 501, 999, 1_000, 1_001])
async def test_the_beginning_of_the_turn_is_found_however_far_it_lies_back(distance):
    told = await read(NOISE, {**START, "turn_id": "old"}, NOISE, START, *[NOISE] * distance)
    assert (told.turn.id, told.last_seq) == ("turn-1", 4 + distance)


@given(st.integers(0, 3_000), st.integers(0, 3_000))
async def test_the_last_number_is_found_whatever_retention_removed(count, removed):
    log = Log(*[NOISE] * count, removed=min(removed, max(0, count - 1)))
    assert await last_seq(log, CONVERSATION) == count
    assert log.reads <= 30
