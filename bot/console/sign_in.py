"""Signing in by a one-time link, signing out, and whether one is signed in."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.console.context import Console
from bot.console.security import cookie_name, session_of
from bot.console.sessions import Session
from bot.console.submissions import Fields, page_route, submission_route


def sign_in_routes(console: Console) -> list[BaseRoute]:
    """Return the routes of signing in and out."""
    pages = _SignIn(console)
    return [
        Route("/login", pages.redeem, methods=["GET"]),
        page_route("/session", pages.confirm),
        submission_route("/logout", pages.leave),
    ]


class _SignIn:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def redeem(self, request: Request) -> Response:
        """Turn a link into a session; a browser that has one may follow its used link again."""
        # HEAD comes from link previews, which must not use the link up.
        cookie = (
            self._console.sessions.redeem(request.query_params.get("token", "")) if request.method == "GET" else None
        )
        response = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        if cookie is None:
            if session_of(request) is not None:
                return response
            raise HTTPException(401, "This link was used before, or is too old.")
        response.set_cookie(
            cookie_name(request),
            cookie,
            max_age=int(self._console.sessions.session_lifetime.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def confirm(self, _request: Request, _session: Session) -> Response:
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def leave(self, request: Request, session: Session, _fields: Fields) -> Response:
        self._console.sessions.end(session)
        response = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
        response.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
        return response
