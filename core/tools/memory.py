"""`memory_read`, `memory_write` and `memory_log`: the agent's own memory, committed bytes only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from pydantic import Field, model_validator

from core.contracts.errors import MemoryConflict, MemoryRefused, NotFound, StorageFull, ToolError
from core.contracts.ids import Revision
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange, MemoryCommit, MemoryFile, MemoryStore
from core.contracts.messages import TextPart
from core.contracts.secrets import Redactor
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.memory_listing import SHOWN_ENTRIES, listing
from core.tools.output import clean_text
from core.tools.paging import PageLimits, Start, page
from core.tools.schema import Arguments, parse, tool_schema

READ_LIMITS = PageLimits(lines=2_000, line_chars=2_000, chars=29_500, numbered=False)
"""With the head line below, 30,000 characters in all."""

_DESCRIPTION_CHARS = 300

WasApproved: TypeAlias = Callable[[ToolContext], Awaitable[bool]]
"""Whether an authorised person approved the call of this context, so that a doubtful change may pass."""


class MemoryReadArguments(Arguments):
    """Arguments of `memory_read`."""

    path: str = Field(default="", description="File or directory; default the root")
    at: str | None = Field(default=None, description="Revision; default the newest")
    offset: int = Field(default=1, ge=1, description="First line")
    column: int = Field(default=1, ge=1, description="First character, in a very long line")


class MemoryReadTool:
    """Shows a memory file in pages, or lists a directory, as the conversation's audience may see it."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "memory_read",
        "Read a file of your memory, or list a directory with sizes and descriptions, as committed. "
        "Long files come in pages that say how to read on.",
        MemoryReadArguments,
    )

    def __init__(self, memory: MemoryStore, redactor: Redactor) -> None:
        self._memory = memory
        self._redactor = redactor

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        parse(MemoryReadArguments, arguments)
        return Access(memory_reads=True)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(MemoryReadArguments, arguments)
        path = wanted.path.strip().strip("/").removeprefix("./")
        file = await self._file(path, wanted, context) if path not in {"", "."} else None
        if file is None:
            return (TextPart(text=await self._listing("" if path == "." else path, wanted, context)),)
        return (TextPart(text=self._page(file, wanted)),)

    async def _file(self, path: str, wanted: MemoryReadArguments, context: ToolContext) -> MemoryFile | None:
        try:
            return await self._memory.read(context.memory_id, path, context.audience, at=_revision(wanted.at))
        except NotFound:
            return None

    def _page(self, file: MemoryFile, wanted: MemoryReadArguments) -> str:
        text = self._redactor.mask(clean_text(file.body))
        shown = page(text, READ_LIMITS, start=Start(line=wanted.offset, column=wanted.column))
        return f"{_head(file)}\n{shown}"

    async def _listing(self, path: str, wanted: MemoryReadArguments, context: ToolContext) -> str:
        try:
            snapshot = await self._memory.snapshot(context.memory_id, context.audience, at=_revision(wanted.at))
        except NotFound as error:
            raise ToolError(f"There is no revision {wanted.at!r}; find one with memory_log.") from error
        recent = await self._memory.log(context.memory_id, limit=SHOWN_ENTRIES)
        edited = [edited_path for commit in recent for edited_path in commit.paths]
        shown = listing(snapshot.files, path, edited)
        if shown is None:
            raise ToolError(f"There is no {path!r} in your memory; list it with memory_read and no path.")
        return shown


class ChangeArguments(Arguments):
    """One change of `memory_write`."""

    kind: ChangeKind
    path: str = Field(min_length=1)
    text: str | None = Field(default=None, description="The body; with edit, what replaces `old`")
    old: str = Field(default="", description="Exact text that stands once in the file")
    target: str = Field(default="", description="New path")
    description: str = Field(default="", description="What the file is for, in one line")

    @model_validator(mode="after")
    def _holds_what_its_kind_needs(self) -> Self:
        given = {"text": self.text is not None, "old": bool(self.old), "target": bool(self.target)}
        needed = _NEEDED[self.kind]
        missing = [name for name in needed if not given[name]]
        if missing:
            raise ValueError(f"{self.kind} needs `{'` and `'.join(missing)}`")
        if self.old and "old" not in needed:
            raise ValueError(f"{self.kind} takes no `old`; to change a part of a file use edit")
        return self


_NEEDED: Mapping[ChangeKind, tuple[str, ...]] = {
    ChangeKind.CREATE: ("text",),
    ChangeKind.REPLACE: ("text",),
    ChangeKind.EDIT: ("old", "text"),
    ChangeKind.MOVE: ("target",),
    ChangeKind.DELETE: (),
}


class MemoryWriteArguments(Arguments):
    """Arguments of `memory_write`."""

    message: str = Field(min_length=1, description="Why, in one line")
    changes: tuple[ChangeArguments, ...] = Field(min_length=1)


