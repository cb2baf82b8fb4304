"""What a request to the host's socket says, read once and exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from core.contracts.errors import InvalidInput


async def read_bytes(request: Request, *, limit_bytes: int) -> bytes:
    """Return the body.

    Raises:
        InvalidInput: It is longer; no more than that was read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise InvalidInput(f"the body is longer than {limit_bytes} bytes")
    return bytes(body)


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object of the body; an empty body is an empty one.

    Raises:
        InvalidInput: It is none.
    """
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError as error:
        msg = "the body is no JSON"
        raise InvalidInput(msg) from error
    if not isinstance(body, dict):
        msg = "the body is no JSON object"
        raise InvalidInput(msg)
    return body


def needed(body: Mapping[str, Any], name: str) -> str:
    """Return a field as text.

    Raises:
        InvalidInput: There is none.
    """
    if name not in body:
        msg = f"the body has no {name!r}"
        raise InvalidInput(msg)
    return str(body[name])


def number(text: str) -> int:
    """Return what digits say.

    Raises:
        InvalidInput: It holds something else.
    """
    if not (text.isascii() and text.isdigit()):
        msg = f"{text!r} is no number"
        raise InvalidInput(msg)
    return int(text)
