"""Small real images of every kind: 8 x 5 pixels, as common programs write them."""

from __future__ import annotations

import random
import struct
import zlib
from base64 import b64decode

GIF = b64decode("R0lGODdhCAAFAIEAAP8AAAAAAAAAAAAAACwAAAAACAAFAAAIDQABCBxIsKDBgwgJBgQAOw==")
LOSSY_WEBP = b64decode("UklGRjwAAABXRUJQVlA4IDAAAADQAQCdASoIAAUAAUAmJaACdLoB+AADsAD+8ut//NgVzXPv9//S4P0uD9Lg/9KQAAA=")
LOSSLESS_WEBP = b64decode("UklGRhwAAABXRUJQVlA4TA8AAAAvBwABAAcQ/Y/+ByKi/wEA")
EXTENDED_WEBP = b64decode(
    "UklGRmAAAABXRUJQVlA4WAoAAAAQAAAABwAABAAAQUxQSAoAAAABB1DAiAhERP8DVlA4IDAAAADQAQCdASoIAAUAAUAmJaACdLoB"
    "+AADsAD+8ut//NgVzXPv9//S4P0uD9Lg/9KQAAA="
)
ANIMATED_WEBP = b64decode(
    "UklGRsQAAABXRUJQVlA4WAoAAAACAAAABwAABAAAQU5JTQYAAAAAAAAAAABBTk1GSgAAAAAAAAAAAAcAAAQAAAAAAAJWUDggMgAA"
    "ADABAJ0BKggABQABQCYloAADcAD+8ut///mwP/bz/wR6Af//0uD//pcH//S4P/SkAAAAQU5NRkYAAAAAAAAAAAAHAAAEAAAAAAAA"
    "VlA4IC4AAAA0AQCdASoIAAUAAAAmJaAAA3AA/vtV4///S4P/+lwf/9Lg/9Lg//rV5Vesq6AA"
)
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71"
    "////m8H////6/+b9//j/2wBDASstLTw1PHZBQXb4pYyl+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4+Pj4"
    "+Pj4+Pj4+Pj/wAARCAAFAAgDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
    "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
    "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
    "4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC"
    "AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm"
    "Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq"
    "8vP09fb3+Pn6/9oADAMBAAIRAxEAPwCrRRRXOewf/9k="
)


def png(width: int = 8, height: int = 5, *, noise: int = 0) -> bytes:
    """Return a grey image; `noise` bytes of what cannot be compressed make the file so much larger."""
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", rows)]
    if noise:
        chunks.append((b"noIs", random.Random(noise).randbytes(noise)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in [*chunks, (b"IEND", b"")])


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


PNG = png()
EVERY_KIND = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/gif": GIF,
    "image/webp": LOSSY_WEBP,
}
