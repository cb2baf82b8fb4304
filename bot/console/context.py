"""What all pages of the console share: the host, the channel, the templates and the frame around a page."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from bot.console.chats import Chats, open_chats
from bot.console.sessions import ConsoleSessions, Session
from bot.console.submissions import wants_json
from bot.host_api import HostApi
from channels.feed import FeedChannel
from channels.web.render import verbatim
from core.contracts.addresses import Sender
from core.contracts.clock import Clock

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """What the routes work with. `owner` is who acts here: the person at this machine."""

    api: HostApi
    web: FeedChannel
    sessions: ConsoleSessions
    clock: Clock
    owner: Sender
    chats: Chats
    templates: Environment

    async def page(
        self,
        request: Request,
        session: Session,
        template: str,
        *,
        chat: str | None = None,
        status: int = 200,
        **facts: object,
    ) -> HTMLResponse:
        """Draw a page inside the frame: navigation, chats, open approvals, the session's note."""
        html = self._draw(
            template,
            csrf=session.csrf,
            note=self.sessions.take_note(session),
            chat=chat,
            chats=await self.chats.links(open_chats(request, current=chat)),
            waiting=len(await self.api.open_approvals()),
            section=request.url.path.split("/")[1],
            **facts,
        )
        return HTMLResponse(html, status)

    def problem(self, request: Request, status: int, text: str) -> Response:
        """Answer with what went wrong, without asking the host for anything."""
        if wants_json(request):
            return JSONResponse({"error": text}, status)
        template = "signed_out.html" if status == HTTPStatus.UNAUTHORIZED else "problem.html"
        return HTMLResponse(self._draw(template, text=text, status=status), status)

    def back(self, session: Session, url: str, note: str = "") -> RedirectResponse:
        """Go to another page after a submission, with one line to show there."""
        if note:
            self.sessions.leave_note(session, note)
        return RedirectResponse(url, status_code=303)

    def _draw(self, template: str, **facts: object) -> str:
        return self.templates.get_template(template).render(facts)


def load_templates() -> Environment:
    """Return the templates; everything they are given is escaped, and a missing fact is an error."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["verbatim"] = verbatim
    return environment
