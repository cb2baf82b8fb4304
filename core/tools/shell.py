"""`shell`: commands in the sandbox, their output within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from core.contracts.errors import SandboxUnavailable, ToolError
from core.contracts.messages import TextPart
from core.contracts.sandbox import CommandResult, Sandbox, SandboxCommand
from core.contracts.secrets import Redactor
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.output import clean_text, cut_mark, decode_text, detect_encoding
from core.tools.overflow import CAP_BYTES, OverflowFiles, file_stem, prepare_folder
from core.tools.schema import Arguments, parse, tool_schema
from core.tools.threads import run_to_end

DEFAULT_TIMEOUT_SECONDS = 120
LONGEST_TIMEOUT_SECONDS = 600

OUTPUT_HALF_CHARS = 15_000
"""Of each end of a command's output."""

FAILED_HALF_CHARS = 10_000
"""Of each end, when the command failed."""

_EDGE_CHARS = 4_096
"""What is given up on both sides of dropped bytes: a secret cut in two there would not be masked."""

KEEP_BYTES = 4 * (OUTPUT_HALF_CHARS + _EDGE_CHARS)
"""Of each end, from the sandbox: enough for the characters above when each takes four bytes."""


class ShellArguments(Arguments):
    """Arguments of `shell`."""

    command: str = Field(min_length=1, description="Bash command line, run in the workspace")
    timeout_seconds: int = Field(
        default=DEFAULT_TIMEOUT_SECONDS,
        ge=1,
        le=LONGEST_TIMEOUT_SECONDS,
        description=f"Default {DEFAULT_TIMEOUT_SECONDS}, at most {LONGEST_TIMEOUT_SECONDS}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """What every command gets. `env` is added to what the sandbox sets."""

    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    read_only: tuple[Path, ...] = ()


class ShellTool:
    """Runs one bash command line and returns how it ended."""

    schema: ClassVar[ToolSchema] = tool_schema(
        "shell",
        "Run a command in a sandbox. Returns stdout and stderr as they came, and the exit code if not 0. "
        "No input and no terminal; what it leaves running is killed. "
        "Over 30,000 characters: head, tail, and the file that holds all.",
        ShellArguments,
    )

    def __init__(self, sandbox: Sandbox, overflow: OverflowFiles, redactor: Redactor, settings: ShellSettings) -> None:
        self._sandbox = sandbox
        self._overflow = overflow
        self._redactor = redactor
        self._settings = settings

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        return Access(command=parse(ShellArguments, arguments).command)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(ShellArguments, arguments)
        await run_to_end(_prepare, context)
        spill = context.overflow / f".{file_stem(context.call_id)}.raw"
        try:
            result = await self._sandbox.run(self._command(wanted, context, spill))
            shown = await self._shown(result, context, spill)
        except SandboxUnavailable as error:
            raise ToolError(f"Commands cannot run on this host: {error.reason}") from error
        finally:
            await run_to_end(_remove, spill)
        return (TextPart(text=_with_ending(shown, result, wanted)),)

    def _command(self, wanted: ShellArguments, context: ToolContext, spill: Path) -> SandboxCommand:
        return SandboxCommand(
            argv=("/bin/bash", "-c", wanted.command),
            workspace=context.workspace,
            env=self._settings.env,
            timeout=timedelta(seconds=wanted.timeout_seconds),
            network=self._settings.network,
            read_only=(*self._settings.read_only, *_there((context.overflow, *context.readable))),
            keep_bytes=KEEP_BYTES,
            spill=spill,
            spill_limit_bytes=CAP_BYTES,
        )

    async def _shown(self, result: CommandResult, context: ToolContext, spill: Path) -> str:
        half_chars = FAILED_HALF_CHARS if result.exit_code != 0 else OUTPUT_HALF_CHARS
        if result.dropped_bytes == 0:
            return await self._shown_whole(clean_text(result.head + result.tail), half_chars, context)
        kept = await self._overflow.keep_spill(spill, context) if result.spilled else None
        return self._shown_ends(result, half_chars, kept)

    async def _shown_whole(self, output: str, half_chars: int, context: ToolContext) -> str:
        """Return output that is known in full, cut only for the model."""
        masked = self._redactor.mask(output)
        missing = len(masked) - 2 * half_chars
        if missing <= 0:
            return masked
        mark = cut_mark(missing, len(masked), _where(await self._overflow.keep(masked, context)))
        return masked[:half_chars] + mark + masked[-half_chars:]

    def _shown_ends(self, result: CommandResult, half_chars: int, kept: Path | None) -> str:
        """Return the ends of output that was too long to hold; each is masked by itself."""
        encoding = detect_encoding(result.head)
        starts_odd = (len(result.head) + result.dropped_bytes) % 2 == 1
        tail_bytes = result.tail[1:] if encoding != "utf-8" and starts_odd else result.tail
        head = self._redactor.mask(clean_text(result.head))[:-_EDGE_CHARS][:half_chars]
        tail = self._redactor.mask(decode_text(tail_bytes, encoding))[_EDGE_CHARS:][-half_chars:]
        total = len(result.head) + result.dropped_bytes + len(result.tail)
        shown_bytes = len(head.encode()) + len(tail.encode())
        missing = max(result.dropped_bytes, total - shown_bytes)
        return f"{head}\n[... about {missing:,} of {total:,} bytes left out; {_where(kept, total)} ...]\n{tail}"


def _where(kept: Path | None, total_bytes: int = 0) -> str:
    if kept is None:
        return "the rest could not be kept"
    if total_bytes > CAP_BYTES:
        return f"the first {CAP_BYTES:,} bytes are in {kept}"
    return f"all of it is in {kept}"


def _with_ending(output: str, result: CommandResult, wanted: ShellArguments) -> str:
    if result.timed_out:
        ending = f"[timed out after {wanted.timeout_seconds} s and was killed]"
    elif result.exit_code != 0:
        ending = f"[exit code {result.exit_code}]"
    elif not output:
        ending = "[no output, exit code 0]"
    else:
        return output
    return f"{output.removesuffix(chr(10))}\n{ending}" if output else ending


def _prepare(context: ToolContext) -> None:
    try:
        prepare_folder(context)
    except OSError as error:
        raise ToolError(f"Commands cannot run: there is no folder for long outputs ({error.strerror}).") from error


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _there(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that exist: a sandbox cannot show others."""
    return (folder for folder in folders if folder.is_dir())


if TYPE_CHECKING:
    _conforms: type[Tool] = ShellTool
