"""What well-known programs do, as data: which only read, and which run or write more than they say.

Every table errs towards a question. A program that is not listed as reading is asked about; an
option that is not listed as harmless is not harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.permissions.commands import program_name


class Operands(StrEnum):
    """What the words that are no options mean to a program."""

    NONE = "none"
    """It takes none; one that is given may change something."""
    TEXT = "text"
    PATHS = "paths"
    """Files, revisions or patterns: each is judged as if it were a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A program that only reads: the option letters and long options that keep it so."""

    letters: str = ""
    options: frozenset[str] = frozenset()
    operands: Operands = Operands.PATHS
    anything: bool = False
    """Whatever it is given, it only prints (`echo`)."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _long(names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names.split())


_GIT_DIFF = "stat cached staged name-only name-status numstat shortstat summary no-color no-ext-diff no-textconv"

# The key is how the command begins. Programs whose operands can write (`uniq IN OUT`, `date TIME`,
# `hostname NAME`) or that run others (`find`, `rg --pre`) are left out or take no operands.
READERS: Mapping[tuple[str, ...], Reader] = {
    ("basename",): Reader(operands=Operands.TEXT),
    ("cat",): Reader(letters="AbeEnstTv"),
    ("cmp",): Reader(letters="bls"),
    ("date",): Reader(letters="u", options=_long("utc"), operands=Operands.NONE),
    ("diff",): Reader(letters="bBiNqruwy"),
    ("dirname",): Reader(operands=Operands.TEXT),
    ("du",): Reader(letters="achks", options=_long("all human-readable summarize")),
    ("echo",): Reader(anything=True),
    ("false",): Reader(operands=Operands.NONE),
    ("file",): Reader(letters="bi"),
    ("git", "diff"): Reader(options=_long(_GIT_DIFF)),
    ("git", "log"): Reader(letters="n", options=_long("oneline stat graph all no-color decorate no-decorate reverse")),
    ("git", "status"): Reader(letters="sbuvz", options=_long("short branch porcelain long show-stash")),
    ("grep",): Reader(letters="cEFhHilnoqrsvwx", options=_long("count ignore-case line-number recursive")),
    ("head",): Reader(letters="cnqv", options=_long("lines bytes")),
    ("id",): Reader(letters="gnu", operands=Operands.NONE),
    ("ls",): Reader(letters="1aAdFhilprRsStU", options=_long("all almost-all human-readable recursive reverse")),
    ("pwd",): Reader(letters="LP", operands=Operands.NONE),
    ("stat",): Reader(),
    ("tail",): Reader(letters="cnqv", options=_long("lines bytes")),
    ("true",): Reader(operands=Operands.NONE),
    ("uname",): Reader(letters="amnprsv", operands=Operands.NONE),
    ("wc",): Reader(letters="clLmw", options=_long("bytes chars lines words")),
    ("which",): Reader(letters="a", operands=Operands.TEXT),
    ("whoami",): Reader(operands=Operands.NONE),
}

WRAPPERS = _names(
    ". ash bash builtin busybox chroot command csh dash doas env eval exec fakeroot find fish flock ionice ksh"
    " nice nohup nsenter parallel runuser script setsid sh source ssh stdbuf strace su sudo systemd-run tcsh time"
    " timeout trap unshare watch xargs zsh"
)
"""Programs that run their arguments as a command or as code."""

INTERPRETERS = _names(
    "awk bun deno ed ex expect gawk gdb lua m4 mawk nawk node npx perl php pipx python python3 ruby sed tclsh uvx"
    " vi vim"
)
"""Programs that take code of another language."""

_RISKY_OPTIONS = _long(
    "checkpoint-action command compress-program config config-env editor eval exec exec-path execute ext-diff hook"
    " in-place info-script open-files-in-pager output output-directory output-document pager pre receive-pack rsh"
    " rsync-path script shell to-command upload-pack use-compress-program wrapper"
)
_RISKY_LETTERS: Mapping[str, str] = {
    "curl": "oOKTD",
    "docker": "v",
    "git": "cCoOxu",
    "less": "oO",
    "rsync": "e",
    "sort": "oT",
    "tar": "IFC",
    "tree": "o",
    "wget": "oOPie",
    "zip": "T",
}
_SHORTEST_ABBREVIATION = len("--x")


def read_only_operands(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return what a command reads when it is known to only read; None for every other command.

    What is returned must still be judged as paths, relative to where the command runs.
    """
    for length in (2, 1):
        reader = READERS.get(words[:length])
        if reader is not None:
            return _operands(reader, words[length:])
    return None


def exceeds_rule(words: tuple[str, ...]) -> bool:
    """Return whether a command may run other programs, or write where its name does not say so.

    A rule that ends in `*` never covers such a command.
    """
    program = program_name(words[0])
    if program in WRAPPERS or program in INTERPRETERS:
        return True
    letters = _RISKY_LETTERS.get(program, "")
    return any(_is_risky(word, letters) for word in words[1:])


def _operands(reader: Reader, words: tuple[str, ...]) -> tuple[str, ...] | None:
    if reader.anything:
        return ()
    options, operands = _divide(words)
    if not all(_is_harmless(option, reader) for option in options):
        return None
    match reader.operands:
        case Operands.NONE:
            return None if operands else ()
        case Operands.TEXT:
            return ()
        case Operands.PATHS:
            return operands


def _divide(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    end = words.index("--") if "--" in words else len(words)
    before = words[:end]
    options = tuple(word for word in before if word.startswith("-") and word != "-")
    return options, tuple(word for word in before if word not in options) + words[end + 1 :]


def _is_harmless(option: str, reader: Reader) -> bool:
    if option.startswith("--"):
        return option.partition("=")[0] in reader.options
    letters = f"{reader.letters}0123456789" if "n" in reader.letters else reader.letters
    return all(letter in letters for letter in option[1:])


def _is_risky(word: str, letters: str) -> bool:
    if word.startswith("--"):
        name = word.partition("=")[0]
        # Long options may be abbreviated: `--outp=FILE`.
        return len(name) >= _SHORTEST_ABBREVIATION and any(option.startswith(name) for option in _RISKY_OPTIONS)
    return word.startswith("-") and any(letter in letters for letter in word[1:])
