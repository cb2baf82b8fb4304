"""What a fake Discord answers instead of carrying a request out."""

from __future__ import annotations

import math
from typing import Any

from tests.platforms.telegram_faults import Fault, Planned

Answer = tuple[int, dict[str, Any], dict[str, str]]
"""Status, body and headers."""


def answer_of(planned: Planned) -> Answer | None:
    """Return what a fault answers; None where the request is carried out, or never answered."""
    match planned.fault:
        case Fault.ANSWERED | Fault.LOST_REQUEST:
            plain = {"message": f"{planned.status}: Error", "code": 0}
            return planned.status, plain if planned.body is None else planned.body, {}
        case Fault.FLOODED:
            is_global = bool((planned.body or {}).get("global"))
            return limited(planned.seconds, is_global=is_global)
        case _:
            return None


def limited(seconds: float, *, is_global: bool = False, scope: str = "user") -> Answer:
    """Return 429 with what comes with it."""
    body = {"message": "You are being rate limited.", "retry_after": seconds, "global": is_global}
    headers = {
        "Via": "1.1 google",  # without it the SDK takes the answer for a ban
        "Retry-After": str(math.ceil(seconds)),
        "X-RateLimit-Scope": "global" if is_global else scope,
    }
    return 429, body, headers | ({"X-RateLimit-Global": "true"} if is_global else {})
