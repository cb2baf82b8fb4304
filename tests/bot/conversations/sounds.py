"""Small recordings of every kind, of any stated length, put together as their formats say."""

from __future__ import annotations

import io
import struct
import wave


def ogg(seconds: float = 2.0, *, first: bytes = b"OpusHead" + bytes(11), rate: int = 48_000) -> bytes:
    return b"".join(
        b"OggS\0" + struct.pack("<BqIIIB", kind, granules, 1, number, 0, 1) + bytes([len(body)]) + body
        for number, (kind, granules, body) in enumerate(
            [(2, 0, first), (0, 0, b"OpusTags"), (4, int(seconds * rate), b"sound")]
        )
    )


def vorbis(seconds: float = 2.0, rate: int = 16_000) -> bytes:
    return ogg(seconds, first=b"\x01vorbis" + struct.pack("<IBI", 0, 1, rate) + bytes(10), rate=rate)


def wav(seconds: float = 2.0, rate: int = 8_000) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(int(seconds * rate) * 2))
    return made.getvalue()


def mp3(seconds: float = 2.0, *, tagged: bool = True, counted: bool = False) -> bytes:
    """Return 32 kbit/s at 16 kHz: a header, silence, and with `counted` a frame count in place of the real length."""
    tag = b"ID3\x04\0\0" + bytes([0, 0, 1, 0]) + bytes(128) if tagged else b""
    header = struct.pack(">I", 0x7FF << 21 | 2 << 19 | 1 << 17 | 1 << 16 | 4 << 12 | 2 << 10)
    if counted:
        frames = int(seconds * 16_000 / 576)
        return tag + header + bytes(9) + b"Xing" + struct.pack(">II", 1, frames) + bytes(200)
    return tag + header + bytes(int(seconds * 4_000) - 4)


def m4a(seconds: float = 2.0, *, brand: bytes = b"M4A ", version: int = 0) -> bytes:
    layout = ">B3xQQIQ" if version else ">B3xIIII"
    header = _box(b"mvhd", struct.pack(layout, version, 0, 0, 1_000, int(seconds * 1_000)) + bytes(80))
    data = _box(b"mdat", bytes(50))
    return _box(b"ftyp", brand + bytes(4)) + data + _box(b"moov", _box(b"udta", b"") + header)


def _box(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body) + 8) + name + body


def webm(seconds: float | None = 2.0) -> bytes:
    duration = b"" if seconds is None else b"\x44\x89\x88" + struct.pack(">d", seconds * 1_000)
    info = b"\x2a\xd7\xb1\x83\x0f\x42\x40" + duration
    return b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff\x15\x49\xa9\x66" + bytes([0x80 | len(info)]) + info + bytes(90)
