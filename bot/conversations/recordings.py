"""What a file of recorded speech is, and how long, by its content: Ogg, WAV, MP3, M4A and WebM."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from core.contracts.attachments import StoredAttachment
from core.contracts.speech import Recording

_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 128 * 1024
"""An Ogg page has at most 65,307 bytes: RFC 3533, section 6."""
_OPUS_RATE = 48_000
"""Granules of Opus count at this rate whatever was recorded: RFC 7845, section 4."""
_MPEG_1, _MPEG_2, _MPEG_2_5 = 3, 2, 0
"""How an MP3 frame header numbers its version."""
_MP3_BITRATES = {
    _MPEG_1: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    _MPEG_2: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    _MPEG_2_5: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Of layer III, in kbit/s."""
_MP3_RATES = {
    _MPEG_1: (44_100, 48_000, 32_000),
    _MPEG_2: (22_050, 24_000, 16_000),
    _MPEG_2_5: (11_025, 12_000, 8_000),
}
_LAYER_3 = 1
_FRAME_SYNC = 0x7FF
_BOXES_LOOKED_AT = 1_000
_EXTENDED_SIZE = 1
"""What an MP4 box states as its size where the size itself follows in eight bytes; 0: up to the end of the file."""
_WEBM_INFO, _WEBM_SCALE, _WEBM_DURATION = b"\x15\x49\xa9\x66", b"\x2a\xd7\xb1", b"\x44\x89"
_WEBM_INFO_BYTES = 4_096
_NANOSECONDS = 1_000_000_000
_LONGEST = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """One kind of recording; `seconds` reads how long it is, None where it does not say."""

    extension: str
    media_type: str
    seconds: Callable[[BinaryIO], float | None]


def recording_in(file: StoredAttachment) -> Recording | None:
    """Return the recording that a stored file is; None for anything else, and for what cannot be read.

    Containers that hold films as well count as recordings only when they were sent as sound. Reads the file.
    """
    path = Path(file.path)
    try:
        with path.open("rb") as opened:
            kind = _kind(opened.read(_HEAD_BYTES), sent_as_sound=file.media_type.lower().startswith("audio/"))
            if kind is None:
                return None
            seconds = _stated_seconds(kind, opened)
    except OSError:
        return None
    return Recording(
        path=path,
        name=f"{path.stem}.{kind.extension}",
        media_type=kind.media_type,
        size_bytes=file.size_bytes,
        duration=None if seconds is None else timedelta(seconds=seconds),
    )


def _stated_seconds(kind: _Kind, opened: BinaryIO) -> float | None:
    """Return a length that can be one: a damaged or hostile file may state anything."""
    try:
        seconds = kind.seconds(opened)
    except (struct.error, IndexError, KeyError, ZeroDivisionError):
        return None
    return seconds if seconds is not None and 0 <= seconds < _LONGEST.total_seconds() else None


def _kind(head: bytes, *, sent_as_sound: bool) -> _Kind | None:
    if head[:4] == b"OggS" and _ogg_rate(head) is not None:
        return _OGG
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return _WAV
    if head[4:8] == b"ftyp" and (sent_as_sound or head[8:11] == b"M4A"):
        return _M4A
    if head[:4] == b"\x1a\x45\xdf\xa3" and sent_as_sound:
        return _WEBM
    if head[:3] == b"ID3" or (sent_as_sound and _mp3_frame(head, 0) is not None):
        return _MP3
    return None


def _ogg_rate(head: bytes) -> int | None:
    """Return how many granules a second has; None where the first stream is no sound that is known here."""
    start = head.find(b"OggS")
    first = head[start + 27 + head[start + 26] :] if len(head) > start + 26 else b""
    if first.startswith(b"OpusHead"):
        return _OPUS_RATE
    places = {b"\x01vorbis": 12, b"Speex   ": 36}
    place = next((place for mark, place in places.items() if first.startswith(mark)), None)
    if place is None or len(first) < place + 4:
        return None
    (rate,) = struct.unpack_from("<I", first, place)
    return int(rate) or None


def _ogg_seconds(opened: BinaryIO) -> float | None:
    opened.seek(0)
    rate = _ogg_rate(opened.read(_HEAD_BYTES))
    size = opened.seek(0, os.SEEK_END)
    opened.seek(max(0, size - _TAIL_BYTES))
    tail = opened.read()
    last = tail.rfind(b"OggS")
    if last < 0 or rate is None:
        return None
    (granules,) = struct.unpack_from("<q", tail, last + 6)
    return float(granules) / rate


def _wav_seconds(opened: BinaryIO) -> float | None:
    size = opened.seek(0, os.SEEK_END)
    position, bytes_a_second = 12, 0
    while position + 8 <= size:
        opened.seek(position)
        name, length = struct.unpack("<4sI", opened.read(8))
        if name == b"fmt ":
            (bytes_a_second,) = struct.unpack_from("<I", opened.read(16), 8)
        if name == b"data":
            # A recorder that was cut off, or that streams, states too much.
            return float(min(length, size - position - 8)) / bytes_a_second
        position += 8 + length + length % 2
    return None


