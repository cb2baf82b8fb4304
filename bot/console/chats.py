"""The chats of the web console: their names, their titles, and which ones a browser has open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.host_api import HistoryEntry, HostApi
from channels.feed import FeedChannel
from core.contracts.addresses import TextContent
from core.contracts.ids import short_token

FIRST_CHAT = "main"
UNTITLED = "New conversation"

_NAME = re.compile(r"[a-z0-9]{1,32}")
_NEW_NAME_CHARS = 10
_TITLE_CHARS = 48
_MOST_CHATS = 30
_COOKIE = "lodger_chats"
_COOKIE_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLink:
    """One line of the sidebar."""

    name: str
    title: str


class Chats:
    """Titles of chats: the beginning of what the person said first.

    Which chats there are is remembered by the browser, in a cookie of names, because the host
    keeps no list of them; what was said in them is the host's.
    """

    def __init__(self, api: HostApi, web: FeedChannel) -> None:
        self._api = api
        self._web = web
        self._titles: dict[str, str] = {}

    async def links(self, names: tuple[str, ...]) -> tuple[ChatLink, ...]:
        """Return the chats of these names with their titles."""
        return tuple([ChatLink(name=name, title=await self._title(name)) for name in names])

    async def history(self, name: str) -> tuple[HistoryEntry, ...]:
        """Return what a chat showed, oldest first."""
        return await self._api.history(self._web.address(name).key)

    def name_by(self, name: str, text: str) -> str:
        """Return the chat's title; the first text makes it."""
        return self._titles.setdefault(name, _title_of(text))

    async def _title(self, name: str) -> str:
        if name not in self._titles:
            for entry in await self.history(name):
                if entry.name and isinstance(entry.content, TextContent):
                    self.name_by(name, entry.content.markdown)
                    break
        return self._titles.get(name, UNTITLED)


def new_chat_name() -> str:
    """Return a name nobody used: a fresh address, and so a fresh conversation."""
    return short_token()[:_NEW_NAME_CHARS]


def chat_name(request: Request) -> str:
    """Return the chat that a path names.

    Raises:
        HTTPException: 404 for what no chat can be called.
    """
    name = str(request.path_params["name"])
    if not _NAME.fullmatch(name):
        raise HTTPException(404, "There is no such chat.")
    return name


def open_chats(request: Request, *, current: str | None = None) -> tuple[str, ...]:
    """Return the browser's chats, newest first, with `current` and the first chat among them."""
    names = [name for name in request.cookies.get(_COOKIE, "").split(".") if _NAME.fullmatch(name)]
    if current is not None and current not in names:
        names.insert(0, current)
    kept = list(dict.fromkeys(names))[:_MOST_CHATS]
    return tuple(kept) if FIRST_CHAT in kept else (*kept, FIRST_CHAT)


def remember_chat(request: Request, response: Response, name: str) -> None:
    """Have the browser keep a chat that something was said in."""
    names = open_chats(request, current=name)
    response.set_cookie(
        _COOKIE,
        ".".join(names),
        max_age=int(_COOKIE_LIFETIME.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _title_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"
