"""Transcription through litellm, against a strict server of OpenAI's endpoint on a real socket."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from core.contracts.errors import SpeechFailed, SpeechRefused
from core.contracts.speech import Recording, SpeechLimits
from core.models.litellm_transcriber import LiteLLMTranscriber
from tests.platforms.model_script import Status
from tests.platforms.transcription_server import TranscriptionServer

KEY = "sk-" + "k" * 20
SECRET = "hunter" + "2" * 12
BOUND = 20.0


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "7-0-voice.oga"
    path.write_bytes(b"OggS and so on")
    return Recording(path=path, name="7-0-voice.ogg", media_type="audio/ogg", size_bytes=14)


@asynccontextmanager
async def opened(*script, key=KEY, model="openai/whisper-1", **more):
    async with TranscriptionServer(script or ("hello",), key=KEY) as server:
        transcriber = LiteLLMTranscriber(
            model=model,
            api_base=server.base_url,
            key=lambda: key,
            mask=lambda text: text.replace(SECRET, "[secret]"),
            **more,
        )
        try:
            yield transcriber, server
        finally:
            await transcriber.aclose()


async def test_the_words_come_back_and_the_file_goes_out_whole_with_its_kind(recording):
    async with opened("Guten Tag. ä🎤") as (transcriber, server):
        assert await transcriber.transcribe(recording) == "Guten Tag. ä🎤"
    (heard,) = server.requests
    assert (heard.name, heard.media_type, heard.data) == ("7-0-voice.ogg", "audio/ogg", b"OggS and so on")
    assert heard.fields == {"model": "whisper-1", "response_format": "json"}


@pytest.mark.parametrize("model", ["openai/gpt-4o-transcribe", "openai/my-own-whisper"])
async def test_other_models_of_the_same_endpoint_do(recording, model):
    async with opened("yes", model=model) as (transcriber, server):
        assert await transcriber.transcribe(recording) == "yes"
    assert server.requests[0].fields["model"] == model.removeprefix("openai/")


async def test_the_language_is_told_where_it_is_known(recording):
    async with opened(language="de") as (transcriber, server):
        await transcriber.transcribe(recording)
    assert server.requests[0].fields["language"] == "de"


async def test_silence_is_an_empty_text(recording):
    async with opened("") as (transcriber, _):
        assert await transcriber.transcribe(recording) == ""


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, SpeechRefused), (400, SpeechRefused), (413, SpeechRefused), (429, SpeechFailed), (500, SpeechFailed),
     (503, SpeechFailed)],
)  # fmt: skip
async def test_a_failure_says_whether_trying_again_can_help_and_is_asked_for_once(recording, status, expected, caplog):
    body = json.dumps({"error": {"message": f"about {SECRET}", "type": "x", "code": "x"}})
    async with opened(Status(status, body)) as (transcriber, server):
        with caplog.at_level(logging.WARNING), pytest.raises(expected) as caught:
            await transcriber.transcribe(recording)
    assert type(caught.value) is expected
    assert "about" not in caught.value.detail
    assert len(server.requests) == 1
    (record,) = [record for record in caplog.records if record.message == "transcription_failed"]
    assert "[secret]" in record.error
    assert SECRET not in record.error


async def test_a_wrong_key_is_refused(recording):
    async with opened(key="another") as (transcriber, _):
        with pytest.raises(SpeechRefused):
            await transcriber.transcribe(recording)


async def test_nobody_listening_is_a_failure_of_the_moment(recording):
    transcriber = LiteLLMTranscriber(
        model="openai/whisper-1", api_base="http://127.0.0.1:9/v1", key=lambda: KEY, mask=str
    )
    with pytest.raises(SpeechFailed):
        await transcriber.transcribe(recording)
    await transcriber.aclose()


async def test_a_service_that_says_nothing_is_given_up_in_time(recording):
    async with opened(asyncio.Event(), "late", timeout=timedelta(seconds=0.2)) as (transcriber, _):
        async with asyncio.timeout(BOUND):
            with pytest.raises(SpeechFailed):
                await transcriber.transcribe(recording)


async def test_a_file_that_is_gone_is_refused(recording):
    recording.path.unlink()
    async with opened() as (transcriber, server):
        with pytest.raises(SpeechRefused):
            await transcriber.transcribe(recording)
    assert server.requests == []


async def test_two_recordings_go_at_once(recording):
    gate = asyncio.Event()
    async with (
        opened(gate, "one", "two") as (transcriber, server),
        asyncio.timeout(BOUND),
        asyncio.TaskGroup() as group,
    ):
        slow = group.create_task(transcriber.transcribe(recording))
        while not server.requests:
            await asyncio.sleep(0.001)
        quick = group.create_task(transcriber.transcribe(recording))
        await quick
        gate.set()
    assert {slow.result(), quick.result()} == {"one", "two"}


async def test_nothing_is_printed_on_an_error(recording, capfd):
    async with opened(Status(400, "no")) as (transcriber, _):
        with pytest.raises(SpeechRefused):
            await transcriber.transcribe(recording)
    assert capfd.readouterr() == ("", "")


def test_the_limits_are_those_given_and_else_those_of_the_contract():
    tight = SpeechLimits(size_bytes=1, duration=timedelta(seconds=1))
    made = {"model": "openai/whisper-1", "key": lambda: None, "mask": str}
    assert LiteLLMTranscriber(**made, limits=tight).limits == tight
    assert LiteLLMTranscriber(**made).limits == SpeechLimits(size_bytes=25_000_000, duration=timedelta(minutes=10))
