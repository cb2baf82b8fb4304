"""Doubles for what tools stand on, and a context to call them in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.contracts.agents import Audience
from core.contracts.errors import NotFound, SandboxUnavailable, ToolError
from core.contracts.ids import AgentId, CallId, ConversationId, PersonId, Revision, TurnId
from core.contracts.memory import CommitOrigin, MemoryChange, MemoryCommit, MemoryFile, MemorySnapshot
from core.contracts.messages import ToolCall
from core.contracts.sandbox import CommandResult, SandboxCommand, SandboxReport
from core.contracts.tools import ToolContext

BROKEN_ARGUMENTS = [
    '{"path":"a.md","content":"he said "hi""}',
    '{"path":"a',
    "null",
    '["a.md"]',
    '"a.md"',
    '{"path":"a.md",}',
    '{"path":"a.md"}{"path":"b.md"}',
    '{"path": NaN}',
    '{"path":"a.md","path":"b.md"}',
    "{'path':'a.md'}",
    "[" * 500_000,
    '{"a":' * 100_000,
    "1" * 5_000,
]
"""The inputs of case C30, and deeper ones: no usable JSON object."""


def context_in(
    folder: Path, *, call_id: str = "call_1", conversation: str = "conv-1", words: tuple[str, ...] = ()
) -> ToolContext:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return ToolContext(
        agent_id=AgentId("agent-1"),
        memory_id="memory-1",
        conversation_id=ConversationId(conversation),
        turn_id=TurnId("turn-1"),
        call_id=CallId(call_id),
        workspace=workspace,
        overflow=folder / "overflow" / conversation,
        audience=Audience(words=frozenset({"everyone", *words})),
        requester=PersonId("person-alice"),
    )


def call_of(name: str, arguments: str = "{}", *, fault: str | None = None, call_id: str = "call_1") -> ToolCall:
    return ToolCall(id=CallId(call_id), name=name, arguments=arguments, fault=fault)


async def text_of(tool: Any, context: ToolContext, **arguments: Any) -> str:
    (part,) = await tool.call(arguments, context)
    return part.text


@dataclass(frozen=True)
class Known:
    path: str
    is_dir: bool
    size_bytes: int
    modified_ns: int = 0


class PathlibFiles:
    """`WorkspaceFiles` by plain pathlib: no guard against links, which these tests do not plant."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str, *, limit_bytes: int) -> bytes:
        with self._told(path), (self._root / path).open("rb") as file:
            return file.read(limit_bytes)

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        with self._told(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    def stat(self, path: str) -> Known:
        with self._told(path):
            known = (self._root / path).stat()
        return Known(path, (self._root / path).is_dir(), known.st_size, known.st_mtime_ns)

    def walk(self, path: str) -> Iterator[Known]:
        for entry in sorted((self._root / path).rglob("*")):
            yield Known(entry.relative_to(self._root).as_posix(), entry.is_dir(), entry.stat().st_size)

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ToolError(f"{path!r}: {error.strerror}") from error


class FakeStreamMask:
    def __init__(self, redactor: FakeRedactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._redactor.mask(self._held + text)
        longest = max(
            (n for secret in self._redactor.secrets for n in range(1, len(secret)) if text.endswith(secret[:n])),
            default=0,
        )
        self._held = text[len(text) - longest :]
        return text[: len(text) - longest]

    def finish(self) -> str:
        held, self._held = self._held, ""
        return self._redactor.mask(held)


class FakeRedactor:
    """Masks the given values, by name."""

    def __init__(self, **secrets: str) -> None:
        self.names = {value: name for name, value in secrets.items()}

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(self.names)

    def mask(self, text: str) -> str:
        for value, name in self.names.items():
            text = text.replace(value, f"[secret {name}]")
        return text

    def stream(self) -> FakeStreamMask:
        return FakeStreamMask(self)


class ScriptedSandbox:
    """Answers every command with `output`, cut as a real sandbox cuts it."""

    def __init__(self, output: bytes = b"", *, exit_code: int | None = 0, unavailable: str = "") -> None:
        self._output = output
        self._exit_code = exit_code
        self._unavailable = unavailable
        self.commands: list[SandboxCommand] = []

    @property
    def report(self) -> SandboxReport:
        return SandboxReport(kind="scripted", works=True, detail="")

    async def run(self, command: SandboxCommand) -> CommandResult:
        self.commands.append(command)
        if self._unavailable:
            raise SandboxUnavailable(self._unavailable)
        head, rest = self._output[: command.keep_bytes], self._output[command.keep_bytes :]
        tail = rest[-command.keep_bytes :]
        dropped = len(rest) - len(tail)
        if dropped and command.spill is not None:
            command.spill.write_bytes(self._output[: command.spill_limit_bytes])
        return CommandResult(
            exit_code=self._exit_code,
            head=head,
            tail=tail,
            dropped_bytes=dropped,
            timed_out=self._exit_code is None,
            spilled=bool(dropped),
        )


def revision(number: int) -> Revision:
    return Revision(f"{number:040x}")


@dataclass
class FakeMemory:
    """Revisions as whole sets of files; commits are recorded and answered, not applied."""

    revisions: dict[Revision, tuple[MemoryFile, ...]] = field(default_factory=dict)
    history: list[MemoryCommit] = field(default_factory=list)
    committed: list[tuple[tuple[MemoryChange, ...], str, CommitOrigin]] = field(default_factory=list)
    failure: Exception | None = None

    def add(self, number: int, *files: MemoryFile, paths: tuple[str, ...] = (), message: str = "note") -> Revision:
        new = revision(number)
        parent = self.history[0].revision if self.history else None
        self.revisions[new] = files
        commit = MemoryCommit(
            revision=new,
            parent=parent,
            author="agent",
            message=message,
            committed_at=datetime(2026, 1, 1, 12, number, tzinfo=UTC),
            paths=paths or tuple(file.path for file in files),
        )
        self.history.insert(0, commit)
        return new

    async def snapshot(self, memory_id: str, audience: Audience, *, at: Revision | None = None) -> MemorySnapshot:
        wanted = at or self.history[0].revision
        if wanted not in self.revisions:
            raise NotFound("revision", wanted)
        files = tuple(file for file in self.revisions[wanted] if audience.sees(file.audience))
        return MemorySnapshot(revision=wanted, files=files)

    async def read(self, memory_id: str, path: str, audience: Audience, *, at: Revision | None = None) -> MemoryFile:
        for file in (await self.snapshot(memory_id, audience, at=at)).files:
            if file.path == path:
                return file
        raise NotFound("memory file", path)

    async def log(self, memory_id: str, *, path: str | None = None, limit: int = 20) -> tuple[MemoryCommit, ...]:
        return tuple(commit for commit in self.history if path is None or path in commit.paths)[:limit]

    async def commit(
        self, memory_id: str, changes: Sequence[MemoryChange], *, message: str, origin: CommitOrigin
    ) -> MemoryCommit:
        if self.failure is not None:
            raise self.failure
        self.committed.append((tuple(changes), message, origin))
        return MemoryCommit(
            revision=revision(99),
            parent=None,
            author=origin.author,
            message=message,
            committed_at=datetime(2026, 1, 1, tzinfo=UTC),
            paths=tuple(change.path for change in changes),
        )
