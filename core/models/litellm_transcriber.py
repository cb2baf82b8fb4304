"""Transcription by any provider that litellm reaches, or by a server that copies OpenAI's endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from core.contracts.clock import Clock, SystemClock
from core.contracts.errors import ModelBusy, ModelError, ModelUnreachable, SpeechError, SpeechFailed, SpeechRefused
from core.contracts.speech import Recording, SpeechLimits, Transcriber
from core.models.litellm_client import failures_of, import_litellm, translated

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT = timedelta(minutes=3)
"""Hosted models take seconds for a minute of speech, small servers on the same machine as long as the speech."""


class LiteLLMTranscriber:
    """Sends recordings to a transcription model. Constructing one imports nothing; the first recording does.

    Args:
        model: A litellm name, such as `openai/whisper-1`.
        api_base: The address of another server than the provider's own.
        key: Returns the API key, if one is needed.
        mask: Removes secrets from what the log keeps of a provider's error.
        language: The language that is spoken, by its ISO 639-1 code; empty: found out from the recording.
        limits: The longest recording that the model takes. OpenAI takes files up to 25 MB:
            platform.openai.com/docs/guides/speech-to-text, read 2026-12-02.
        timeout: How long one recording may take.
        clock: Tells how far away an HTTP date in Retry-After is.
    """

    def __init__(
        self,
        *,
        model: str,
        key: Callable[[], str | None],
        mask: Callable[[str], str],
        api_base: str = "",
        language: str = "",
        limits: SpeechLimits | None = None,
        timeout: timedelta = DEFAULT_TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        self._model = model
        self._api_base = api_base
        self._key = key
        self._mask = mask
        self._language = language
        self._limits = limits or SpeechLimits()
        self._timeout_seconds = timeout.total_seconds()
        self._clock = clock or SystemClock()
        self._litellm: Any = None

    @property
    def limits(self) -> SpeechLimits:
        return self._limits

    async def transcribe(self, recording: Recording) -> str:
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(import_litellm)
        litellm = self._litellm
        try:
            data = await asyncio.to_thread(recording.path.read_bytes)
        except OSError as error:
            raise SpeechRefused("its file is no longer there") from error
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await litellm.atranscription(**self._arguments(recording, data))
        except TimeoutError as error:
            raise SpeechFailed("the transcription took too long") from error
        except failures_of(litellm) as error:
            raise self._failure(translated(error, litellm, mask=self._mask, clock=self._clock)) from error
        text = answer.text
        if not isinstance(text, str):
            raise SpeechFailed("the transcription service returned no text")
        return text

    async def aclose(self) -> None:
        """Close the connections that litellm keeps."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    def _arguments(self, recording: Recording, data: bytes) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "file": (recording.name, data, recording.media_type),
            "response_format": "json",
            "timeout": self._timeout_seconds,
            "num_retries": 0,
            "max_retries": 0,
        }
        if self._language:
            arguments["language"] = self._language
        if self._api_base:
            arguments["api_base"] = self._api_base
        key = self._key()
        if key:
            arguments["api_key"] = key
        return arguments

    def _failure(self, error: ModelError) -> SpeechError:
        """Return what people are told; what the provider said is for the log alone."""
        logger.warning("transcription_failed", extra={"model": self._model, "error": error.detail})
        if isinstance(error, ModelBusy | ModelUnreachable):
            return SpeechFailed("the transcription service could not be reached")
        return SpeechRefused("the transcription service refused it")


if TYPE_CHECKING:
    _conforms: type[Transcriber] = LiteLLMTranscriber
