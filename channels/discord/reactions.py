"""Who has reacted how to which message, as far as it was told since the process began."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from channels.discord.inbound_json import Json, id_if_any, id_of, label, part
from channels.discord.inbound_senders import user_as_sender
from channels.discord.places import BotAccount
from core.contracts.addresses import ReactionBody, Sender

_REMEMBERED = 5_000
_ADDED = "MESSAGE_REACTION_ADD"
_REMOVED = "MESSAGE_REACTION_REMOVE"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reactions:
    """One person's reactions to one message."""

    sender: Sender
    emoji: tuple[str, ...]


class ReactionBook:
    """Makes of each change all reactions of a person to a message, as Discord tells only what changed.

    What was taken back is told with no name, so it counts only where the reaction was heard of, too.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], _Reactions] = OrderedDict()

    def note(self, name: str, change: Json, account: BotAccount, known_as: str) -> tuple[ReactionBody, Sender] | None:
        """Return somebody's reactions as they are now; None for the bot's own, and for what changes nothing.

        Args:
            name: Of the event.
            change: The event.
            account: The bot.
            known_as: What the person is called, where the event does not say; empty where nobody knows.

        Raises:
            MalformedEvent: The message or the person has no id.
        """
        message, emoji = id_of(change, "message_id"), _emoji(part(change, "emoji"))
        mine = (message, id_of(change, "user_id"))
        before = self._known.get(mine)
        sender = _sender(change, account, known_as, before)
        if sender is None or not emoji:
            return None
        had = () if before is None else before.emoji
        if name == _ADDED and emoji not in had:
            now = (*had, emoji)
        elif name == _REMOVED and emoji in had:
            now = tuple(other for other in had if other != emoji)
        else:
            return None
        self._known[mine] = _Reactions(sender=sender, emoji=now)
        self._known.move_to_end(mine)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return ReactionBody(message=message, emoji=now), sender


def _sender(change: Json, account: BotAccount, known_as: str, before: _Reactions | None) -> Sender | None:
    """Return who reacts; what is taken back says only their id."""
    member = part(change, "member")
    if not member and before is not None:
        return before.sender
    user = part(member, "user") or {"id": change.get("user_id")}
    sender = user_as_sender(user, member, account)
    return replace(sender, name=known_as) if sender is not None and not member and known_as else sender


def _emoji(emoji: Json) -> str:
    """Return a reaction as text; those of a guild have a name."""
    name = label(emoji.get("name"))
    if id_if_any(emoji, "id") is None:
        return name
    return f":{name}:" if name else "another reaction"