def _mp3_seconds(opened: BinaryIO) -> float | None:
    size = opened.seek(0, os.SEEK_END)
    opened.seek(0)
    head = opened.read(10)
    start = 10 + _syncsafe(head[6:10]) if head[:3] == b"ID3" else 0
    opened.seek(start)
    data = opened.read(_HEAD_BYTES)
    offset = data.find(b"\xff")
    frame = None if offset < 0 else _mp3_frame(data, offset)
    if frame is None:
        return None
    bitrate, rate, samples = frame
    for mark in (b"Xing", b"Info"):
        place = data.find(mark, offset, offset + 64)
        if place >= 0 and data[place + 7] & 1:
            (frames,) = struct.unpack_from(">I", data, place + 8)
            return float(frames) * samples / rate
    return float(size - start - offset) * 8 / (bitrate * 1_000)


def _mp3_frame(data: bytes, offset: int) -> tuple[int, int, int] | None:
    """Return kbit/s, samples a second and samples a frame of the MPEG layer III frame that begins here."""
    if len(data) < offset + 4:
        return None
    (word,) = struct.unpack_from(">I", data, offset)
    version, layer, bitrate, rate = word >> 19 & 3, word >> 17 & 3, word >> 12 & 15, word >> 10 & 3
    if word >> 21 != _FRAME_SYNC or layer != _LAYER_3 or version not in _MP3_RATES:
        return None
    rates, bitrates = _MP3_RATES[version], _MP3_BITRATES[version]
    if not 1 <= bitrate <= len(bitrates) or rate >= len(rates):
        return None
    return bitrates[bitrate - 1], rates[rate], 1_152 if version == _MPEG_1 else 576


def _syncsafe(data: bytes) -> int:
    """Return a number of ID3: seven bits a byte."""
    number = 0
    for byte in data:
        number = number << 7 | (byte & 0x7F)
    return number


def _m4a_seconds(opened: BinaryIO) -> float | None:
    """Read the movie header: ISO/IEC 14496-12, 8.2.2."""
    movie = _box(opened, b"moov", 0, opened.seek(0, os.SEEK_END))
    header = None if movie is None else _box(opened, b"mvhd", *movie)
    if header is None:
        return None
    opened.seek(header[0])
    body = opened.read(32)
    layout, place = (">IQ", 20) if body[0] == 1 else (">II", 12)
    scale, duration = struct.unpack_from(layout, body, place)
    return float(duration) / float(scale)


def _box(opened: BinaryIO, wanted: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return where the content of a box begins and ends, among the boxes between `start` and `end`."""
    for _ in range(_BOXES_LOOKED_AT):
        if start + 8 > end:
            return None
        opened.seek(start)
        head = opened.read(16)
        size, name = struct.unpack_from(">I4s", head)
        body = start + 8
        if size == _EXTENDED_SIZE:
            (size,) = struct.unpack_from(">Q", head, 8)
            body += 8
        following = start + size if size else end
        if name == wanted:
            return body, min(following, end)
        if following < body:
            return None
        start = following
    return None


def _webm_seconds(opened: BinaryIO) -> float | None:
    """Read the segment's information: RFC 9559, 5.1.2. Browsers that record leave the length out."""
    opened.seek(0)
    head = opened.read(_HEAD_BYTES)
    place = head.find(_WEBM_INFO)
    info = head[place : place + _WEBM_INFO_BYTES] if place >= 0 else b""
    length = _element(info, _WEBM_DURATION)
    layout = {4: ">f", 8: ">d"}.get(len(length))
    if layout is None:
        return None
    (ticks,) = struct.unpack(layout, length)
    scale = int.from_bytes(_element(info, _WEBM_SCALE), "big") or 1_000_000
    return float(ticks) * scale / _NANOSECONDS


def _element(data: bytes, wanted: bytes) -> bytes:
    """Return the content of a short EBML element; empty where it is not there."""
    place = data.find(wanted)
    if place < 0:
        return b""
    start = place + len(wanted)
    return data[start + 1 : start + 1 + (data[start] & 0x7F)]


_OGG = _Kind(extension="ogg", media_type="audio/ogg", seconds=_ogg_seconds)
_WAV = _Kind(extension="wav", media_type="audio/wav", seconds=_wav_seconds)
_MP3 = _Kind(extension="mp3", media_type="audio/mpeg", seconds=_mp3_seconds)
_M4A = _Kind(extension="m4a", media_type="audio/mp4", seconds=_m4a_seconds)
_WEBM = _Kind(extension="webm", media_type="audio/webm", seconds=_webm_seconds)
