"""Presses, commands and modals: what somebody did, and how it can be answered; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from channels.discord.forms import token_of, values_of
from channels.discord.inbound_json import Json, MalformedEvent, clean, id_if_any, id_of, part, parts
from channels.discord.inbound_json import field as text_field
from channels.discord.inbound_senders import actor_of
from channels.discord.places import BotAccount
from core.contracts.addresses import CommandBody, PressBody

_SLASH, _ON_MESSAGE = 1, 3
_BUTTON = 2
"""docs.discord.com/developers/interactions/application-commands and components/reference, read on 2026-11-30: types."""

QUESTION_MARK = "ask:"
"""What the custom id of a modal begins with that asks about a message; the message's id follows."""
QUESTION_FIELD = "question"
TEXT_OPTION = "text"
"""The one option of every slash command: what would be typed behind it."""


class Kind(StrEnum):
    """What is answered, which decides how. A question is a modal that no message opened."""

    PRESS = "press"
    FORM = "form"
    COMMAND = "command"
    QUESTION = "question"


class _Type(IntEnum):
    """docs.discord.com/developers/interactions/receiving-and-responding, read on 2026-11-30."""

    COMMAND = 2
    COMPONENT = 3
    MODAL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What an interaction is answered with. Its text travels in events, so that a restart changes nothing."""

    kind: Kind
    application: str
    id: str
    token: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.kind.value}/{self.application}/{self.id}/{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody asks about a message, by a modal."""

    message: str
    text: str


def read_ticket(text: str) -> Ticket | None:
    """Return the ticket that a text stands for; None when it is none of ours."""
    kind, _, rest = text.partition("/")
    ids, _, token = rest.rpartition("/")
    application, _, interaction = ids.partition("/")
    if kind not in set(Kind) or not token or not (application.isdecimal() and interaction.isdecimal()):
        return None
    return Ticket(kind=Kind(kind), application=application, id=interaction, token=token)


def ticket_of(interaction: Json) -> Ticket | None:
    """Return what an interaction is answered with; None for what nobody waits for.

    Raises:
        MalformedEvent: It has no id, token or application.
    """
    kind = _kind_of(interaction)
    if kind is None:
        return None
    token = text_field(interaction, "token", str)
    if not token or "/" in token:
        raise MalformedEvent("'token' is no token")
    return Ticket(kind=kind, application=id_of(interaction, "application_id"), id=id_of(interaction), token=token)


def asked_message(interaction: Json) -> str | None:
    """Return the message that somebody wants to ask about, by its menu; None for anything else."""
    data = part(interaction, "data")
    is_on_message = interaction.get("type") == _Type.COMMAND and data.get("type") == _ON_MESSAGE
    return id_if_any(data, "target_id") if is_on_message else None


def body_of(interaction: Json, ticket: Ticket, account: BotAccount) -> PressBody | CommandBody | Question | None:
    """Return what somebody did; None for what means nothing here, such as a press on what is not the bot's.

    Raises:
        MalformedEvent: Something is missing or of the wrong kind.
    """
    if actor_of(interaction, account) is None or asked_message(interaction) is not None:
        return None
    data = part(interaction, "data")
    match interaction.get("type"):
        case _Type.COMMAND:
            return CommandBody(text=_typed(data), acknowledge=str(ticket)) if data.get("type") == _SLASH else None
        case _Type.COMPONENT:
            return _press(interaction, data, ticket, account)
        case _Type.MODAL:
            return _sent(interaction, data, ticket)
        case _:
            return None


def _kind_of(interaction: Json) -> Kind | None:
    match interaction.get("type"):
        case _Type.COMMAND:
            return Kind.COMMAND
        case _Type.COMPONENT:
            return Kind.PRESS
        case _Type.MODAL:
            is_on_message = bool(part(interaction, "message"))
            return Kind.FORM if is_on_message else Kind.QUESTION
        case _:
            return None


def _press(interaction: Json, data: Json, ticket: Ticket, account: BotAccount) -> PressBody | None:
    message = part(interaction, "message")
    if data.get("component_type") != _BUTTON or part(message, "author").get("id") != account.id:
        return None
    return PressBody(token=text_field(data, "custom_id", str), card=id_of(message), acknowledge=str(ticket))


def _sent(interaction: Json, data: Json, ticket: Ticket) -> PressBody | Question | None:
    custom_id = text_field(data, "custom_id", str)
    values = tuple((name, clean(text)) for name, text in values_of(data))
    if custom_id.startswith(QUESTION_MARK):
        message = custom_id.removeprefix(QUESTION_MARK)
        if not message.isdecimal():
            raise MalformedEvent(f"{custom_id!r} names no message")
        return Question(message=message, text=dict(values).get(QUESTION_FIELD, "").strip())
    token = token_of(custom_id)
    if token is None:
        return None
    card = id_if_any(part(interaction, "message"), "id") or ""
    return PressBody(token=token, card=card, acknowledge=str(ticket), values=values)


def _typed(data: Json) -> str:
    """Return a slash command as it would be typed."""
    options: dict[str, Any] = {str(option.get("name")): option.get("value") for option in parts(data, "options")}
    text = options.get(TEXT_OPTION)
    rest = clean(text).strip() if isinstance(text, str) else ""
    return f"/{clean(text_field(data, 'name', str))} {rest}".rstrip()
