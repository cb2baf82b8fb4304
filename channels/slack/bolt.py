"""Slack's requests by way of slack-bolt, which proves and unpacks them: stored in a middleware, before the ack."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.payload import Json
from core.contracts.errors import StoreError

_STAND_IN = "xoxb-stand-in"
"""No listener runs, so nothing here ever needs the token."""
_UNSIGNED = "-"
"""Sockets carry no signature; an empty secret would stop the start."""

Take = Callable[[Json], Awaitable[None]]
"""Takes one request; when it returns the request may be acknowledged."""


def make_app(take: Take, *, team: str, signing_secret: str = "") -> AsyncApp:
    """Return an app without listeners: every request that is Slack's ends in `take`, and is acknowledged by it.

    One that could not be stored is not acknowledged, so that Slack sends it again.
    """
    # Bolt and the SDK print requests whole at DEBUG.
    terse = logging.getLogger(f"{__name__}.sdk")
    terse.setLevel(logging.WARNING)

    async def authorize(**_: Any) -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=team, bot_token=_STAND_IN)

    app = AsyncApp(
        logger=terse,
        name="lodger",
        client=AsyncWebClient(logger=terse),
        signing_secret=signing_secret or _UNSIGNED,
        authorize=authorize,
        # Whose doing an event is is looked at where it is read.
        ignoring_self_events_enabled=False,
        ignoring_self_assistant_message_events_enabled=False,
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )

    async def store(req: AsyncBoltRequest) -> BoltResponse:
        try:
            await take(dict(req.body))
        except StoreError:
            return BoltResponse(status=503, body="")
        return BoltResponse(status=200, body="")

    app.use(store)
    return app
