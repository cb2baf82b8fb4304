"""The console's application: its routes and what stands before them."""

from __future__ import annotations

from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ExceptionHandler

from bot.console.approval_pages import approval_routes
from bot.console.audit_pages import audit_routes
from bot.console.chat_pages import chat_routes
from bot.console.chats import Chats
from bot.console.context import HERE, Console, load_templates
from bot.console.health import health_routes
from bot.console.memory_pages import memory_routes
from bot.console.security import LOOPBACK_HOSTS, ConsoleGate, SafeResponses
from bot.console.sessions import ConsoleSessions
from bot.console.sign_in import sign_in_routes
from bot.host_api import HostApi
from channels.feed import FeedChannel
from core.contracts.addresses import Sender
from core.contracts.clock import Clock
from core.contracts.errors import InvalidInput, NotFound, StoreError

_MOST_BODY_BYTES = 2_000_000
"""The longest message of the web chat, with every character escaped by a form, and some room."""


def build_console(
    *,
    api: HostApi,
    web: FeedChannel,
    sessions: ConsoleSessions,
    clock: Clock,
    owner: Sender,
    allowed_hosts: Collection[str] = LOOPBACK_HOSTS,
) -> Starlette:
    """Return the web console.

    Args:
        api: The host it shows and acts on.
        web: The channel of its chats; whoever wires the host runs it.
        sessions: Where links for signing in are made.
        clock: Times the stream's keepalives.
        owner: Who speaks and decides here.
        allowed_hosts: Names, without port, by which browsers may reach it.
    """
    console = Console(
        api=api,
        web=web,
        sessions=sessions,
        clock=clock,
        owner=owner,
        chats=Chats(api, web),
        templates=load_templates(),
    )
    return Starlette(
        routes=_routes(console),
        middleware=[
            Middleware(SafeResponses),
            Middleware(ConsoleGate, sessions=sessions, allowed_hosts=allowed_hosts),
        ],
        exception_handlers=_problems(console),
        max_body_size=_MOST_BODY_BYTES,
    )


def _routes(console: Console) -> list[BaseRoute]:
    return [
        *sign_in_routes(console),
        *chat_routes(console),
        *approval_routes(console),
        *memory_routes(console),
        *audit_routes(console),
        *health_routes(console.api),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]


def _problems(console: Console) -> dict[type[Exception], ExceptionHandler]:
    """Return what a person reads when a request cannot be answered."""

    async def refused(request: Request, error: Exception) -> Response:
        match error:
            case HTTPException():
                return console.problem(request, error.status_code, error.detail)
            case _:
                raise error

    def always(status: int, text: str) -> ExceptionHandler:
        async def answer(request: Request, _error: Exception) -> Response:
            return console.problem(request, status, text)

        return answer

    return {
        HTTPException: refused,
        NotFound: always(404, "It is not here, or not any more."),
        InvalidInput: always(400, "The host did not take that."),
        StoreError: always(503, "The host cannot use its database right now. Try again."),
    }
