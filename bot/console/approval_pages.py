"""Open approvals and pairing requests, and deciding them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from bot.console.context import Console
from bot.console.sessions import Session
from bot.console.submissions import Fields, page_route, submission_route
from core.contracts.ids import ApprovalId

_CHOICES = frozenset({"approve", "conversation", "always", "deny"})


def approval_routes(console: Console) -> list[BaseRoute]:
    """Return the routes of everything that waits for a person."""
    pages = _ApprovalPages(console)
    return [
        page_route("/approvals", pages.show),
        submission_route("/approvals/{id}", pages.decide),
        submission_route("/pairings", pages.pair),
    ]


class _ApprovalPages:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def show(self, request: Request, session: Session) -> Response:
        return await self._console.page(
            request,
            session,
            "approvals.html",
            approvals=await self._console.api.open_approvals(),
            pairings=await self._console.api.pairings(),
        )

    async def decide(self, request: Request, session: Session, fields: Fields) -> Response:
        choice = fields.get("choice", "")
        if choice not in _CHOICES:
            raise HTTPException(400, "The form could not be read.")
        note = await self._console.api.decide(
            ApprovalId(request.path_params["id"]),
            choice,
            by=self._console.owner.name,
            feedback=fields.get("reason", "").strip(),
        )
        return self._console.back(session, "/approvals", note)

    async def pair(self, _request: Request, session: Session, fields: Fields) -> Response:
        note = await self._console.api.pair(fields.get("code", ""), by=self._console.owner.name)
        return self._console.back(session, "/approvals", note)
