"""Transcription on this machine, by faster-whisper, which is installed as an extra of its own."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from core.contracts.errors import SpeechFailed, SpeechRefused
from core.contracts.speech import Recording, SpeechLimits, Transcriber

logger = logging.getLogger(__name__)

EXTRA = "whisper"
"""The extra that brings faster-whisper: `pip install 'lodger[whisper]'`."""
_UNREADABLE = (ValueError, OSError, LookupError, ArithmeticError)
"""What faster-whisper 1.2 raises for files without sound in them, empty ones and damaged ones: it was tried."""


class LocalWhisper:
    """Runs one Whisper model, one recording at a time, in a thread. Nothing leaves the machine.

    The model is loaded with the first recording and kept. One that is named and not yet in `folder` is
    downloaded then, once.

    Args:
        model: The name of a model, such as `small` or `large-v3`, or the folder of one.
        folder: Where downloaded models are kept.
        language: The language that is spoken, by its ISO 639-1 code; empty: found out from the recording.
        device: `cpu`, `cuda` or `auto`.
        compute_type: How the weights are held; `int8` needs the least memory.
        limits: The longest recording that is worth the time it takes.
    """

    def __init__(
        self,
        *,
        model: str,
        folder: Path,
        language: str = "",
        device: str = "cpu",
        compute_type: str = "int8",
        limits: SpeechLimits | None = None,
    ) -> None:
        self._model = model
        self._folder = folder
        self._language = language
        self._device = device
        self._compute_type = compute_type
        self._limits = limits or SpeechLimits()
        self._one_at_a_time = asyncio.Lock()
        self._loaded: Any = None

    @property
    def limits(self) -> SpeechLimits:
        return self._limits

    async def transcribe(self, recording: Recording) -> str:
        async with self._one_at_a_time:
            stop = threading.Event()
            work = asyncio.ensure_future(asyncio.to_thread(self._transcribe, recording.path, stop))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                # A thread cannot be ended from outside; it looks whether it should after each segment.
                stop.set()
                await asyncio.wait({work})
                if not work.cancelled():
                    work.exception()  # looked at, so that it is not reported as lost
                raise

    def _transcribe(self, path: Path, stop: threading.Event) -> str:
        model = self._load()
        if not path.is_file():
            raise SpeechRefused("its file is no longer there")
        try:
            return _words(model.transcribe(str(path), language=self._language or None, vad_filter=True)[0], stop)
        except _UNREADABLE as error:
            raise SpeechRefused("the sound in it cannot be read") from error
        except RuntimeError as error:
            logger.warning("transcription_failed", extra={"model": self._model, "error": str(error)})
            raise SpeechFailed("the speech model failed") from error

    def _load(self) -> Any:
        if self._loaded is None:
            whisper = _import_whisper()
            try:
                self._loaded = whisper.WhisperModel(
                    self._model,
                    device=self._device,
                    compute_type=self._compute_type,
                    download_root=str(self._folder),
                )
            except (OSError, httpx.HTTPError) as error:
                logger.warning("whisper_not_loaded", extra={"model": self._model, "error": str(error)})
                raise SpeechFailed("the speech model could not be loaded now") from error
            except (ValueError, RuntimeError) as error:
                logger.warning("whisper_not_loaded", extra={"model": self._model, "error": str(error)})
                raise SpeechRefused("the speech model of this host cannot be used; its operator can see why") from error
        return self._loaded


def _import_whisper() -> Any:
    try:
        return importlib.import_module("faster_whisper")
    except ModuleNotFoundError as error:
        install = f"lodger[{EXTRA}]"
        logger.warning("whisper_not_installed", extra={"install": install})
        raise SpeechRefused(
            f"speech recognition is not installed on this host; its operator can install {install}"
        ) from error


def _words(segments: Iterable[Any], stop: threading.Event) -> str:
    """Return what is said in the segments, which are recognised one by one as they are asked for."""
    texts: list[str] = []
    for segment in segments:
        if stop.is_set():
            break
        texts.append(segment.text)
    return "".join(texts)


if TYPE_CHECKING:
    _conforms: type[Transcriber] = LocalWhisper