class MemoryWriteTool:
    """Commits changes of the own memory, all of them or none."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "memory_write",
        "Change your memory: all changes become one commit, or none does. "
        "Kinds: create (text, description), replace (text), edit (old, text), move (target), delete.",
        MemoryWriteArguments,
    )

    def __init__(self, memory: MemoryStore, was_approved: WasApproved) -> None:
        self._memory = memory
        self._was_approved = was_approved

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        changes = memory_changes(arguments)
        touched = [path for change in changes for path in (change.path, change.target) if path]
        return Access(memory_writes=tuple(dict.fromkeys(touched)))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        message = parse(MemoryWriteArguments, arguments).message
        origin = commit_origin(context, approved=await self._was_approved(context))
        try:
            commit = await self._memory.commit(
                context.memory_id, memory_changes(arguments), message=message, origin=origin
            )
        except MemoryRefused as error:
            raise ToolError(f"Nothing was committed. {error}") from error
        except MemoryConflict as error:
            raise ToolError(
                f"Nothing was committed: {', '.join(error.paths)} changed at the same time. Read again, then redo it."
            ) from error
        except NotFound as error:
            raise ToolError(f"Nothing was committed: there is {error}.") from error
        except StorageFull as error:
            raise ToolError("Nothing was committed: the host has no space left. Tell its operator.") from error
        return (TextPart(text=f"Committed {commit.revision}: {', '.join(commit.paths)}."),)


def memory_changes(arguments: Mapping[str, Any]) -> tuple[MemoryChange, ...]:
    """Return the changes that arguments of `memory_write` ask for, also for a dry run before a verdict.

    Raises:
        ToolError: The arguments do not fit.
    """
    return tuple(
        MemoryChange(
            kind=change.kind,
            path=change.path,
            text=change.text or "",
            old=change.old,
            target=change.target,
            description=change.description,
        )
        for change in parse(MemoryWriteArguments, arguments).changes
    )


def commit_origin(context: ToolContext, *, approved: bool) -> CommitOrigin:
    """Return the origin of what the agent itself commits in `context`."""
    return CommitOrigin(
        author="agent",
        audience=context.audience,
        conversation_id=context.conversation_id,
        person=context.requester or "",
        approved=approved,
    )


class MemoryLogArguments(Arguments):
    """Arguments of `memory_log`."""

    path: str | None = Field(default=None, description="Only commits that touch this file")
    limit: int = Field(default=20, ge=1, le=100)


class MemoryLogTool:
    """Shows the history as far as the conversation's audience may see what was changed."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "memory_log", "List the commits of your memory, newest first.", MemoryLogArguments
    )

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        parse(MemoryLogArguments, arguments)
        return Access(memory_reads=True)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(MemoryLogArguments, arguments)
        commits = await self._memory.log(context.memory_id, path=wanted.path, limit=wanted.limit)
        snapshot = await self._memory.snapshot(context.memory_id, context.audience)
        visible_now = {file.path for file in snapshot.files}
        lines = [await self._line(commit, visible_now, context) for commit in commits]
        shown = [line for line in lines if line]
        return (TextPart(text="\n".join(shown) if shown else "(no commits)"),)

    async def _line(self, commit: MemoryCommit, visible_now: set[str], context: ToolContext) -> str:
        """Return a commit as one line; empty when none of its files is for this audience."""
        visible = [
            path for path in commit.paths if path in visible_now or await self._was_visible(path, commit, context)
        ]
        if not visible:
            return ""
        # One message speaks of all its files: it is shown only where all of them may be.
        subject = commit.message.partition("\n")[0] if len(visible) == len(commit.paths) else "(message withheld)"
        return (
            f"{commit.revision} {commit.committed_at:%Y-%m-%d %H:%MZ} {commit.author}: {subject} [{', '.join(visible)}]"
        )

    async def _was_visible(self, path: str, commit: MemoryCommit, context: ToolContext) -> bool:
        """Return whether the audience could see a file after the commit or, where it was deleted, before it."""
        for revision in filter(None, (commit.revision, commit.parent)):
            try:
                await self._memory.read(context.memory_id, path, context.audience, at=revision)
            except NotFound:
                continue
            return True
        return False


def _head(file: MemoryFile) -> str:
    """Return the line above a file: what it is for and how full it is."""
    description = clean_text(file.description)[:_DESCRIPTION_CHARS]
    read_only = ", read-only" if file.read_only else ""
    return f"[{file.path}: {len(file.body):,} of {file.limit_chars:,} characters{read_only}; {description}]"


def _revision(at: str | None) -> Revision | None:
    return Revision(at) if at else None


if TYPE_CHECKING:
    _read: type[Tool] = MemoryReadTool
    _write: type[Tool] = MemoryWriteTool
    _log: type[Tool] = MemoryLogTool
