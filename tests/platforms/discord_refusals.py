"""How a fake Discord says no; codes follow its page on opcodes and status codes, as read on 2026-11-30."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """The answer to a request that is not carried out; `code` is Discord's own, 0 where it has none."""

    def __init__(self, status: int, code: int, message: str, **fields: Any) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.fields = fields
        super().__init__(message)

    def as_json(self) -> dict[str, Any]:
        return {"message": self.message, "code": self.code, **self.fields}


def invalid_form(path: str, code: str, message: str) -> Refusal:
    """Return 50035 with its error tree; `path` names the field, such as `embeds.0.title`; empty: all of it."""
    tree: dict[str, Any] = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(path.split(".") if path else []):
        tree = {name: tree}
    return Refusal(400, 50035, "Invalid Form Body", errors=tree)


def too_long(path: str, limit: int) -> Refusal:
    return invalid_form(path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")


def bad_length(path: str, least: int, most: int) -> Refusal:
    return invalid_form(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")


def required(path: str) -> Refusal:
    return invalid_form(path, "BASE_TYPE_REQUIRED", "This field is required")


def unauthorized() -> Refusal:
    return Refusal(401, 0, "401: Unauthorized")


def not_found() -> Refusal:
    return Refusal(404, 0, "404: Not Found")


def unknown_channel() -> Refusal:
    return Refusal(404, 10003, "Unknown Channel")


def unknown_guild() -> Refusal:
    return Refusal(404, 10004, "Unknown Guild")


def unknown_member() -> Refusal:
    return Refusal(404, 10007, "Unknown Member")


def unknown_message() -> Refusal:
    return Refusal(404, 10008, "Unknown Message")


def unknown_user() -> Refusal:
    return Refusal(404, 10013, "Unknown User")


def unknown_emoji() -> Refusal:
    return Refusal(400, 10014, "Unknown Emoji")


def unknown_webhook() -> Refusal:
    return Refusal(404, 10015, "Unknown Webhook")


def unknown_interaction() -> Refusal:
    return Refusal(404, 10062, "Unknown interaction")


def too_large() -> Refusal:
    return Refusal(413, 40005, "Request entity too large")


def already_acknowledged() -> Refusal:
    return Refusal(400, 40060, "Interaction has already been acknowledged.")


def tag_required() -> Refusal:
    return Refusal(400, 40067, "A tag is required to create a forum post in this channel")


def missing_access() -> Refusal:
    return Refusal(403, 50001, "Missing Access")


def not_author() -> Refusal:
    return Refusal(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> Refusal:
    return Refusal(400, 50006, "Cannot send an empty message")


def closed_to_messages() -> Refusal:
    return Refusal(403, 50007, "Cannot send messages to this user")


def not_a_text_channel() -> Refusal:
    return Refusal(400, 50008, "Cannot send messages in a non-text channel")


def missing_permissions() -> Refusal:
    return Refusal(403, 50013, "Missing Permissions")


def wrong_channel_kind() -> Refusal:
    return Refusal(400, 50024, "Cannot execute action on this channel type")


def invalid_webhook_token() -> Refusal:
    return Refusal(401, 50027, "Invalid Webhook Token")


def thread_is_archived() -> Refusal:
    return Refusal(400, 50083, "Thread is archived")


def invalid_json() -> Refusal:
    return Refusal(400, 50109, "The request body contains invalid JSON.")


def thread_exists() -> Refusal:
    return Refusal(400, 160004, "A thread has already been created for this message")


def thread_is_locked() -> Refusal:
    return Refusal(403, 160005, "Thread is locked")
