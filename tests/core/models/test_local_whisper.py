"""Transcription on this machine, with a stand-in for the package that only an extra brings."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from core.contracts.errors import SpeechFailed, SpeechRefused
from core.contracts.speech import Recording
from core.models.local_whisper import LocalWhisper

PACKAGE = '''
"""Stands in for faster-whisper 1.2: a file holds what is heard in it, a line a segment."""
from types import SimpleNamespace

loaded, wanted, gates = [], [], []

class WhisperModel:
    def __init__(self, model_size_or_path, device="auto", compute_type="default", download_root=None):
        if model_size_or_path == "no-such-model":
            raise ValueError("Invalid model size 'no-such-model'")
        if model_size_or_path == "no-net":
            raise OSError("cannot reach the hub")
        loaded.append((model_size_or_path, device, compute_type, download_root))

    def transcribe(self, audio, language=None, vad_filter=False):
        wanted.append((audio, language, vad_filter))
        with open(audio, encoding="utf-8") as file:
            lines = file.read().splitlines()
        if lines == ["noise"]:
            raise ValueError("Invalid data found when processing input")
        if lines == ["crash"]:
            raise RuntimeError("out of memory")
        return self._segments(lines), SimpleNamespace(language="en")

    def _segments(self, lines):
        for line in lines:
            for reached, gate in gates:
                reached.set()
                gate.wait(20)
            yield SimpleNamespace(text=" " + line)
'''
BOUND = 20.0


@pytest.fixture
def whisper(tmp_path, monkeypatch):
    """Put the stand-in where an installed package would be, and give it."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "faster_whisper.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "faster_whisper", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    import faster_whisper

    yield faster_whisper
    del sys.modules["faster_whisper"]


def made(tmp_path, model="small", **more):
    return LocalWhisper(model=model, folder=tmp_path / "models", **more)


def recording(tmp_path, *lines, name="voice.ogg"):
    path = tmp_path / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return Recording(path=path, name=name, media_type="audio/ogg", size_bytes=path.stat().st_size)


async def test_the_words_of_all_segments_come_back(tmp_path, whisper):
    transcriber = made(tmp_path, language="de")
    assert (await transcriber.transcribe(recording(tmp_path, "Guten Tag.", "Wie geht's?"))).split() == [
        "Guten", "Tag.", "Wie", "geht's?",
    ]  # fmt: skip
    assert whisper.loaded == [("small", "cpu", "int8", str(tmp_path / "models"))]
    assert whisper.wanted == [(str(tmp_path / "voice.ogg"), "de", True)]


async def test_the_model_is_loaded_once_and_the_language_found_out_where_none_is_told(tmp_path, whisper):
    transcriber = made(tmp_path)
    await asyncio.gather(*(transcriber.transcribe(recording(tmp_path, "a", name=f"{n}.ogg")) for n in range(3)))
    assert len(whisper.loaded) == 1
    assert {language for _, language, _ in whisper.wanted} == {None}


async def test_silence_is_an_empty_text(tmp_path, whisper):
    assert await made(tmp_path).transcribe(recording(tmp_path)) == ""


async def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(SpeechRefused, match=r"not installed on this host.*lodger\[whisper\]"):
        await made(tmp_path).transcribe(recording(tmp_path, "a"))
    assert [(record.message, record.install) for record in caplog.records] == [
        ("whisper_not_installed", "lodger[whisper]")
    ]


@pytest.mark.parametrize(
    ("model", "line", "expected"),
    [
        ("no-such-model", "a", SpeechRefused),
        ("no-net", "a", SpeechFailed),
        ("small", "noise", SpeechRefused),
        ("small", "crash", SpeechFailed),
    ],
)
async def test_a_failure_says_whether_trying_again_can_help(tmp_path, whisper, model, line, expected):
    with pytest.raises(expected) as caught:
        await made(tmp_path, model).transcribe(recording(tmp_path, line))
    assert type(caught.value) is expected


async def test_a_file_that_is_gone_is_refused(tmp_path, whisper):
    gone = recording(tmp_path, "a")
    gone.path.unlink()
    with pytest.raises(SpeechRefused):
        await made(tmp_path).transcribe(gone)


async def test_a_cancelled_recording_has_ended_when_the_cancellation_comes_out(tmp_path, whisper):
    reached, gate = threading.Event(), threading.Event()
    whisper.gates.append((reached, gate))
    transcriber = made(tmp_path)
    async with asyncio.timeout(BOUND):
        work = asyncio.ensure_future(transcriber.transcribe(recording(tmp_path, "a", "b", "c")))
        await asyncio.to_thread(reached.wait, BOUND)
        work.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not work.done()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        whisper.gates.clear()
        assert await transcriber.transcribe(recording(tmp_path, "next", name="2.ogg")) == " next"
