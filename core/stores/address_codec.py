"""Addresses and what goes to and comes from them, as JSON and back; the rules of `core.stores.codec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import assert_never

from core.contracts.addresses import (
    Address,
    Attachment,
    Button,
    ButtonStyle,
    CardContent,
    CommandBody,
    DeleteBody,
    EditBody,
    FileContent,
    HomeBody,
    InboundBody,
    InboundEvent,
    MembershipBody,
    MessageBody,
    MigrationBody,
    OutboundContent,
    PressBody,
    Privacy,
    Quote,
    ReactionBody,
    ReactionContent,
    Removal,
    Sender,
    TextContent,
)
from core.stores.tables.columns import from_micros, to_micros
from core.stores.text import JsonObject


def address_to_json(address: Address) -> JsonObject:
    """Return an address as JSON."""
    data: JsonObject = {"channel": address.channel, "account": address.account, "chat": address.chat}
    return {**data, "thread": address.thread, "space": address.space}


def address_from_json(data: JsonObject) -> Address:
    """Return an address."""
    return Address(
        channel=data["channel"],
        account=data["account"],
        chat=data["chat"],
        thread=data.get("thread"),
        space=data.get("space"),
    )


def content_to_json(content: OutboundContent) -> JsonObject:
    """Return the content of an outgoing message as JSON."""
    match content:
        case TextContent(markdown=markdown, silent=silent):
            return {"type": "text", "markdown": markdown, "silent": silent}
        case CardContent():
            rows = [[{**asdict(button), "style": button.style.value} for button in row] for row in content.rows]
            return {
                "type": "card",
                "text": content.text,
                "code": content.code,
                "rows": rows,
                "silent": content.silent,
            }
        case FileContent():
            return {"type": "file", **asdict(content)}
        case ReactionContent(emoji=emoji):
            return {"type": "reaction", "emoji": emoji}
        case Removal():
            return {"type": "removal"}
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
        case "file":
            return FileContent(**{name: value for name, value in data.items() if name != "type"})
        case "reaction":
            return ReactionContent(emoji=data["emoji"])
        case "removal":
            return Removal()
        case tag:
            raise ValueError(f"unknown content {tag!r}")


def _button_to_json(button: Button) -> JsonObject:
    data: JsonObject = {"token": button.token, "label": button.label, "style": button.style.value}
    return {**data, "opens_form": True} if button.opens_form else data


def _button(data: JsonObject) -> Button:
    return Button(
        token=data["token"],
        label=data["label"],
        style=ButtonStyle(data["style"]),
        opens_form=data.get("opens_form", False),
    )


def inbound_to_json(event: InboundEvent) -> JsonObject:
    """Return a platform's event as JSON."""
    return {
        "address": address_to_json(event.address),
        "key": event.key,
        "sender": asdict(event.sender),
        "body": _body_to_json(event.body),
        "privacy": event.privacy.value,
        "sent_at_us": to_micros(event.sent_at),
        "external_id": event.external_id,
    }


def inbound_from_json(data: JsonObject) -> InboundEvent:
    """Return a platform's event."""
    return InboundEvent(
        address=address_from_json(data["address"]),
        key=data["key"],
        sender=_sender(data["sender"]),
        body=_BODIES[data["body"]["type"]](data["body"]),
        privacy=Privacy(data["privacy"]),
        sent_at=from_micros(data["sent_at_us"]),
        external_id=data.get("external_id"),
    )


def _sender(data: JsonObject) -> Sender:
    return Sender(
        identity=data["identity"],
        name=data["name"],
        is_bot=data.get("is_bot", False),
        is_guest=data.get("is_guest", False),
        roles=tuple(data.get("roles", ())),
    )


def _body_to_json(body: InboundBody) -> JsonObject:
    return {"type": _TAGS[type(body)], **asdict(body)}


def _message(data: JsonObject) -> MessageBody:
    quote = data.get("quote")
    return MessageBody(
        text=data["text"],
        attachments=tuple(_attachment(item) for item in data.get("attachments", ())),
        addressed=data.get("addressed", True),
        quote=None if quote is None else Quote(**quote),
        album=data.get("album"),
        forwarded_from=data.get("forwarded_from", ""),
        unsupported=data.get("unsupported", ""),
    )


def _attachment(data: JsonObject) -> Attachment:
    return Attachment(
        handle=data["handle"], name=data["name"], media_type=data["media_type"], size_bytes=data.get("size_bytes")
    )


_BODIES: Mapping[str, Callable[[JsonObject], InboundBody]] = {
    "message": _message,
    "edit": lambda data: EditBody(message_key=data["message_key"], text=data["text"]),
    "delete": lambda data: DeleteBody(message_key=data["message_key"]),
    "reaction": lambda data: ReactionBody(message=data["message"], emoji=tuple(data["emoji"])),
    "press": lambda data: PressBody(
        token=data["token"],
        card=data["card"],
        acknowledge=data.get("acknowledge"),
        values=tuple((name, text) for name, text in data.get("values", ())),
    ),
    "command": lambda data: CommandBody(text=data["text"], acknowledge=data.get("acknowledge")),
    "home": lambda _: HomeBody(),
    "membership": lambda data: MembershipBody(present=data["present"]),
    "migration": lambda data: MigrationBody(chat=data["chat"]),
}
"""By the `type` of a stored body; an unknown one is a `KeyError`, which `read_json` translates."""

_TAGS: Mapping[type[InboundBody], str] = {
    MessageBody: "message",
    EditBody: "edit",
    DeleteBody: "delete",
    ReactionBody: "reaction",
    PressBody: "press",
    CommandBody: "command",
    HomeBody: "home",
    MembershipBody: "membership",
    MigrationBody: "migration",
}
