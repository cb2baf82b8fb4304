"""The request ids of a turn's runs: by step and by try, so that whoever comes next finds what was begun."""

from __future__ import annotations

from core.contracts.ids import TurnId


def request_id(turn_id: TurnId, step: int, attempt: int = 1) -> str:
    """Return the id under which a step of a turn asks for its run; a step is tried again after a crash."""
    return f"{turn_id}/{step}" if attempt == 1 else f"{turn_id}/{step}@{attempt}"


def step_of(turn_id: TurnId, requested: str) -> int | None:
    """Return the number of the step that asked so; None for a request of another turn."""
    turn, _, step = requested.rpartition("/")
    return int(step.partition("@")[0]) if turn == turn_id else None
