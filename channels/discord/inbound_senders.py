"""Who acted: people, bots, and webhooks, which are bots; pure."""

from __future__ import annotations

from channels.discord.inbound_json import Json, bits, id_if_any, id_of, ids, label, part
from channels.discord.places import BotAccount
from core.contracts.addresses import Sender

_IS_GUEST = 1 << 4
"""docs.discord.com/developers/resources/guild#guild-member-object-guild-member-flags, read on 2026-11-30.

Somebody who was let in as a guest, and for a voice channel only.
"""


def author_of(message: Json, account: BotAccount) -> Sender | None:
    """Return who a message is from, None for the bot itself.

    What a webhook posts is a bot's: nobody's rights go with it, whatever name it shows.

    Raises:
        MalformedEvent: The author has no id.
    """
    sender = user_as_sender(part(message, "author"), part(message, "member"), account)
    if sender is None or id_if_any(message, "webhook_id") is None:
        return sender
    return Sender(identity=sender.identity, name=sender.name, is_bot=True)


def actor_of(interaction: Json, account: BotAccount) -> Sender | None:
    """Return who pressed, sent or called something.

    Raises:
        MalformedEvent: They have no id.
    """
    member = part(interaction, "member")
    return user_as_sender(part(member, "user") or part(interaction, "user"), member, account)


def user_as_sender(user: Json, member: Json, account: BotAccount) -> Sender | None:
    """Return a user as a sender, None for the bot itself.

    Args:
        user: The user.
        member: What the user is in the guild; empty in a direct conversation, and where it is not known.
        account: The bot.

    Raises:
        MalformedEvent: The user has no id.
    """
    user_id = id_of(user)
    if user_id == account.id:
        return None
    return Sender(
        identity=f"{account.channel}:{user_id}",
        name=name_of(user, member) or user_id,
        is_bot=user.get("bot") is True,
        is_guest=member.get("pending") is True or bool(bits(member, "flags") & _IS_GUEST),
        roles=tuple(f"{account.channel}:{role}" for role in ids(member, "roles")),
    )


def name_of(user: Json, member: Json) -> str:
    """Return how somebody is called where they acted."""
    return label(member.get("nick")) or label(user.get("global_name")) or label(user.get("username"))
