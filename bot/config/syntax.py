"""TOML bytes to a table, with errors that name file, line, column and the usual remedy."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.errors import ConfigError
from bot.config.positions import KeyPath, Position, key_positions

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file. `file` is None where nothing was read and all is default; `data` is its text, as it was."""

    file: Path | None = None
    data: bytes = field(default=b"", repr=False)
    table: Mapping[str, object] = field(default_factory=dict)
    positions: Mapping[KeyPath, Position] = field(default_factory=dict)


def read_document(file: Path) -> Document:
    """Read and parse a file.

    Raises:
        ConfigError: It cannot be read, is not UTF-8, or is not TOML.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError("there is no such file", file=file) from None
    except IsADirectoryError:
        raise ConfigError("this is a directory, not a file", file=file) from None
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror}", file=file) from error
    return parse_document(data, file)


def parse_document(data: bytes, file: Path) -> Document:
    """Parse the text of a file.

    Raises:
        ConfigError: It is not UTF-8, or is not TOML.
    """
    text = _text(data, file)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, text, file) from error
    return Document(file=file, data=data, table=table, positions=key_positions(text.replace("\r\n", "\n")))


def _text(data: bytes, file: Path) -> str:
    if data.startswith(_BYTE_ORDER_MARK):
        raise ConfigError(
            "the file begins with a byte order mark",
            file=file,
            line=1,
            column=1,
            suggestion="save it as UTF-8 without BOM",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise ConfigError(
            "the file is not UTF-8",
            file=file,
            line=before.count(b"\n") + 1,
            column=error.start - before.rfind(b"\n"),
            suggestion="save it as UTF-8",
        ) from error


def _syntax_error(error: tomllib.TOMLDecodeError, text: str, file: Path) -> ConfigError:
    message = str(error)
    place = _PLACE.search(message)
    lines = text.split("\n")
    line, column = len(lines), len(lines[-1]) + 1
    if place is not None:
        message = message[: place.start()]
        line, column = (int(place[1]), int(place[2])) if place[1] else (line, column)
    wrong = lines[line - 1] if line <= len(lines) else ""
    return ConfigError(
        f"not valid TOML: {message}", file=file, line=line, column=column, suggestion=_remedy(message, wrong)
    )


def _remedy(message: str, line: str) -> str:
    """Return what usually helps; never a piece of the line, which may hold a secret."""
    odd = next((character for character in line if _looks_like_blank(character)), None)
    if odd is not None:
        return f"the line holds {unicodedata.name(odd, 'a character')} (U+{ord(odd):04X}); use a plain space"
    for sign, remedy in (
        ("Invalid value", 'a text stands in quotes: key = "text"'),
        ("Cannot overwrite", "the key is written twice"),
        ("twice", "the table is written twice; put its keys under one header"),
        ("Illegal character", "is a closing quote missing?"),
        ("Unescaped", "write a path in single quotes, or double each backslash"),
        ("hex value", "write a path in single quotes, or double each backslash"),
    ):
        if sign in message:
            return remedy
    return ""


def _looks_like_blank(character: str) -> bool:
    return character not in " \t\r" and unicodedata.category(character) in {"Zs", "Cf", "Zl", "Zp"}
