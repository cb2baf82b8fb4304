"""The forms in which a secret value may appear in a text."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_PERCENT = re.compile(r"%[0-9A-F]{2}")


def forms_of(value: str) -> frozenset[str]:
    """Return the value and what URLs, JSON, `repr` and Base64 make of it.

    Base64 is given for the value alone and as the password behind any user name: as it stands
    at each of the three offsets, without the edge characters that depend on the neighbours.
    """
    return frozenset(_forms(value))


def _forms(value: str) -> Iterator[str]:
    yield value
    for encoded in (
        quote(value, safe="", errors="surrogatepass"),
        quote(value, safe="/", errors="surrogatepass"),
        quote(value, safe="/:@!$&'()*+,;=~", errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
    ):
        yield encoded
        yield _PERCENT.sub(lambda match: match[0].lower(), encoded)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield from _base64_forms(value.encode("utf-8", "surrogatepass"))


def _base64_forms(value: bytes) -> Iterator[str]:
    for offset in range(3):
        # Six bits a character: the first ones mix in what stands before, the last what comes behind.
        first, end = -(-offset * 8 // 6), (offset + len(value)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * offset + value).decode("ascii")[first:end]
