"""Addresses and what goes to and comes from them, as JSON and back; the rules of `core.stores.codec`."""

from __future__ import annotations

from typing import assert_never

from core.contracts.addresses import (
    Address,
    Attachment,
    Button,
    ButtonStyle,
    CardContent,
    EditBody,
    InboundBody,
    InboundEvent,
    MessageBody,
    OutboundContent,
    PressBody,
    Privacy,
    Sender,
    TextContent,
)
from core.stores.tables.columns import from_micros, to_micros
from core.stores.text import JsonObject


def address_to_json(address: Address) -> JsonObject:
    """Return an address as JSON."""
    return {"channel": address.channel, "account": address.account, "chat": address.chat, "thread": address.thread}


def address_from_json(data: JsonObject) -> Address:
    """Return an address."""
    return Address(channel=data["channel"], account=data["account"], chat=data["chat"], thread=data.get("thread"))


def content_to_json(content: OutboundContent) -> JsonObject:
    """Return the content of an outgoing message as JSON."""
    match content:
        case TextContent(markdown=markdown, silent=silent):
            return {"type": "text", "markdown": markdown, "silent": silent}
        case CardContent():
            rows = [
                [{"token": button.token, "label": button.label, "style": button.style.value} for button in row]
                for row in content.rows
            ]
            return {
                "type": "card",
                "text": content.text,
                "code": content.code,
                "rows": rows,
                "silent": content.silent,
            }
        case _:
            assert_never(content)


def content_from_json(data: JsonObject) -> OutboundContent:
    """Return the content of an outgoing message."""
    match data["type"]:
        case "text":
            return TextContent(markdown=data["markdown"], silent=data.get("silent", False))
        case "card":
            rows = tuple(tuple(_button(item) for item in row) for row in data["rows"])
            return CardContent(text=data["text"], code=data["code"], rows=rows, silent=data.get("silent", False))
        case tag:
            raise ValueError(f"unknown content {tag!r}")


def _button(data: JsonObject) -> Button:
    return Button(token=data["token"], label=data["label"], style=ButtonStyle(data["style"]))


def inbound_to_json(event: InboundEvent) -> JsonObject:
    """Return a platform's event as JSON."""
    sender = {"identity": event.sender.identity, "name": event.sender.name, "is_bot": event.sender.is_bot}
    return {
        "address": address_to_json(event.address),
        "key": event.key,
        "sender": sender,
        "body": _body_to_json(event.body),
        "privacy": event.privacy.value,
        "sent_at_us": to_micros(event.sent_at),
        "external_id": event.external_id,
    }


def inbound_from_json(data: JsonObject) -> InboundEvent:
    """Return a platform's event."""
    sender = data["sender"]
    return InboundEvent(
        address=address_from_json(data["address"]),
        key=data["key"],
        sender=Sender(identity=sender["identity"], name=sender["name"], is_bot=sender.get("is_bot", False)),
        body=_body_from_json(data["body"]),
        privacy=Privacy(data["privacy"]),
        sent_at=from_micros(data["sent_at_us"]),
        external_id=data.get("external_id"),
    )


def _body_to_json(body: InboundBody) -> JsonObject:
    match body:
        case MessageBody(text=text, attachments=attachments, addressed=addressed):
            files = [
                {"handle": file.handle, "name": file.name, "media_type": file.media_type, "size_bytes": file.size_bytes}
                for file in attachments
            ]
            return {"type": "message", "text": text, "attachments": files, "addressed": addressed}
        case EditBody(message_key=message_key, text=text):
            return {"type": "edit", "message_key": message_key, "text": text}
        case PressBody(token=token, card=card, acknowledge=acknowledge):
            return {"type": "press", "token": token, "card": card, "acknowledge": acknowledge}
        case _:
            assert_never(body)


def _body_from_json(data: JsonObject) -> InboundBody:
    match data["type"]:
        case "message":
            files = tuple(_attachment(item) for item in data.get("attachments", ()))
            return MessageBody(text=data["text"], attachments=files, addressed=data.get("addressed", True))
        case "edit":
            return EditBody(message_key=data["message_key"], text=data["text"])
        case "press":
            return PressBody(token=data["token"], card=data["card"], acknowledge=data.get("acknowledge"))
        case tag:
            raise ValueError(f"unknown inbound event {tag!r}")


def _attachment(data: JsonObject) -> Attachment:
    return Attachment(
        handle=data["handle"], name=data["name"], media_type=data["media_type"], size_bytes=data.get("size_bytes")
    )
