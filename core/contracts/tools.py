"""Tools: what a model may ask for and what runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.contracts.addresses import Address
from core.contracts.agents import Audience
from core.contracts.ids import AgentId, CallId, ConversationId, PersonId, TurnId
from core.contracts.messages import ImagePart, TextPart


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as a model sees it. `parameters` is a JSON schema of type object, keys in fixed order."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a call touches, declared before it runs: policy and parallel execution read it.

    Paths are absolute and normalised, not resolved through links. `command` is the whole shell
    line of a call that starts a program. `memory_writes` names changed files of the own memory.
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    network: tuple[str, ...] = ()
    memory_reads: bool = False
    memory_writes: tuple[str, ...] = ()
    free: bool = False
    """Touches nothing but the turn itself (`stay_silent`, `todo`): never asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """On whose behalf a call runs. `overflow` is this conversation's folder for long outputs.

    `readable` are further folders that may be read, such as that of files which came with messages.
    """

    agent_id: AgentId
    memory_id: str
    conversation_id: ConversationId
    turn_id: TurnId
    call_id: CallId
    workspace: Path
    overflow: Path
    audience: Audience
    origin: Address | None = None
    requester: PersonId | None = None
    readable: tuple[Path, ...] = ()


class Tool(Protocol):
    """One tool. Stateless between calls but for what it is constructed with."""

    @property
    def schema(self) -> ToolSchema:
        """Return the schema; the same object every time."""
        ...

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access | None:
        """Return what the call would touch, without I/O; None where that cannot be known.

        Raises:
            ToolError: The arguments do not fit the schema.
        """
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart | ImagePart]:
        """Do it and return what the model reads, clamped and masked by the wrapping toolset.

        Raises:
            ToolError: It could not be done; the text tells the model why.
            asyncio.CancelledError: Everything it started has ended.
        """
        ...


class Toolset(Protocol):
    """A named, ordered set of tools; the order is that of the schemas in every request."""

    @property
    def id(self) -> str:
        """Return the name a turn stores, such as `default`."""
        ...

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the schemas in their fixed order."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return the tool of that exact name."""
        ...
