"""Whether the process lives, whether it is ready, and what it counts; for probes and for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bot.console.security import session_of
from bot.host_api import Check, HostApi
from core.contracts.errors import StoreError


def health_routes(api: HostApi) -> list[BaseRoute]:
    """Return `/healthz`, `/readyz` and `/metrics`; they answer anybody, details are for the signed-in."""

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def ready(request: Request) -> Response:
        checks = await _checks(api)
        is_ready = all(check.ok for check in checks if check.required)
        answer: dict[str, Any] = {"ready": is_ready}
        if session_of(request) is not None:
            answer["checks"] = [asdict(check) for check in checks]
        return JSONResponse(answer, 200 if is_ready else 503)

    async def metrics(_request: Request) -> Response:
        return Response(await api.metrics(), media_type=CONTENT_TYPE_LATEST)

    return [
        Route("/healthz", alive, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]


async def _checks(api: HostApi) -> tuple[Check, ...]:
    try:
        return await api.readiness()
    except StoreError as error:
        return (Check(name="store", ok=False, detail=str(error)),)
