"""`read`, `write` and `edit`: files of the workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from core.contracts.errors import ToolError
from core.contracts.messages import TextPart
from core.contracts.secrets import Redactor
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.files_port import FilesFactory
from core.tools.output import clean_text, looks_binary
from core.tools.paging import PageLimits, Start, page
from core.tools.paths import Place, absolute_path, place_in_workspace, place_to_read
from core.tools.schema import Arguments, parse, tool_schema
from core.tools.threads import run_to_end
from core.tools.versions import ReadVersions

FILE_LIMIT_BYTES = 10_000_000
"""The largest file that is read or edited whole; beyond it the shell is the better tool."""

READ_LIMITS = PageLimits(lines=2_000, line_chars=30_000, chars=30_000, numbered=True)

PATH = Field(description="Absolute, or relative to the workspace")


class ReadArguments(Arguments):
    """Arguments of `read`."""

    path: str = PATH
    offset: int = Field(default=1, ge=1, description="First line")
    limit: int | None = Field(default=None, ge=1, description="Number of lines")
    column: int = Field(default=1, ge=1, description="First character, in a very long line")


class ReadTool:
    """Shows a text file in pages, with line numbers and masked secrets."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "read",
        "Read a text file. Shows up to 2,000 lines or 30,000 characters, each line as number, tab, text, "
        "and says how to read on.",
        ReadArguments,
    )

    def __init__(self, files: FilesFactory, versions: ReadVersions, redactor: Redactor) -> None:
        self._files = files
        self._versions = versions
        self._redactor = redactor

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(reads=(absolute_path(parse(ReadArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        return (TextPart(text=await run_to_end(self._read, parse(ReadArguments, arguments), context)),)

    def _read(self, wanted: ReadArguments, context: ToolContext) -> str:
        place = place_to_read(wanted.path, context)
        data = read_whole(self._files, place)
        self._versions.note(context.conversation_id, place.absolute, data)
        if looks_binary(data):
            raise ToolError(f"{wanted.path!r} is a binary file of {len(data):,} bytes; it cannot be shown as text.")
        # Masked before it is cut, because half a secret would not be recognised.
        text = self._redactor.mask(clean_text(data))
        return page(text, READ_LIMITS, start=Start(line=wanted.offset, column=wanted.column), lines=wanted.limit)


class WriteArguments(Arguments):
    """Arguments of `write`."""

    path: str = PATH
    text: str = Field(description="The whole new content")


class WriteTool:
    """Creates a file or replaces all of it."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "write",
        "Create a file, or replace all of it; missing folders are made.",
        WriteArguments,
    )

    def __init__(self, files: FilesFactory, versions: ReadVersions, redactor: Redactor) -> None:
        self._files = files
        self._versions = versions
        self._redactor = redactor

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(writes=(absolute_path(parse(WriteArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        return (TextPart(text=await run_to_end(self._write, parse(WriteArguments, arguments), context)),)

    def _write(self, wanted: WriteArguments, context: ToolContext) -> str:
        place = place_in_workspace(wanted.path, context)
        before = self._current(place)
        if before is not None:
            self._versions.require_unchanged(context.conversation_id, place.absolute, before)
            refuse_masks(wanted.text, clean_text(before), self._redactor)
        data = wanted.text.encode()
        self._files(place.root).write(place.path, data)
        self._versions.note(context.conversation_id, place.absolute, data)
        return f"{'Created' if before is None else 'Replaced'} {place.path}: {len(data):,} bytes."

    def _current(self, place: Place) -> bytes | None:
        """Return what the file holds, or None where there is none."""
        try:
            return read_whole(self._files, place)
        except ToolError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise


class EditArguments(Arguments):
    """Arguments of `edit`."""

    path: str = PATH
    old: str = Field(min_length=1, description="Text exactly as in the file, without line numbers; must stand once")
    new: str = Field(description="What replaces it")
    replace_all: bool = Field(default=False, description="Replace every occurrence")


class EditTool:
    """Replaces exact text. Works on bytes: what it does not replace stays as it is, valid or not."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "edit",
        "Replace text in a file. Fails when `old` is not found, is not unique, or the file changed since you read it.",
        EditArguments,
    )

    def __init__(self, files: FilesFactory, versions: ReadVersions) -> None:
        self._files = files
        self._versions = versions

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        path = absolute_path(parse(EditArguments, arguments).path, context.workspace)
        return Access(reads=(path,), writes=(path,))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        return (TextPart(text=await run_to_end(self._edit, parse(EditArguments, arguments), context)),)

    def _edit(self, wanted: EditArguments, context: ToolContext) -> str:
        place = place_in_workspace(wanted.path, context)
        before = read_whole(self._files, place)
        self._versions.require_unchanged(context.conversation_id, place.absolute, before)
        after, count = replaced(before, wanted)
        self._files(place.root).write(place.path, after)
        self._versions.note(context.conversation_id, place.absolute, after)
        line = before[: before.index(_as_in(before, wanted.old))].count(b"\n") + 1
        return f"Edited {place.path}: {count} replacement{'s' if count > 1 else ''}, the first at line {line}."


def read_whole(files: FilesFactory, place: Place) -> bytes:
    """Return all bytes of a file that is not too large to be handled whole.

    Raises:
        ToolError: It is missing, a folder, unreadable or too large.
    """
    beneath = files(place.root)
    known = beneath.stat(place.path)
    if known.is_dir:
        raise ToolError(f"{place.path!r} is a folder; list it with glob.")
    data = beneath.read(place.path, limit_bytes=FILE_LIMIT_BYTES + 1)
    size = max(len(data), known.size_bytes)
    if size > FILE_LIMIT_BYTES:
        raise ToolError(
            f"{place.path!r} has {size:,} bytes, more than the {FILE_LIMIT_BYTES:,} this tool handles; "
            "use shell, for example with sed -n or tail."
        )
    return data


def replaced(data: bytes, wanted: EditArguments) -> tuple[bytes, int]:
    """Return `data` with the wanted text replaced, and how often that was.

    Raises:
        ToolError: The old text is not there, or not once where it has to be.
    """
    if wanted.old == wanted.new:
        raise ToolError("`old` and `new` are the same; nothing was changed.")
    old, new = _as_in(data, wanted.old), _as_in(data, wanted.new)
    count = data.count(old)
    if count == 0:
        hint = " Masked secrets cannot be matched; take text beside them." if "[secret " in wanted.old else ""
        raise ToolError(f"`old` is not in {wanted.path!r}; it must match exactly, spaces and line ends too.{hint}")
    if count > 1 and not wanted.replace_all:
        raise ToolError(f"`old` stands {count} times in {wanted.path!r}; add lines around it or set `replace_all`.")
    return data.replace(old, new), count


def refuse_masks(text: str, before: str, redactor: Redactor) -> None:
    """Do nothing unless `text` holds the mask of a secret that the file really has.

    A model that reads a file sees masks in it, and writing the file back would destroy them.

    Raises:
        ToolError: It would.
    """
    for line in redactor.mask(before).splitlines():
        if line not in before and line in text:
            raise ToolError(
                "The text holds the mask of a secret that is in the file; change the lines around with edit."
            )


def _as_in(data: bytes, text: str) -> bytes:
    """Return `text` with the line ends of `data`: reading shows CRLF files with plain line feeds."""
    plain = text.encode()
    if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        return plain.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return plain


if TYPE_CHECKING:
    _read: type[Tool] = ReadTool
    _write: type[Tool] = WriteTool
    _edit: type[Tool] = EditTool
