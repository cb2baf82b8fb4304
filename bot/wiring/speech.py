"""What writes voice messages down, as the configuration says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.config.model import Settings, SpeechSettings
from core.contracts.clock import Clock
from core.contracts.secrets import Redactor
from core.contracts.speech import SpeechLimits, Transcriber
from core.models.litellm_transcriber import LiteLLMTranscriber
from core.models.local_whisper import LocalWhisper

_LOCAL = "local/"


@asynccontextmanager
async def open_transcriber(settings: Settings, clock: Clock, redactor: Redactor) -> AsyncIterator[Transcriber | None]:
    """Give the configured transcriber, or None; nothing is loaded before the first recording."""
    speech = settings.speech
    limits = SpeechLimits(duration=speech.longest)
    if not speech.model:
        yield None
    elif speech.model.startswith(_LOCAL):
        yield LocalWhisper(
            model=speech.model.removeprefix(_LOCAL),
            folder=settings.host.data_dir / "speech",
            language=speech.language,
            limits=limits,
        )
    else:
        transcriber = _hosted(speech, limits, clock, redactor)
        try:
            yield transcriber
        finally:
            await transcriber.aclose()


def _hosted(speech: SpeechSettings, limits: SpeechLimits, clock: Clock, redactor: Redactor) -> LiteLLMTranscriber:
    return LiteLLMTranscriber(
        model=speech.model,
        key=lambda: None if speech.api_key is None else speech.api_key.reveal(),
        mask=redactor.mask,
        api_base=speech.api_base,
        language=speech.language,
        limits=limits,
        timeout=speech.timeout,
        clock=clock,
    )
