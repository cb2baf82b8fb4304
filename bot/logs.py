"""Logging: the one place that configures it, and the mask that every line passes.

Nothing reaches the stream but through `MaskedHandler`, whose formatter renders a record whole
(message with its arguments, exception, stack, facts) and masks the result. Libraries that write
tokens into their messages are therefore no special case; they are only made quieter.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import TextIO

from core.contracts.secrets import Redactor

TEXT = "text"
JSON = "json"

logger = logging.getLogger(__name__)

_QUIET_LOGGERS = (
    "aiohttp",
    "alembic",
    "asyncio",
    "discord",
    "hpack",
    "httpcore",
    "httpx",
    "openai",
    "slack_bolt",
    "slack_sdk",
    "telegram",
    "urllib3",
    "uvicorn",
    "websockets",
)
"""Libraries that write a line for each request: heard from WARNING on, unless the level is DEBUG."""

_SELF_STYLED_LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")
"""Libraries that hang handlers of their own on their loggers, whenever they are imported."""

_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

_context: ContextVar[Mapping[str, str]] = ContextVar("log_context", default=MappingProxyType({}))


@contextmanager
def log_context(**ids: str) -> Iterator[None]:
    """Add ids, such as `turn_id`, to every line that this context and the tasks it starts write."""
    token = _context.set({**_context.get(), **ids})
    try:
        yield
    finally:
        _context.reset(token)


def configure(*, level: str, form: str, redactor: Redactor, stream: TextIO | None = None) -> None:
    """Send every log line of the process, masked, to one stream; replaces an earlier configuration.

    Uncaught exceptions and warnings are log lines, too, so that a traceback on standard error is
    masked as well. To be called before any library that logs is set to work.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        form: `text` or `json`.
        redactor: Values added to it later are masked from then on.
        stream: Standard error by default.
    """
    handler = MaskedHandler(stream or sys.stderr, redactor, form)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    quiet = logging.NOTSET if root.level <= logging.DEBUG else logging.WARNING
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(quiet)
    for name in _SELF_STYLED_LOGGERS:
        library = logging.getLogger(name)
        library.setLevel(quiet)
        library.filters[:] = [_OnlyThrough(handler)]
    _take_over_handlers()
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    sys.unraisablehook = _log_unraisable
    threading.excepthook = _log_uncaught_in_thread


class MaskedHandler(logging.StreamHandler[TextIO]):
    """Writes masked lines; a record that cannot be written is told without its content."""

    def __init__(self, stream: TextIO, redactor: Redactor, form: str) -> None:
        super().__init__(stream)
        self.setFormatter(_JsonFormatter(redactor) if form == JSON else _TextFormatter(redactor))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Write where the record came from; logging's own way would print its raw arguments."""
        try:
            self.stream.write(f"log_record_lost logger={record.name} line={record.lineno}\n")
        except (OSError, ValueError):
            # The stream itself is gone: there is nowhere left to say so.
            return


class _MaskingFormatter(logging.Formatter):
    """Collects the parts of a record, each masked."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def masked(self, value: object) -> str:
        """Return a value as masked text without lone surrogates, which no stream takes."""
        text = self._redactor.mask(str(value))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def event(self, record: logging.LogRecord) -> str:
        """Return the message with its arguments; arguments that do not fit stand behind it."""
        try:
            return self.masked(record.getMessage())
        except (TypeError, ValueError, KeyError):
            return self.masked(f"{record.msg} {record.args!r}")

    def facts(self, record: logging.LogRecord) -> dict[str, str]:
        """Return the context's ids and the facts given in `extra`."""
        extra = {key: value for key, value in vars(record).items() if key not in _OWN_ATTRIBUTES}
        return {key: self.masked(value) for key, value in {**_context.get(), **extra}.items()}

    def trouble(self, record: logging.LogRecord) -> str:
        """Return traceback and stack."""
        parts = [
            self.formatException(record.exc_info) if record.exc_info else record.exc_text,
            self.formatStack(record.stack_info) if record.stack_info else "",
        ]
        return self.masked("\n".join(part for part in parts if part))

    def instant(self, record: logging.LogRecord) -> str:
        """Return when it happened, in UTC to the millisecond."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _TextFormatter(_MaskingFormatter):
    """One line for people; only a traceback takes more."""

    def format(self, record: logging.LogRecord) -> str:
        head = (self.instant(record), record.levelname, record.name, _one_line(self.event(record)))
        facts = (f"{key}={_one_line(value)}" for key, value in self.facts(record).items())
        trouble = self.trouble(record)
        line = " ".join((*head, *facts))
        return f"{line}\n{trouble}" if trouble else line


class _JsonFormatter(_MaskingFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            **self.facts(record),
            "at": self.instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": self.event(record),
        }
        trouble = self.trouble(record)
        if trouble:
            fields["exception"] = trouble
        return json.dumps(fields, ensure_ascii=False)


class _OnlyThrough(logging.Filter):
    """Hands a record to our handler and lets no other handler of its logger see it."""

    def __init__(self, handler: MaskedHandler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        self._handler.handle(record)
        return False


def _take_over_handlers() -> None:
    """Take away the handlers that libraries have given their loggers so far."""
    for name in list(logging.root.manager.loggerDict):
        library = logging.getLogger(name)
        library.handlers[:] = [held for held in library.handlers if isinstance(held, logging.NullHandler)]
        library.propagate = True


def _one_line(text: str) -> str:
    """Return a text that cannot begin a line of its own, nor move the reader's cursor."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logger.critical("crashed", exc_info=(kind, error, trace))


def _log_unraisable(failure: sys.UnraisableHookArgs) -> None:
    if failure.exc_value is not None:
        _log_uncaught(failure.exc_type, failure.exc_value, failure.exc_traceback)


def _log_uncaught_in_thread(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None:
        _log_uncaught(failure.exc_type, failure.exc_value, failure.exc_traceback)
