"""Routes that need a signed-in browser, and the reading and proving of what it submits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from bot.console.security import is_own_token, session_of
from bot.console.sessions import Session

CSRF_FIELD = "csrf"
_MOST_FIELDS = 20

Fields: TypeAlias = Mapping[str, str]
Page: TypeAlias = Callable[[Request, Session], Awaitable[ASGIApp]]
"""Makes what answers a request: mostly a `Response`, for a stream an application of its own."""
Submission: TypeAlias = Callable[[Request, Session, Fields], Awaitable[ASGIApp]]


def page_route(path: str, page: Page) -> Route:
    """Return a route that only a signed-in browser can read."""

    async def endpoint(request: Request) -> ASGIApp:
        return await page(request, _signed_in(request))

    return Route(path, endpoint, methods=["GET"])


def submission_route(path: str, submission: Submission) -> Route:
    """Return a route that takes a form or JSON from a signed-in browser's own page.

    The only way in which this console makes routes that change something: the session and the
    token of its forms are checked before `submission` sees anything.
    """

    async def endpoint(request: Request) -> ASGIApp:
        session = _signed_in(request)
        fields = await read_fields(request)
        if not is_own_token(session, fields.get(CSRF_FIELD, "")):
            raise HTTPException(403, "This page is out of date. Reload it and try again.")
        return await submission(request, session, fields)

    return Route(path, endpoint, methods=["POST"])


def wants_json(request: Request) -> bool:
    """Return whether a script asks, rather than a person's browser."""
    return "application/json" in request.headers.get("accept", "")


async def read_fields(request: Request) -> Fields:
    """Return the text fields of a submitted form or JSON object.

    Raises:
        HTTPException: 415 for another media type, 400 for a body that cannot be read as its own.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    try:
        if media_type == "application/json":
            return _text_fields(json.loads(body))
        if media_type == "application/x-www-form-urlencoded":
            pairs = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
            return {name: values[-1] for name, values in pairs.items()}
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "The form could not be read.") from error
    raise HTTPException(415, "Send a form or JSON.")


def _text_fields(value: object) -> Fields:
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - to the caller every unreadable body is the same
    # A lone surrogate, which JSON can spell, is no text that can be stored.
    return {name: text.encode(errors="replace").decode() for name, text in value.items() if isinstance(text, str)}


def _signed_in(request: Request) -> Session:
    session = session_of(request)
    if session is None:
        raise HTTPException(401, "You are not signed in.")
    return session
