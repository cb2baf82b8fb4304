"""What an image file is, by its content: kind, size in pixels, and whether a model can be shown it. Pure.

Nothing is decoded. But a file that is cut off or damaged is found out here, because a provider refuses
the whole request with it, and with it every later one of its conversation.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

IMAGE_LIMIT_BYTES = 5 * 1024 * 1024 * 3 // 4
"""Anthropic takes 5 MiB an image, counted in base64, which is four characters for three bytes:
docs.anthropic.com/en/docs/build-with-claude/vision and the error "image exceeds 5 MB maximum", read 2026-12-02."""
EDGE_LIMIT_PX = 8_000
"""The same page: more in either direction is refused. Others shrink what they find too large."""
HEAD_BYTES = 16
"""How much of a file tells whether it is an image."""

NO_IMAGE = "it is no PNG, JPEG, GIF or WebP image"
DAMAGED = "the image in it is damaged"
TOO_MANY_BYTES = f"it has more than {IMAGE_LIMIT_BYTES:,} bytes, too many for a model"
TOO_MANY_PIXELS = f"it has more than {EDGE_LIMIT_PX:,} pixels in one direction, too many for a model"

_PNG = b"\x89PNG\r\n\x1a\n"
_MARKER = 0xFF
_START_OF_SCAN = 0xDA
_LONE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
"""JPEG markers that nothing follows."""
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_LOSSLESS_WEBP = 0x2F


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """An image that a model can be shown; `extension` is without the dot."""

    media_type: str
    extension: str
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """Why something is not shown: half a sentence about "it", the file."""

    reason: str


class _Broken(Exception):
    """The file does not go on as its beginning promised."""


def is_image(head: bytes) -> bool:
    """Return whether a file that begins so, with `HEAD_BYTES` or more, is an image of a kind models see."""
    return _kind(head) is not None


def examine(data: bytes) -> ImageFacts | Unfit:
    """Return what the image in a whole file is, or why it cannot be shown."""
    kind = _kind(data)
    if kind is None:
        return Unfit(reason=NO_IMAGE)
    if len(data) > IMAGE_LIMIT_BYTES:
        return Unfit(reason=TOO_MANY_BYTES)
    extension, measure = kind
    try:
        width, height = measure(data)
    except (_Broken, struct.error, IndexError):
        return Unfit(reason=DAMAGED)
    if min(width, height) < 1:
        return Unfit(reason=DAMAGED)
    if max(width, height) > EDGE_LIMIT_PX:
        return Unfit(reason=TOO_MANY_PIXELS)
    return ImageFacts(media_type=f"image/{extension}", extension=extension, width_px=width, height_px=height)


def _kind(head: bytes) -> tuple[str, Callable[[bytes], tuple[int, int]]] | None:
    if head.startswith(_PNG):
        return "png", _png
    if head.startswith(b"\xff\xd8\xff"):
        return "jpeg", _jpeg
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "gif", _gif
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp", _webp
    return None


def _png(data: bytes) -> tuple[int, int]:
    chunks = list(_png_chunks(data))
    names = [name for name, _ in chunks]
    if names[:1] != [b"IHDR"] or names[-1] != b"IEND" or b"IDAT" not in names:
        raise _Broken
    width, height = struct.unpack_from(">II", chunks[0][1])
    return width, height


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content up to the end chunk; what stands behind that belongs to nobody."""
    position, name = len(_PNG), b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, position)
        body = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, position + 8 + length)
        if zlib.crc32(name + body) != checksum:
            raise _Broken
        yield name, body
        position += 12 + length


def _jpeg(data: bytes) -> tuple[int, int]:
    """Read the frame header that stands in front of the first scan; the scan has to come to an end."""
    size: tuple[int, int] | None = None
    position = 2
    while True:
        if data[position] != _MARKER:
            raise _Broken
        marker = data[position + 1]
        if marker == _MARKER:
            position += 1
            continue
        if marker in _LONE_MARKERS:
            position += 2
            continue
        (length,) = struct.unpack_from(">H", data, position + 2)
        if marker in _FRAME_HEADERS:
            height, width = struct.unpack_from(">HH", data, position + 5)
            size = (width, height)
        if marker == _START_OF_SCAN:
            break
        position += 2 + length
    if size is None or data.rfind(b"\xff\xd9") < position:
        raise _Broken
    return size


def _gif(data: bytes) -> tuple[int, int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    position = 13 + _color_table_bytes(flags)
    frames = 0
    while True:
        match data[position]:
            case 0x3B if frames:
                return width, height
            case 0x21:
                position = _behind_blocks(data, position + 2)
            case 0x2C:
                frames += 1
                position = _behind_blocks(data, position + 11 + _color_table_bytes(data[position + 9]))
            case _:
                raise _Broken


def _color_table_bytes(flags: int) -> int:
    return 3 << ((flags & 0x07) + 1) if flags & 0x80 else 0


def _behind_blocks(data: bytes, position: int) -> int:
    """Return where a row of sub-blocks has ended."""
    while length := data[position]:
        position += 1 + length
    return position + 1


def _webp(data: bytes) -> tuple[int, int]:
    """Read the canvas where one is stated, else the picture; one picture has to be there, whole."""
    (total,) = struct.unpack_from("<I", data, 4)
    end = 8 + total
    canvas: tuple[int, int] | None = None
    picture: tuple[int, int] | None = None
    position = 12
    if end > len(data):
        raise _Broken
    while position + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, position)
        body = position + 8
        if body + length > end:
            raise _Broken
        match name:
            case b"VP8X":
                canvas = (_uint24(data, body + 4) + 1, _uint24(data, body + 7) + 1)
            case b"VP8 " | b"VP8L":
                picture = picture or _webp_picture(name, data, body)
            case b"ANMF":
                picture = picture or (_uint24(data, body + 6) + 1, _uint24(data, body + 9) + 1)
            case _:
                pass
        position = body + length + length % 2
    if picture is None:
        raise _Broken
    return canvas or picture


def _webp_picture(name: bytes, data: bytes, body: int) -> tuple[int, int]:
    """Read the size from the beginning of a lossy (RFC 6386, 9.1) or lossless (RFC 9649, 3.4) bitstream."""
    if name == b"VP8 ":
        if data[body + 3 : body + 6] != b"\x9d\x01\x2a":
            raise _Broken
        width, height = struct.unpack_from("<HH", data, body + 6)
        return width & 0x3FFF, height & 0x3FFF
    if data[body] != _LOSSLESS_WEBP:
        raise _Broken
    (bits,) = struct.unpack_from("<I", data, body + 1)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def _uint24(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 3], "little")
