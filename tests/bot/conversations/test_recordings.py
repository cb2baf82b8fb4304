"""What is a recording, and how long it is, by what a file holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversations.recordings import recording_in
from core.contracts.attachments import StoredAttachment
from tests.bot.conversations import sounds
from tests.core.tools.image_samples import PNG

FILE = StoredAttachment(
    id="f",
    conversation_id="c",
    inbox_id=1,
    position=0,
    name="voice",
    media_type="audio/any",
    size_bytes=7,
    path="",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.fixture
def kept(tmp_path):
    def keep(data, media_type="audio/any", name="7-0-voice.oga"):
        (tmp_path / name).write_bytes(data)
        return replace(FILE, path=str(tmp_path / name), media_type=media_type)

    return keep


KINDS = {
    "ogg": (sounds.ogg, "audio/ogg"),
    "vorbis": (sounds.vorbis, "audio/ogg"),
    "wav": (sounds.wav, "audio/wav"),
    "mp3": (sounds.mp3, "audio/mpeg"),
    "m4a": (sounds.m4a, "audio/mp4"),
    "webm": (sounds.webm, "audio/webm"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0.5, 2, 700])
def test_every_kind_is_known_with_its_length(kept, kind, seconds):
    make, media_type = KINDS[kind]
    recording = recording_in(kept(make(seconds)))
    assert recording.media_type == media_type
    assert recording.name == f"7-0-voice.{'ogg' if kind == 'vorbis' else kind}"
    assert abs(recording.duration - timedelta(seconds=seconds)) < timedelta(seconds=0.01)


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        (sounds.mp3(3, tagged=False), 3),
        (sounds.mp3(9, counted=True), 9),
        (sounds.m4a(4, version=1), 4),
        (sounds.webm(None), None),
        (sounds.wav(2)[:-8_000], 1.5),
        (sounds.ogg(-1), None),
        (sounds.mp3()[:130], None),
        (sounds.m4a()[:60], None),
        (sounds.webm(float("nan")), None),
        (sounds.webm(float("inf")), None),
    ],
    ids=["no tag", "counted", "long header", "live", "cut off", "negative", "no frame", "no movie", "nan", "endless"],
)
def test_the_length_is_what_the_file_says_or_nothing(kept, data, seconds):
    duration = recording_in(kept(data)).duration
    assert (None if duration is None else round(duration.total_seconds(), 3)) == seconds


@pytest.mark.parametrize("kind", ["ogg", "vorbis", "wav", "mp3", "m4a"])
def test_what_can_only_be_sound_is_one_whatever_it_was_sent_as(kept, kind):
    assert recording_in(kept(KINDS[kind][0](), "application/octet-stream")) is not None


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (sounds.m4a(brand=b"isom"), "video/mp4"),
        (sounds.webm(), "video/webm"),
        (sounds.ogg(first=b"\x80theora"), "audio/ogg"),
        (sounds.mp3(tagged=False), "application/octet-stream"),
        (PNG, "audio/ogg"),
        (b"", "audio/ogg"),
        (b"OggS", "audio/ogg"),
        (b"hello", "audio/mpeg"),
    ],
)
def test_films_and_other_files_are_none(kept, data, media_type):
    assert recording_in(kept(data, media_type)) is None


def test_a_container_that_was_sent_as_sound_is_one(kept):
    assert recording_in(kept(sounds.m4a(brand=b"isom"), "Audio/MP4")).media_type == "audio/mp4"


def test_a_file_that_is_gone_is_none(kept, tmp_path):
    file = kept(sounds.ogg())
    (tmp_path / "7-0-voice.oga").unlink()
    assert recording_in(file) is None


@given(st.sampled_from([make() for make, _ in KINDS.values()]), st.data())
def test_no_damage_breaks_the_reading(tmp_path_factory, whole, data):
    position = data.draw(st.integers(0, min(len(whole), 400) - 1))
    damaged = bytearray(whole[: data.draw(st.integers(1, len(whole)))])
    if position < len(damaged):
        damaged[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    recording = recording_in(replace(FILE, path=str(path)))
    assert recording is None or recording.duration is None or recording.duration >= timedelta(0)
