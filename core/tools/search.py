"""`grep` and `glob`: finding text and files in the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import regex
from pydantic import Field

from core.contracts.clock import Clock
from core.contracts.errors import ToolError
from core.contracts.messages import TextPart
from core.contracts.secrets import Redactor
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.files_port import FileEntry, FilesFactory, WorkspaceFiles
from core.tools.output import clean_text, looks_binary
from core.tools.paging import split_lines
from core.tools.paths import Place, absolute_path, place_in_workspace, place_to_read
from core.tools.patterns import PathPattern
from core.tools.schema import Arguments, parse, tool_schema
from core.tools.threads import StopFlag, run_to_end

GREP_LIMIT_CHARS = 10_000
GLOB_LIMIT_PATHS = 2_000
GLOB_LIMIT_CHARS = 30_000
LINE_LIMIT_CHARS = 300
SEARCHED_FILE_LIMIT_BYTES = 2_000_000
SEARCH_SECONDS = 10.0
"""How long one search may think, over all files."""

_NOTE_ROOM_CHARS = 200
_LONGEST_PATTERN_CHARS = 1_000
_UNSEARCHED_FOLDER = ".git"

FOLDER = Field(default=".", description="File or folder to search; default the workspace")


class GrepArguments(Arguments):
    """Arguments of `grep`."""

    pattern: str = Field(min_length=1, max_length=_LONGEST_PATTERN_CHARS, description="Regular expression")
    path: str = FOLDER
    glob: str | None = Field(default=None, description="Only files like `*.py` or `src/**/*.ts`")
    ignore_case: bool = False


class GlobArguments(Arguments):
    """Arguments of `glob`."""

    pattern: str = Field(description="Such as `*.md` (in any folder) or `src/**/test_*.py`")
    path: str = FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long a search may go on: until `deadline`, or until nobody wants it any more."""

    clock: Clock
    deadline: float
    stop: StopFlag

    @property
    def remaining_seconds(self) -> float:
        """Seconds left; 0 when the search must end."""
        return 0.0 if self.stop.is_set else max(0.0, self.deadline - self.clock.monotonic())


