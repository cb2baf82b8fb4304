"""Commands on the machine itself, without any isolation: only where the owner has configured it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand, SandboxReport
from core.sandbox.environment import HOME_FOLDER, inside_environment
from core.sandbox.identity import checked_workspace, workspace_identity
from core.sandbox.rlimits import ResourceLimits, limited
from core.sandbox.supervised import run_supervised

_REPORT = SandboxReport(
    kind="unsafe_host_shell",
    works=True,
    detail="NOT ISOLATED: commands read and change whatever their user may, and use the network",
    limits=(
        "the workspace guard does not hold for the shell",
        "`network` and `read_only` of a command have no effect",
        "a command may signal the host's own processes",
        "a process that changes its user, or outside Linux its session, may outlive its command",
    ),
)


class UnsafeHostShell:
    """Runs commands as the workspace's owner with time, output and resource limits, and nothing else."""

    def __init__(self, *, search_path: str | None = None, limits: ResourceLimits | None = None) -> None:
        self._search_path = search_path
        self._limits = (limits or ResourceLimits()).without_process_count()

    @property
    def report(self) -> SandboxReport:
        return _REPORT

    async def run(self, command: SandboxCommand) -> CommandResult:
        workspace = checked_workspace(command.workspace)
        place = command.workspace.absolute()
        path = {"PATH": self._search_path} if self._search_path is not None else {}
        return await run_supervised(
            command,
            argv=limited(command.argv, self._limits),
            env=inside_environment(place, {**path, **command.env}, temporary=place / HOME_FOLDER / "tmp"),
            cwd=place,
            identity=workspace_identity(workspace),
            confinement=None,
        )


if TYPE_CHECKING:
    _conforms: type[Sandbox] = UnsafeHostShell
