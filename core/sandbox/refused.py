"""The sandbox of a machine that offers none: it refuses every command and says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.contracts.errors import SandboxUnavailable
from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand, SandboxReport


class RefusingSandbox:
    """Fails closed, with what was tried and what would help."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @property
    def report(self) -> SandboxReport:
        return SandboxReport(kind="none", works=False, detail=self._reason)

    async def run(self, command: SandboxCommand) -> CommandResult:
        raise SandboxUnavailable(f"{command.argv[:1]!r} was not started: {self._reason}")


if TYPE_CHECKING:
    _conforms: type[Sandbox] = RefusingSandbox
