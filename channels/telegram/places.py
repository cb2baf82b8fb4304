"""Where a call goes: chat, topic and message, as Telegram numbers them; pure."""

from __future__ import annotations

from typing import Any

from core.contracts.addresses import Address, OutboundItem
from core.contracts.errors import SendRejected


def number(text: str) -> int:
    """Return an id as the API takes it.

    Raises:
        SendRejected: It is none of Telegram's.
    """
    try:
        return int(text)
    except ValueError:
        raise SendRejected(f"{text!r} is no id of Telegram") from None


def thread_id(address: Address) -> int | None:
    """Return the topic as the API takes it."""
    return None if address.thread is None else number(address.thread)


def new_message_options(item: OutboundItem, *, silent: bool) -> dict[str, Any]:
    """Return the parameters of a new message that say where it stands and whether it rings."""
    options: dict[str, Any] = {}
    if silent:
        options["disable_notification"] = True
    if item.address.thread is not None:
        options["message_thread_id"] = thread_id(item.address)
    if item.reply_to is not None:
        options["reply_parameters"] = {"message_id": number(item.reply_to), "allow_sending_without_reply": True}
    return options
