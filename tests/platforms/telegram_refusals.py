"""How a fake Telegram says no; wordings follow core.telegram.org/bots/api and tdlib, as read on 2026-11-30."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """The Bot API's answer to a call that it does not carry out."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        self.status = status
        self.description = description
        self.parameters = parameters
        super().__init__(description)

    def as_json(self) -> dict[str, Any]:
        error = {"ok": False, "error_code": self.status, "description": self.description}
        return error | ({"parameters": self.parameters} if self.parameters else {})


def bad_request(description: str, **parameters: Any) -> Refusal:
    return Refusal(400, f"Bad Request: {description}", **parameters)


def integer(value: Any) -> int:
    """Return a parameter as the number it must be."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise bad_request("chat_id is empty") from None
