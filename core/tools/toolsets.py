"""Named sets of tools, and the default one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.contracts.clock import Clock
from core.contracts.errors import InvalidInput
from core.contracts.memory import MemoryStore
from core.contracts.sandbox import Sandbox
from core.contracts.secrets import Redactor
from core.contracts.tools import Tool, ToolSchema, Toolset
from core.tools.files import EditTool, ReadTool, WriteTool
from core.tools.files_port import FilesFactory
from core.tools.memory import MemoryLogTool, MemoryReadTool, MemoryWriteTool, WasApproved
from core.tools.overflow import OverflowFiles
from core.tools.search import GlobTool, GrepTool
from core.tools.shell import ShellSettings, ShellTool
from core.tools.silence import StaySilent
from core.tools.versions import ReadVersions


class StaticToolset:
    """Tools in the order given; names are unique."""

    def __init__(self, id: str, tools: tuple[Tool, ...]) -> None:  # noqa: A002 - the Toolset's own word
        self._id = id
        self._schemas = tuple(tool.schema for tool in tools)
        self._by_name = {tool.schema.name: tool for tool in tools}
        if len(self._by_name) < len(tools):
            raise InvalidInput(f"two tools of toolset {id!r} share a name")

    @property
    def id(self) -> str:
        return self._id

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        return self._schemas

    def find(self, name: str) -> Tool | None:
        return self._by_name.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPorts:
    """What the default tools stand on; `was_approved` says whether a person approved the call."""

    sandbox: Sandbox
    files: FilesFactory
    memory: MemoryStore
    redactor: Redactor
    overflow: OverflowFiles
    clock: Clock
    was_approved: WasApproved
    shell: ShellSettings = field(default_factory=ShellSettings)


def default_toolset(ports: ToolPorts, *more: Tool) -> StaticToolset:
    """Return the toolset `default`, with the application's own tools behind it in the order given.

    The order is part of every request's prefix: append, never insert.
    """
    versions = ReadVersions()
    tools: tuple[Tool, ...] = (
        ShellTool(ports.sandbox, ports.overflow, ports.redactor, ports.shell),
        ReadTool(ports.files, versions, ports.redactor),
        WriteTool(ports.files, versions, ports.redactor),
        EditTool(ports.files, versions),
        GrepTool(ports.files, ports.redactor, ports.clock),
        GlobTool(ports.files, ports.clock),
        MemoryReadTool(ports.memory, ports.redactor),
        MemoryWriteTool(ports.memory, ports.was_approved),
        MemoryLogTool(ports.memory),
        StaySilent(),
        *more,
    )
    return StaticToolset("default", tools)


if TYPE_CHECKING:
    _conforms: type[Toolset] = StaticToolset
