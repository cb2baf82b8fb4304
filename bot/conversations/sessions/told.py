"""What a conversation's clients were told so far, as the stored lines say it. Pure but for reading them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.conversations.sessions.host_tools import tools_from_json
from bot.conversations.sessions.protocol import OutputType
from core.contracts.ids import ConversationId
from core.contracts.sessions import SessionLine, SessionLog
from core.contracts.tools import ToolSchema

_PAGE = 500


@dataclass(slots=True, kw_only=True)
class ToldTurn:
    """What was told of one turn."""

    id: str
    inputs: set[str] = field(default_factory=set)
    """Messages of clients that are in it."""
    runs: dict[str, int] = field(default_factory=dict)
    """Runs with the number of their last event that was told."""
    first_message: int = 0
    last_message: int = 0
    open_approvals: set[str] = field(default_factory=set)
    settled_approvals: set[str] = field(default_factory=set)
    started_calls: set[str] = field(default_factory=set)
    finished_calls: set[str] = field(default_factory=set)
    open_requests: set[str] = field(default_factory=set)
    """Calls that a client was asked to run, and of which no end was told."""
    has_ended: bool = False


@dataclass(slots=True, kw_only=True)
class Told:
    """The state behind a conversation's lines. `turn` is the newest one that was told."""

    last_seq: int = 0
    turn: ToldTurn | None = None
    tools: tuple[ToolSchema, ...] = ()
    tools_seq: int = 0
    """The line that registered them; 0: none did."""

    @property
    def open_turn(self) -> ToldTurn | None:
        """The turn whose end was not told yet."""
        return self.turn if self.turn is not None and not self.turn.has_ended else None

    def note(self, seq: int, line: Mapping[str, Any]) -> None:
        """Take a line into account that is now stored."""
        self.last_seq = seq
        match line["type"]:
            case OutputType.TOOLS:
                self.tools, self.tools_seq = tools_from_json(line["tools"]), seq
            case OutputType.TURN_STARTED:
                self.turn = ToldTurn(id=line["turn_id"], inputs=set(line["inputs"]))
            case OutputType.RESULT:
                self.turn = replace(self.turn_of(line["turn_id"]), has_ended=True)
            case kind if self.turn is not None:
                _note_in_turn(self.turn, kind, line)

    def turn_of(self, turn_id: str) -> ToldTurn:
        """Return the turn of that id, also when its beginning is kept no longer."""
        return self.turn if self.turn is not None and self.turn.id == turn_id else ToldTurn(id=turn_id)


def _note_in_turn(turn: ToldTurn, kind: str, line: Mapping[str, Any]) -> None:
    run_id = line.get("run_id")
    if run_id is not None and "run_seq" in line:
        turn.runs[run_id] = line["run_seq"]
    match kind:
        case OutputType.STEERED:
            turn.inputs.update(line["inputs"])
        case OutputType.MESSAGE:
            turn.last_message = line["message"]["seq"]
            turn.first_message = turn.first_message or turn.last_message
        case OutputType.APPROVAL_OPENED:
            turn.open_approvals.add(line["approval_id"])
        case OutputType.APPROVAL_SETTLED:
            turn.open_approvals.discard(line["approval_id"])
            turn.settled_approvals.add(line["approval_id"])
        case OutputType.CALL_STARTED:
            turn.started_calls.add(line["call_id"])
        case OutputType.CALL_FINISHED:
            turn.finished_calls.add(line["call_id"])
            turn.open_requests.discard(line["call_id"])
        case OutputType.TOOL_REQUEST:
            turn.open_requests.add(line["call_id"])
        case OutputType.TOOL_WITHDRAWN:
            turn.open_requests.discard(line["call_id"])


async def read_told(log: SessionLog, conversation_id: ConversationId) -> Told:
    """Return the state as the log has it; reads back to the beginning of the newest turn."""
    told = Told()
    lines = await _since_newest_turn(log, conversation_id)
    before = json.loads(lines[0].text).get("tools_seq", 0) if lines else 0
    for line in await log.lines_after(conversation_id, before - 1, limit=1) if before else ():
        if line.seq == before:  # what retention has removed is registered again by the client
            told.note(line.seq, json.loads(line.text))
    for line in lines:
        told.note(line.seq, json.loads(line.text))
    return told


async def last_seq(log: SessionLog, conversation_id: ConversationId) -> int:
    """Return the number of the newest line, 0 where there is none: by halving, as numbers have no gaps."""
    known, beyond = 0, 1
    while await log.lines_after(conversation_id, beyond - 1, limit=1):
        known, beyond = beyond, beyond * 2
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if await log.lines_after(conversation_id, middle - 1, limit=1):
            known = middle
        else:
            beyond = middle
    return known


async def _since_newest_turn(log: SessionLog, conversation_id: ConversationId) -> list[SessionLine]:
    """Return the lines from the newest `turn_started` on; all there are when no turn was told."""
    found: list[SessionLine] = []
    end = await last_seq(log, conversation_id)
    while end > 0:
        start = max(0, end - _PAGE)
        page = [line for line in await log.lines_after(conversation_id, start, limit=_PAGE) if line.seq <= end]
        begins = [n for n, line in enumerate(page) if json.loads(line.text)["type"] == OutputType.TURN_STARTED]
        if begins:
            return [*page[begins[-1] :], *found]
        if not page:
            break
        found, end = [*page, *found], start
    return found
