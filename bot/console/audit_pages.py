"""The audit trail: who did what, and when."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from bot.console.context import Console
from bot.console.sessions import Session
from bot.console.submissions import page_route


def audit_routes(console: Console) -> list[BaseRoute]:
    """Return the route of the audit trail."""

    async def show(request: Request, session: Session) -> Response:
        return await console.page(request, session, "audit.html", entries=await console.api.audit())

    return [page_route("/audit", show)]
