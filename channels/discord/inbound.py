"""From what Discord tells, as JSON, to the event it means; pure."""

from __future__ import annotations

from datetime import datetime

from channels.discord.inbound_edits import deletions_in, edit_key, edit_of, message_key
from channels.discord.inbound_interactions import Question
from channels.discord.inbound_json import Json, id_if_any, id_of, instant_if_any, label, time_of
from channels.discord.inbound_message import begins_thread, message_body
from channels.discord.inbound_senders import actor_of, author_of
from channels.discord.inbound_text import Names, mentions_bot
from channels.discord.places import BotAccount, Place, address_in
from core.contracts.addresses import (
    Address,
    CommandBody,
    InboundBody,
    InboundEvent,
    MembershipBody,
    MessageBody,
    PressBody,
    Privacy,
    Quote,
    ReactionBody,
    Sender,
)


def message_event(message: Json, place: Place, account: BotAccount, names: Names) -> InboundEvent | None:
    """Return a new message, as the gateway tells it or a history holds it; None for the bot's own and Discord's notes.

    Both give the same event, but for what the author is in the guild: a history does not say that, so
    `member` is put into its messages before.

    Raises:
        MalformedEvent: Something is missing or of the wrong kind.
    """
    sender = author_of(message, account)
    body = None if sender is None else message_body(message, place, account, names)
    if sender is None or body is None:
        return None
    message_id = id_of(message)
    return _event(
        message_key(message_id),
        address_in(place, account, begun_by=message_id if body.addressed else None),
        place.privacy,
        sender,
        body,
        instant_if_any(message, "timestamp") or time_of(message_id),
        external_id=message_id,
    )


def edit_event(
    message: Json, place: Place, account: BotAccount, names: Names, received_at: datetime
) -> InboundEvent | None:
    """Return what a person made of their message; None for every other update of one.

    Raises:
        MalformedEvent: Something is missing or of the wrong kind.
    """
    found = edit_of(message, place, account, names, received_at)
    if found is None:
        return None
    body, sender, edited_at = found
    message_id = id_of(message)
    begins = begins_thread(message) or mentions_bot(message, account, place.guild, names)
    return _event(
        edit_key(message_id, edited_at),
        address_in(place, account, begun_by=message_id if begins else None),
        place.privacy,
        sender,
        body,
        edited_at,
        external_id=message_id,
    )


def deletion_events(update: Json, place: Place, account: BotAccount, received_at: datetime) -> tuple[InboundEvent, ...]:
    """Return the messages that were deleted, one or many; Discord does not say by whom."""
    nobody = Sender(identity=f"{account.channel}:{place.id}", name=place.id)
    address = address_in(place, account)
    return tuple(_event(key, address, place.privacy, nobody, body, received_at) for key, body in deletions_in(update))


def reaction_event(
    key: str, body: ReactionBody, sender: Sender, place: Place, account: BotAccount, received_at: datetime
) -> InboundEvent:
    """Return somebody's reactions to a message, under the event's own key."""
    address = address_in(place, account)
    return _event(key, address, place.privacy, sender, body, received_at, external_id=body.message)


def interaction_event(
    interaction: Json, body: PressBody | CommandBody, place: Place, account: BotAccount
) -> InboundEvent | None:
    """Return a press, a form that was sent, or a command; None where it is the bot's own.

    Raises:
        MalformedEvent: It has no id, or whoever did it has none.
    """
    sender = actor_of(interaction, account)
    if sender is None:
        return None
    interaction_id = id_of(interaction)
    card = body.card if isinstance(body, PressBody) else ""
    address = address_in(place, account)
    at = time_of(interaction_id)
    return _event(f"i/{interaction_id}", address, place.privacy, sender, body, at, external_id=card or None)


def question_event(
    interaction: Json, asked: Question, quote: Quote, place: Place, account: BotAccount
) -> InboundEvent | None:
    """Return what somebody asks about a message, said where that stands, or in its thread.

    Raises:
        MalformedEvent: It has no id, or whoever asks has none.
    """
    sender = actor_of(interaction, account)
    if sender is None:
        return None
    interaction_id = id_of(interaction)
    return _event(
        f"i/{interaction_id}",
        address_in(place, account, begun_by=asked.message),
        place.privacy,
        sender,
        MessageBody(text=asked.text, quote=quote),
        time_of(interaction_id),
        external_id=asked.message,
    )


def membership_event(
    guild: Json, chat: str, account: BotAccount, *, present: bool, key: str, at: datetime
) -> InboundEvent:
    """Return that the bot was let into a guild, or put out of it; Discord does not say by whom.

    Args:
        guild: The guild.
        chat: A channel of it where the bot can say something.
        account: The bot.
        present: Whether it is in now.
        key: Of the event.
        at: When it came or went.

    Raises:
        MalformedEvent: The guild has no id.
    """
    guild_id = id_of(guild)
    nobody = Sender(identity=f"{account.channel}:{guild_id}", name=label(guild.get("name")) or guild_id)
    address = Address(channel=account.channel, account=account.id, chat=chat, space=guild_id)
    return _event(key, address, Privacy.PRIVATE_GROUP, nobody, MembershipBody(present=present), at)


def place_named_by(event: Json) -> tuple[str, str | None]:
    """Return the channel that an event is about, and the guild, which is None for a direct conversation.

    Raises:
        MalformedEvent: It names none.
    """
    return id_of(event, "channel_id"), id_if_any(event, "guild_id")


def _event(
    key: str,
    address: Address,
    privacy: Privacy,
    sender: Sender,
    body: InboundBody,
    sent_at: datetime,
    external_id: str | None = None,
) -> InboundEvent:
    return InboundEvent(
        address=address,
        key=key,
        sender=sender,
        body=body,
        privacy=privacy,
        sent_at=sent_at,
        external_id=external_id,
    )
