"""How a fake Slack says no; error names follow docs.slack.dev/reference/methods, as read on 2026-11-30."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """The Web API's answer to a call that it does not carry out; most come with status 200."""

    def __init__(self, error: str, *, status: int = 200, headers: dict[str, str] | None = None, **fields: Any) -> None:
        self.error = error
        self.status = status
        self.headers = headers or {}
        self.fields = fields
        super().__init__(error)

    def as_json(self) -> dict[str, Any]:
        return {"ok": False, "error": self.error, **self.fields}


def invalid_arguments(*problems: str) -> Refusal:
    """Return the refusal of a call whose parameters do not fit the method."""
    messages = [f"[ERROR] {problem}" for problem in problems]
    return Refusal("invalid_arguments", response_metadata={"messages": messages})


def invalid_blocks(problem: str, pointer: str) -> Refusal:
    """Return the refusal of blocks; `pointer` says which, as a JSON pointer."""
    told = f"{problem} [json-pointer:{pointer}]"
    return Refusal("invalid_blocks", errors=[told], response_metadata={"messages": [f"[ERROR] {told}"]})


def rate_limited(seconds: float) -> Refusal:
    """Return 429; Slack tells whole seconds, at least one."""
    wait = max(1, -int(-seconds // 1))
    return Refusal("ratelimited", status=429, headers={"Retry-After": str(wait)})


def required(params: dict[str, Any], name: str) -> str:
    """Return a parameter that has to be there, as text.

    Raises:
        Refusal: `invalid_arguments`, it is not there.
    """
    value = params.get(name)
    if value is None or value == "":
        raise invalid_arguments(f"missing required field: {name} [json-pointer:/{name}]")
    return str(value)
