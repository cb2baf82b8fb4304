"""The channels' way into the host: an event is committed before its platform is told that it arrived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from bot.conversations.outages import OutageNotice
from channels.contract import Channel, Mark, Sink
from core.contracts.addresses import (
    CommandBody,
    DeleteBody,
    EditBody,
    HomeBody,
    InboundBody,
    InboundEvent,
    MembershipBody,
    MessageBody,
    MigrationBody,
    PressBody,
    Quote,
    ReactionBody,
)
from core.contracts.delivery import DeliveryStore
from core.contracts.errors import StoreError
from core.contracts.ids import ConversationId

DirectTarget: TypeAlias = Callable[[InboundEvent], Awaitable[ConversationId | None]]
"""The conversation a plain message may be queued for at once, or None for the long way."""

_CANNOT_STORE = "I cannot store messages right now, so I have not taken yours yet. I will as soon as I can."


class InboxSink:
    """Commits events before they are acknowledged.

    What cannot be stored is not acknowledged, so the platform keeps it; the person is told once
    an outage, past the outbox, which cannot be written either.
    """

    def __init__(
        self,
        direct_target: DirectTarget,
        delivery: DeliveryStore,
        channels: Mapping[str, Channel],
        clean: Callable[[str], str],
    ) -> None:
        self._direct_target = direct_target
        self._delivery = delivery
        self._clean = clean
        self._outage = OutageNotice(channels, _CANNOT_STORE)

    @property
    def failing(self) -> bool:
        """Whether the newest event could not be stored."""
        return self._outage.lasts

    async def accept(self, event: InboundEvent) -> None:
        sender = replace(event.sender, name=self._clean(event.sender.name))
        event = replace(event, sender=sender, body=cleaned(event.body, self._clean))
        try:
            await self._delivery.accept(event, conversation_id=await self._direct_target(event))
            if isinstance(event.body, MigrationBody):
                # At once: what is accepted next may be said under the new id, where it would be a stranger's group.
                await self._delivery.migrate_chat(event.address, event.body.chat)
        except StoreError:
            await self._outage.tell(event.address)
            raise
        self._outage.end()

    async def marks(self, channel: str, account: str) -> tuple[Mark, ...]:
        rows = await self._delivery.newest_of(channel, account)
        newest = {row.event.address: row.event.sent_at for row in rows}
        if newest:
            # Whatever is heard anywhere shows that the account was there until then.
            until = max(newest.values())
            for address in await self._delivery.bound_addresses(channel, account):
                newest.setdefault(address, until)
        return tuple(Mark(address=address, sent_at=sent_at) for address, sent_at in newest.items())


def cleaned(body: InboundBody, clean: Callable[[str], str]) -> InboundBody:
    """Return a body as it may be stored: no secret value, no text that cannot be written."""
    match body:
        case MessageBody():
            return replace(
                body,
                text=clean(body.text),
                quote=_cleaned_quote(body.quote, clean),
                forwarded_from=clean(body.forwarded_from),
                unsupported=clean(body.unsupported),
                attachments=tuple(replace(file, name=clean(file.name)) for file in body.attachments),
            )
        case EditBody():
            return replace(body, text=clean(body.text))
        case ReactionBody():
            return replace(body, emoji=tuple(clean(emoji) for emoji in body.emoji))
        case PressBody():
            return replace(body, values=tuple((name, clean(text)) for name, text in body.values))
        case CommandBody():
            return replace(body, text=clean(body.text))
        case DeleteBody() | HomeBody() | MembershipBody() | MigrationBody():
            return body


def _cleaned_quote(quote: Quote | None, clean: Callable[[str], str]) -> Quote | None:
    if quote is None:
        return None
    return replace(quote, text=clean(quote.text), author=clean(quote.author))


if TYPE_CHECKING:
    _conforms: type[Sink] = InboxSink
