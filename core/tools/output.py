"""Text that tools hand to a model: decoded, cleaned, and cut within a limit. Pure."""

from __future__ import annotations

import codecs
import re

RETURN_LIMIT_CHARS = 32_000
"""The most that one tool return may hold, whatever the tool is."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_SAMPLE_BYTES = 8_192
_SHORTEST_UTF16_BYTES = 4
_BYTE_ORDER_MARK = "\ufeff"
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(raw: str | bytes) -> str:
    """Return `raw` as text that every database, provider and platform accepts.

    Bytes are decoded as UTF-8, or as UTF-16 where they look like it. NULs and a byte order mark
    are dropped, what does not decode becomes U+FFFD, and a surrogate pair becomes the one
    character it stands for.
    """
    if isinstance(raw, bytes):
        return decode_text(raw, detect_encoding(raw)).removeprefix(_BYTE_ORDER_MARK)
    if _SURROGATES.search(raw):
        raw = raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return raw.replace("\0", "")


def decode_text(data: bytes, encoding: str) -> str:
    """Return `data` decoded, NULs dropped, what does not decode as U+FFFD."""
    return data.decode(encoding, "replace").replace("\0", "")


def detect_encoding(data: bytes) -> str:
    """Return the codec of `data`: `utf-16-le` or `utf-16-be` by its mark or its NULs, else `utf-8`.

    Text in UTF-16 without a mark shows as NULs in every second byte, which no UTF-8 text has.
    """
    sample = data[:_SAMPLE_BYTES]
    whole_units = len(data) % 2 == 0 or len(data) > _SAMPLE_BYTES
    if len(sample) < _SHORTEST_UTF16_BYTES or not whole_units:
        return "utf-8"
    if sample.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if sample.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    high, low = _nul_share(sample[1::2]), _nul_share(sample[0::2])
    mostly, hardly = 0.7, 0.05
    if high >= mostly and low <= hardly:
        return "utf-16-le"
    if low >= mostly and high <= hardly:
        return "utf-16-be"
    return "utf-8"


def _nul_share(data: bytes) -> float:
    return data.count(0) / len(data)


def looks_binary(data: bytes) -> bool:
    """Return whether `data` is no text in an encoding that `clean_text` reads."""
    sample = data[:_SAMPLE_BYTES]
    encoding = detect_encoding(sample)
    if encoding.startswith("utf-16"):
        return False
    if b"\0" in sample:
        return True
    text = sample.decode(encoding, "replace")
    most_invalid = 0.3
    return text.count(REPLACEMENT) > most_invalid * len(text)


class ByteDecoder:
    """`clean_text` for bytes that arrive in pieces; the first piece decides the encoding."""

    def __init__(self) -> None:
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Return the text of `data`; with `final` also of what an unfinished character left."""
        if self._decoder is not None:
            return self._decoder.decode(data, final).replace("\0", "")
        self._decoder = codecs.getincrementaldecoder(detect_encoding(data))("replace")
        return self.feed(data, final=final).removeprefix(_BYTE_ORDER_MARK)


def clamp(text: str, limit_chars: int, *, note: str = "") -> str:
    """Return `text` within `limit_chars`: whole, or its head and tail around a mark of what is missing.

    Args:
        text: Any text.
        limit_chars: The most characters of the result, the mark included.
        note: How to get at the rest; stands inside the mark.
    """
    if len(text) <= limit_chars:
        return text
    # The mark with the largest count it can hold decides how much room is left.
    room = max(0, limit_chars - len(cut_mark(len(text), len(text), note)))
    head, tail = room - room // 2, room // 2
    mark = cut_mark(len(text) - room, len(text), note)
    return (text[:head] + mark + text[len(text) - tail :])[:limit_chars]


def cut_mark(missing_chars: int, total_chars: int, note: str = "") -> str:
    """Return the line that stands where characters were left out."""
    rest = f"; {note}" if note else ""
    return f"\n[... {missing_chars:,} of {total_chars:,} characters left out{rest} ...]\n"
