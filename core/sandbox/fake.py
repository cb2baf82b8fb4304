"""A sandbox that starts nothing: what each command would have done is told beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from core.contracts.clock import Clock, SystemClock
from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand, SandboxReport
from core.sandbox.output import KeptOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOutcome:
    """What a command does: it writes `output`, takes `takes` and then exits.

    `refused` raises `SandboxUnavailable` with that reason instead.
    """

    output: bytes = b""
    exit_code: int = 0
    takes: timedelta = timedelta()
    refused: str | None = None


class FakeSandbox:
    """Answers commands by their last argument, the line of a shell; an unknown line is not found.

    It keeps the contract for output, time and cancellation, so that what it shows is what a real
    one would. `commands` are those that were run, in order; `running` are those not yet ended.
    """

    def __init__(self, outcomes: Mapping[str, FakeOutcome] | None = None, *, clock: Clock | None = None) -> None:
        self._outcomes = dict(outcomes or {})
        self._clock = clock or SystemClock()
        self.commands: list[SandboxCommand] = []
        self.running: list[SandboxCommand] = []

    @property
    def report(self) -> SandboxReport:
        return SandboxReport(kind="fake", works=True, detail="starts nothing")

    async def run(self, command: SandboxCommand) -> CommandResult:
        line = command.argv[-1]
        unknown = FakeOutcome(output=f"sh: {line}: not found\n".encode(), exit_code=127)
        outcome = self._outcomes.get(line, unknown)
        if not command.workspace.is_dir():
            raise SandboxUnavailable(f"the workspace {str(command.workspace)!r} is not a folder")
        if outcome.refused is not None:
            raise SandboxUnavailable(outcome.refused)
        self.commands.append(command)
        self.running.append(command)
        try:
            await self._clock.sleep(min(outcome.takes, command.timeout))
            return await _ended(outcome, command)
        finally:
            self.running.remove(command)


async def _ended(outcome: FakeOutcome, command: SandboxCommand) -> CommandResult:
    kept = KeptOutput(keep_bytes=command.keep_bytes, spill=command.spill, spill_limit_bytes=command.spill_limit_bytes)
    await kept.add(outcome.output)
    await kept.close()
    timed_out = outcome.takes >= command.timeout
    return CommandResult(
        exit_code=None if timed_out else outcome.exit_code,
        head=kept.head,
        tail=kept.tail,
        dropped_bytes=kept.dropped_bytes,
        timed_out=timed_out,
        spilled=kept.spilled,
    )


if TYPE_CHECKING:
    _conforms: type[Sandbox] = FakeSandbox
