"""Files as text: the YAML header and the body of one memory file, whatever its bytes are.

A reader never fails. Bytes that are not UTF-8 travel as lone surrogates (`surrogateescape`) in
`Document.raw`, so that an edit elsewhere in the file writes them back unchanged; what people and
models see (`Document.body`) has U+FFFD in their place.

Header values are read as strings, lists and mappings of strings, never as dates, numbers or
objects: `description: yes` is the word "yes", and no tag can construct anything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import yaml

LARGE_BYTES = 1_000_000
"""Larger blobs are never loaded: they are committed by hand and no memory."""

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_FENCE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_HEADER_CHARS = 100_000
_SALVAGED_LINES = 200

# One line that YAML reads as a string by any parser; the whole header in this form needs none.
_PLAIN_VALUE = r"[^\W_](?:[\w ,.;!?()/'\u2019+-]|:(?=[^\s]))*"
_PLAIN_LINE = re.compile(rf"([a-z][a-z_]*): +({_PLAIN_VALUE})[ ]*\r?")
_SALVAGED = re.compile(
    r"[\s\-{,\"']*(name|description|limit|read_only|audience|hidden)[\"']?[ \t]*:[ \t]*(.*?)[ \t]*\r?"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file, read.

    `header + raw` is the file's text, its byte order mark aside. `fault` says what is wrong
    with it, with the line, and is empty for a sound file.
    """

    header: str = ""
    raw: str = ""
    body: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    fault: str = ""
    size_bytes: int = 0
    escaped: int = 0
    """How many bytes of the file are not UTF-8."""
    editable: bool = True
    """False where `text` is not the file: it was not loaded, or is in another encoding."""

    @property
    def text(self) -> str:
        """Return the whole file as written, odd bytes as lone surrogates."""
        return self.header + self.raw

    def word(self, name: str) -> str:
        """Return a header value that is a string, otherwise an empty one."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        """Return whether a header value says yes."""
        value = self.word(name)
        return value != "" and value.strip().lower() in {"true", "yes", "on", "1"}

    def number(self, name: str) -> int | None:
        """Return a header value that is a whole number."""
        value = self.word(name)
        if not value:
            return None
        digits = value.strip().replace("_", "")
        return int(digits) if re.fullmatch(r"[0-9]{1,9}", digits) else None


def parse(data: bytes) -> Document:
    """Read a file. Never raises: what cannot be understood is body, and `fault` says why."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
        return Document(
            body=_shown(text),
            fault="line 1: UTF-16, not UTF-8",
            size_bytes=len(data),
            escaped=len(data),
            editable=False,
        )
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    escaped = 0 if text.isascii() else len(_SURROGATE.findall(text))
    document = parse_text(text, size_bytes=len(data))
    if not escaped and "\0" not in text:
        return document
    body = _shown(document.raw) if _looks_like_text(text, escaped) else f"[binary file of {len(data):,} bytes]"
    return replace(document, body=body, fault=document.fault or _byte_fault(text), escaped=escaped)


def too_large(size_bytes: int) -> Document:
    """Return what stands for a blob that is not loaded."""
    note = f"[{size_bytes:,} bytes: too large to be loaded]"
    return Document(body=note, fault="line 1: larger than 1 MB", size_bytes=size_bytes, editable=False)


def parse_text(text: str, *, size_bytes: int = 0) -> Document:
    """Split a text into header and body."""
    opening = _FENCE.match(text)
    if opening is None:
        return Document(raw=text, body=text, size_bytes=size_bytes)
    closing = _FENCE.search(text, opening.end() + 1, opening.end() + _HEADER_CHARS)
    if closing is None:
        salvaged, fault = _salvage(text[opening.end() :]), "line 1: the header has no closing ---"
        return Document(raw=text, body=text, fields=salvaged, fault=fault, size_bytes=size_bytes)
    header, raw = text[: closing.end() + 1], text[closing.end() + 1 :]
    fields, fault = _read_header(text[opening.end() + 1 : closing.start()])
    return Document(header=header, raw=raw, body=raw, fields=fields, fault=fault, size_bytes=size_bytes)


def render(fields: Mapping[str, object], body: str) -> str:
    """Return a file's text; `parse_text` gives back equal strings and an equal body."""
    lines = [_render_field(name, value) for name, value in fields.items()]
    return f"---\n{''.join(lines)}---\n{body}"


def clean(text: str) -> str:
    """Return `text` as UTF-8 can hold it: no NUL, no lone surrogates."""
    return _SURROGATE.sub("\ufffd", text).replace("\0", "\ufffd")


def _read_header(inner: str) -> tuple[Mapping[str, object], str]:
    plain = _plain_fields(inner)
    if plain is not None:
        return plain, ""
    try:
        loaded = yaml.load(inner, _LOADER)  # noqa: S506 - the base loader constructs nothing but strings, lists, dicts
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        return _salvage(inner), f"line {line}: the header is not valid YAML"
    except (yaml.YAMLError, UnicodeEncodeError, RecursionError):
        return _salvage(inner), "line 2: the header is not valid YAML"
    if loaded is None or loaded == "":
        return {}, ""
    if not isinstance(loaded, dict):
        return _salvage(inner), "line 2: the header is no list of `name: value` lines"
    return {key: value for key, value in loaded.items() if isinstance(key, str)}, ""


def _plain_fields(inner: str) -> dict[str, str] | None:
    """Return the fields of a header of plain lines with different names, None for any other header."""
    plain: dict[str, str] = {}
    for line in inner.split("\n"):
        if line in {"", "\r"}:
            continue
        match = _PLAIN_LINE.fullmatch(line)
        if match is None or match[1] in plain:
            return None
        plain[match[1]] = match[2].rstrip()
    return plain


def _salvage(header: str) -> dict[str, object]:
    """Return known fields of a header that no parser takes, so that its audience still holds."""
    found: dict[str, object] = {}
    for line in header.split("\n")[:_SALVAGED_LINES]:
        if match := _SALVAGED.fullmatch(line):
            found.setdefault(match[1], match[2].strip("'\""))
    return found


def _render_field(name: str, value: object) -> str:
    if isinstance(value, str) and re.fullmatch(_PLAIN_VALUE, value) and _reads_as_string(value):
        return f"{name}: {value}\n"
    style = '"' if isinstance(value, str) else None
    dumped = yaml.safe_dump(value, default_style=style, width=sys.maxsize, allow_unicode=True, default_flow_style=True)
    return f"{name}: {dumped.removesuffix(chr(10)).removesuffix(chr(10) + '...')}\n"


def _reads_as_string(value: str) -> bool:
    """Return whether other YAML readers, too, take the unquoted value for this string."""
    try:
        return bool(yaml.safe_load(value) == value)
    except (yaml.YAMLError, ValueError):
        return False


def _looks_like_text(text: str, escaped: int) -> bool:
    return (escaped + text.count("\0")) * 10 <= len(text)


def _byte_fault(text: str) -> str:
    for number, line in enumerate(text.split("\n"), start=1):
        if "\0" in line:
            return f"line {number}: NUL bytes"
        if _SURROGATE.search(line):
            return f"line {number}: not UTF-8"
    return ""


def _shown(text: str) -> str:
    """Return what can be shown: each run of bytes that are no UTF-8 as U+FFFD."""
    return clean(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
