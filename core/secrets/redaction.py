"""Masking of known secret values, in whole texts and in streams."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.contracts.errors import InvalidInput
from core.contracts.secrets import Redactor, StreamMask
from core.secrets.forms import forms_of

SHORTEST_SECRET_CHARS = 8
"""Shorter values would mask ordinary words, and guessing them is no work."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of a text to be hidden, and under whose name."""

    start: int
    end: int
    name: str


class _Forms:
    """All forms of all known values; never changed once made, so that readers need no lock."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self._longest = max(map(len, names), default=0)
        by_first = defaultdict(list)
        for form in names:
            by_first[form[0]].append(form)
        self._by_first = dict(by_first)

    def spans(self, text: str) -> list[_Span]:
        """Return what is to be hidden, in order; overlapping occurrences are one span.

        One fast search a form: the forms that do not occur cost next to nothing, and the work
        does not depend on how many characters look like the beginning of one.
        """
        found = [span for form in self.names if form in text for span in self._occurrences(form, text)]
        return _merged(sorted(found, key=lambda span: (span.start, -span.end)))

    def held_from(self, text: str) -> int:
        """Return where a tail of `text` begins that may be the beginning of a form."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            candidates = self._by_first.get(text[start])
            if candidates and any(form.startswith(text[start:]) for form in candidates):
                return start
        return len(text)

    def _occurrences(self, form: str, text: str) -> Iterator[_Span]:
        start = text.find(form)
        while start >= 0:
            yield _Span(start, start + len(form), self.names[form])
            start = text.find(form, start + 1)


class ValueRedactor:
    """Masks by exact value. `mask` and streams may be used by any thread while values are added."""

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        self._lock = threading.Lock()
        self._forms = _Forms({})
        self._add_all(values)

    def add(self, name: str, value: str) -> None:
        """Mask `value` as `[secret NAME]` from now on, in open streams too.

        A value that is known keeps its first name.

        Raises:
            InvalidInput: The value has fewer than `SHORTEST_SECRET_CHARS` characters.
        """
        self._add_all([(name, value)])

    def mask(self, text: str) -> str:
        return _hidden(text, self._forms.spans(text))

    def stream(self) -> StreamMask:
        return _RedactingStream(self)

    @property
    def forms(self) -> _Forms:
        """Return the forms known now."""
        return self._forms

    def _add_all(self, values: Iterable[tuple[str, str]]) -> None:
        added: dict[str, str] = {}
        for name, value in values:
            if len(value) < SHORTEST_SECRET_CHARS:
                raise InvalidInput(f"the secret {name!r} is shorter than {SHORTEST_SECRET_CHARS} characters")
            for form in forms_of(value):
                added.setdefault(form, name)
        with self._lock:
            self._forms = _Forms({**added, **self._forms.names})


class _RedactingStream:
    """Masks pieces so that their concatenation is what masking the whole text gives.

    What has been returned is final: a span leaves the buffer only when nothing that may still
    arrive can widen it.
    """

    def __init__(self, redactor: ValueRedactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        forms = self._redactor.forms
        buffer = self._held + text
        spans = forms.spans(buffer)
        cut = forms.held_from(buffer)
        for span in reversed(spans):
            if span.end > cut:
                cut = min(cut, span.start)
        self._held = buffer[cut:]
        return _hidden(buffer[:cut], [span for span in spans if span.end <= cut])

    def finish(self) -> str:
        rest, self._held = self._held, ""
        return self._redactor.mask(rest)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = _Span(last.start, max(last.end, span.end), last.name)
        else:
            merged.append(span)
    return merged


def _hidden(text: str, spans: Iterable[_Span]) -> str:
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += (text[position : span.start], f"[secret {span.name}]")
        position = span.end
    parts.append(text[position:])
    return "".join(parts)


if TYPE_CHECKING:
    _conforms: type[Redactor] = ValueRedactor
    _stream_conforms: type[StreamMask] = _RedactingStream
