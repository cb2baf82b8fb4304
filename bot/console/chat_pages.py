"""The chat: its page, its stream, and what is said and pressed in it."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from bot.console.chats import chat_name, new_chat_name, open_chats, remember_chat
from bot.console.context import Console
from bot.console.sessions import Session
from bot.console.stream import ChatStream, draw_history
from bot.console.submissions import Fields, page_route, submission_route, wants_json
from channels.web.render import PressForm
from core.contracts.errors import ChannelDown, StoreError
from core.contracts.ids import new_id

logger = logging.getLogger(__name__)

NOT_STORED = "Not stored, try again. Your text is still here."
PRESS_NOT_STORED = "Not stored, try again."
_KEY = re.compile(r"[A-Za-z0-9-]{8,64}")


def chat_routes(console: Console) -> list[BaseRoute]:
    """Return the routes of the chat."""
    pages = _ChatPages(console)
    return [
        page_route("/", pages.newest),
        page_route("/chat/{name}", pages.show),
        page_route("/chat/{name}/events", pages.follow),
        submission_route("/chat/{name}/messages", pages.say),
        submission_route("/chat/{name}/press", pages.press),
        submission_route("/chats", pages.begin),
    ]


class _ChatPages:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def newest(self, request: Request, _session: Session) -> Response:
        return RedirectResponse(_path(open_chats(request)[0]), status_code=HTTPStatus.SEE_OTHER)

    async def show(self, request: Request, session: Session) -> Response:
        return await self._page(request, session, chat_name(request))

    async def follow(self, request: Request, session: Session) -> ASGIApp:
        name = chat_name(request)
        return ChatStream(
            chat=name,
            web=self._console.web,
            chats=self._console.chats,
            clock=self._console.clock,
            sessions=self._console.sessions,
            session=session,
            form=_press_form(name, session),
            count_waiting=self._count_waiting,
        )

    async def _count_waiting(self) -> int:
        return len(await self._console.api.open_approvals())

    async def begin(self, _request: Request, _session: Session, _fields: Fields) -> Response:
        return RedirectResponse(_path(new_chat_name()), status_code=HTTPStatus.SEE_OTHER)

    async def say(self, request: Request, session: Session, fields: Fields) -> Response:
        """Hand in a message; the same key twice is one message."""
        name = chat_name(request)
        text = fields.get("text", "").replace("\r\n", "\n")  # as forms send line ends
        key = fields.get("key", "")
        if not _KEY.fullmatch(key):
            raise HTTPException(400, "This page is out of date. Reload it and try again.")
        limit = self._console.web.capabilities.text_limit
        if not text.strip():
            return await self._refuse(request, session, name, 400, "Write something first.")
        if len(text) > limit:
            return await self._refuse(request, session, name, 413, f"Too long: at most {limit:,} characters.", text)
        try:
            await self._console.web.say(name, self._console.owner, text, key=key)
        except (StoreError, ChannelDown) as error:
            logger.warning("web_message_not_stored", extra={"chat": name, "error": type(error).__name__})
            return await self._refuse(request, session, name, 503, NOT_STORED, text)
        return self._accepted(request, name)

    async def press(self, request: Request, _session: Session, fields: Fields) -> Response:
        """Hand in a button press; what came of it is shown by the stream."""
        name = chat_name(request)
        token, card = fields.get("token", ""), fields.get("card", "")
        if not token or not card:
            raise HTTPException(400, "The form could not be read.")
        try:
            await self._console.web.press(name, self._console.owner, token, card)
        except (StoreError, ChannelDown) as error:
            logger.warning("web_press_not_stored", extra={"chat": name, "error": type(error).__name__})
            return self._console.problem(request, 503, PRESS_NOT_STORED)
        return self._accepted(request, name)

    def _accepted(self, request: Request, name: str) -> Response:
        response: Response = (
            JSONResponse({"accepted": True}, HTTPStatus.ACCEPTED)
            if wants_json(request)
            else RedirectResponse(_path(name), status_code=HTTPStatus.SEE_OTHER)
        )
        remember_chat(request, response, name)
        return response

    async def _refuse(
        self, request: Request, session: Session, name: str, status: int, why: str, text: str = ""
    ) -> Response:
        """Say why nothing was sent; a form's text comes back in its box."""
        if wants_json(request):
            return self._console.problem(request, status, why)
        return await self._page(request, session, name, status=status, error=why, text=text)

    async def _page(
        self, request: Request, session: Session, name: str, *, status: int = 200, error: str = "", text: str = ""
    ) -> Response:
        history = await self._console.chats.history(name)
        return await self._console.page(
            request,
            session,
            "chat.html",
            chat=name,
            status=status,
            history=draw_history(history, _press_form(name, session)),
            key=new_id("say"),
            error=error,
            text=text,
            text_limit=self._console.web.capabilities.text_limit,
        )


def _press_form(name: str, session: Session) -> PressForm:
    return PressForm(action=f"{_path(name)}/press", csrf=session.csrf)


def _path(name: str) -> str:
    return f"/chat/{quote(name)}"
