"""What follows from every stop reason and limit: for the loop, the person and the exit code.

One table, read by the loop, the chat texts and the command line. A `StopReason` without a row
cannot be used: `outcome_of` matches exhaustively.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.contracts.runs import StopReason, TurnOutcome

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_NOBODY_CAN_APPROVE = 3
EXIT_LIMIT = 4
EXIT_CANCELLED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRule:
    """What a turn's outcome means. `notice` stands behind the text, or alone where there is none."""

    outcome: TurnOutcome
    notice: str
    exit_code: int


OUTCOMES: dict[TurnOutcome, OutcomeRule] = {
    rule.outcome: rule
    for rule in (
        OutcomeRule(outcome=TurnOutcome.COMPLETED, notice="", exit_code=EXIT_OK),
        OutcomeRule(outcome=TurnOutcome.SILENT, notice="", exit_code=EXIT_OK),
        OutcomeRule(
            outcome=TurnOutcome.CUT,
            notice="(The answer was cut off at the model's output limit. Say “continue” for the rest.)",
            exit_code=EXIT_LIMIT,
        ),
        OutcomeRule(
            outcome=TurnOutcome.LIMIT,
            notice="I stopped here: this turn reached its limit of steps or time. Say “continue” and I go on.",
            exit_code=EXIT_LIMIT,
        ),
        OutcomeRule(
            outcome=TurnOutcome.REFUSED,
            notice="The model refused to answer this.",
            exit_code=EXIT_ERROR,
        ),
        OutcomeRule(outcome=TurnOutcome.CANCELLED, notice="Stopped.", exit_code=EXIT_CANCELLED),
        OutcomeRule(
            outcome=TurnOutcome.TOO_LARGE,
            notice="This conversation no longer fits the model's window. Start a new one with /new; "
            "nothing of this one is lost.",
            exit_code=EXIT_LIMIT,
        ),
        OutcomeRule(
            outcome=TurnOutcome.EMPTY,
            notice="The model returned an empty answer. Please ask again.",
            exit_code=EXIT_ERROR,
        ),
        OutcomeRule(
            outcome=TurnOutcome.ERROR,
            notice="Something went wrong and this turn could not be finished. Your message is kept; please try again.",
            exit_code=EXIT_ERROR,
        ),
    )
}


def outcome_of(stop_reason: StopReason) -> TurnOutcome | None:
    """Return how a turn ends after a run that stopped so; None: its calls are to be answered."""
    outcome: TurnOutcome | None
    match stop_reason:
        case StopReason.REQUIRES_APPROVAL:
            outcome = None
        case StopReason.END_TURN:
            outcome = TurnOutcome.COMPLETED
        case StopReason.MAX_TOKENS:
            outcome = TurnOutcome.CUT
        case StopReason.CONTEXT_OVERFLOW | StopReason.PROMPT_TOO_LARGE:
            outcome = TurnOutcome.TOO_LARGE
        case StopReason.REFUSAL:
            outcome = TurnOutcome.REFUSED
        case StopReason.CANCELLED:
            outcome = TurnOutcome.CANCELLED
        case StopReason.ERROR:
            outcome = TurnOutcome.ERROR
    return outcome