class GrepTool:
    """Searches text files line by line, with an engine whose matching can be stopped by time."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "grep",
        "Search text files for lines that match. Returns `path:line:text`, at most 10,000 characters. "
        "Binary files, files over 2 MB and .git are skipped.",
        GrepArguments,
    )

    def __init__(self, files: FilesFactory, redactor: Redactor, clock: Clock) -> None:
        self._files = files
        self._redactor = redactor
        self._clock = clock

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(reads=(absolute_path(parse(GrepArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(GrepArguments, arguments)
        text = await _searched(lambda effort: self._grep(wanted, context, effort), self._clock)
        return (TextPart(text=text),)

    def _grep(self, wanted: GrepArguments, context: ToolContext, effort: Effort) -> str:
        place = place_to_read(wanted.path, context)
        expression = _expression(wanted)
        found = _Findings(GREP_LIMIT_CHARS)
        try:
            for path in self._candidates(place, wanted):
                if effort.remaining_seconds <= 0:
                    return found.text(_out_of_time())
                for number, line in self._matches(place, path, expression, effort):
                    if not found.add(f"{_shown(path, place, context)}:{number}:{line}"):
                        return found.text("there is more; narrow the pattern or the path")
        except TimeoutError:
            return found.text(_out_of_time())
        return found.text()

    def _candidates(self, place: Place, wanted: GrepArguments) -> Iterator[str]:
        pattern = PathPattern(wanted.glob) if wanted.glob else None
        files = self._files(place.root)
        for entry in _entries(files, place):
            if entry.size_bytes > SEARCHED_FILE_LIMIT_BYTES:
                continue
            if pattern is None or pattern.matches(_below(entry.path, place)):
                yield entry.path

    def _matches(self, place: Place, path: str, expression: Any, effort: Effort) -> Iterator[tuple[int, str]]:
        try:
            data = self._files(place.root).read(path, limit_bytes=SEARCHED_FILE_LIMIT_BYTES)
        except ToolError:
            return  # gone since it was listed, or closed to the host
        if looks_binary(data):
            return
        # Masked whole, as `read` does it, so that line numbers agree and no half secret shows.
        for number, line in enumerate(split_lines(self._redactor.mask(clean_text(data))), 1):
            hit = expression.search(line, timeout=max(0.001, effort.remaining_seconds))
            if hit is not None:
                yield number, _around(line, hit.start())


class GlobTool:
    """Lists files whose path fits a pattern."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "glob",
        "List files by path pattern, sorted, at most 2,000; .git is skipped.",
        GlobArguments,
    )

    def __init__(self, files: FilesFactory, clock: Clock) -> None:
        self._files = files
        self._clock = clock

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(reads=(absolute_path(parse(GlobArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(GlobArguments, arguments)
        text = await _searched(lambda effort: self._glob(wanted, context, effort), self._clock)
        return (TextPart(text=text),)

    def _glob(self, wanted: GlobArguments, context: ToolContext, effort: Effort) -> str:
        place = place_in_workspace(wanted.path, context)
        pattern = PathPattern(wanted.pattern)
        note, paths = "", []
        for entry in _entries(self._files(place.root), place):
            if effort.remaining_seconds <= 0:
                note = _out_of_time()
                break
            if pattern.matches(_below(entry.path, place)):
                paths.append(entry.path)
        found = _Findings(GLOB_LIMIT_CHARS)
        for path in sorted(paths)[:GLOB_LIMIT_PATHS]:
            if not found.add(path):
                break
        if found.count < len(paths):
            note = f"{found.count:,} of {len(paths):,} paths; narrow the pattern or the path"
        return found.text(note)


class _Findings:
    """Lines of a result, as long as there is room."""

    def __init__(self, limit_chars: int) -> None:
        self._room = limit_chars - _NOTE_ROOM_CHARS
        self._lines: list[str] = []

    @property
    def count(self) -> int:
        return len(self._lines)

    def add(self, line: str) -> bool:
        """Add a line; return False, and add nothing, where there is no room for it."""
        if len(line) + 1 > self._room:
            return False
        self._lines.append(line)
        self._room -= len(line) + 1
        return True

    def text(self, note: str = "") -> str:
        lines = [*(self._lines or ["(nothing found)"]), *([f"[{note}]"] if note else [])]
        return "\n".join(lines)


async def _searched(search: Callable[[Effort], str], clock: Clock) -> str:
    """Run a search in a thread; a cancelled caller makes it stop at the next file."""
    stop = StopFlag()
    effort = Effort(clock=clock, deadline=clock.monotonic() + SEARCH_SECONDS, stop=stop)
    return await run_to_end(search, effort, on_cancel=stop.set)


def _expression(wanted: GrepArguments) -> Any:
    try:
        return regex.compile(wanted.pattern, regex.IGNORECASE if wanted.ignore_case else 0)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ToolError(f"`pattern` is no valid regular expression: {error}.") from error


def _entries(files: WorkspaceFiles, place: Place) -> Iterator[FileEntry]:
    """Yield the files at or below `place`, those of git's own folder left out."""
    known = files.stat(place.path)
    if not known.is_dir:
        yield _OneFile(path=place.path, is_dir=False, size_bytes=known.size_bytes)
        return
    for entry in files.walk(place.path):
        if not entry.is_dir and _UNSEARCHED_FOLDER not in entry.path.split("/"):
            yield entry


@dataclass(frozen=True, slots=True, kw_only=True)
class _OneFile:
    """The entry of a search that names a file instead of a folder."""

    path: str
    is_dir: bool
    size_bytes: int


def _below(path: str, place: Place) -> str:
    """Return `path` as seen from the searched folder, which is what a pattern speaks of."""
    return path if place.path == "." else path.removeprefix(f"{place.path}/")


def _shown(path: str, place: Place, context: ToolContext) -> str:
    """Return `path` as the next call can use it."""
    return path if place.root == context.workspace else str(place.root / path)


def _around(line: str, start: int) -> str:
    """Return a line, or the part of a long one in which the match begins."""
    if len(line) <= LINE_LIMIT_CHARS:
        return line
    begin = max(0, min(start - LINE_LIMIT_CHARS // 3, len(line) - LINE_LIMIT_CHARS))
    end = begin + LINE_LIMIT_CHARS
    return f"{'...' if begin else ''}{line[begin:end]}{'...' if end < len(line) else ''}"


def _out_of_time() -> str:
    return f"stopped after {SEARCH_SECONDS:.0f} s; narrow the pattern or the path"


if TYPE_CHECKING:
    _grep: type[Tool] = GrepTool
    _glob: type[Tool] = GlobTool
