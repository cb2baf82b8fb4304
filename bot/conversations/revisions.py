"""What becomes of a message that is changed, deleted or reacted to after it was accepted.

- One that no turn has taken is replaced in its place, or withdrawn.
- One whose new text is a command is withdrawn, and the command is run: it was meant as one. Whoever
  edits a command that was answered, or a message that became one, has to give it anew.
- One that was taken stays as it was said. Nothing is answered a second time; the next turn is told.
- Talk that was not for the agent does not become so by an edit.
"""

from __future__ import annotations

from dataclasses import replace

from bot.conversations.commands import parse_command
from bot.conversations.reception import Reception
from core.contracts.addresses import DeleteBody, EditBody, MessageBody, ReactionBody
from core.contracts.delivery import DeliveryStore, InboxRow, InboxState, chat_key

_LOOKED_BACK = 200
_WAITS = frozenset({InboxState.NEW, InboxState.QUEUED})


class Revisions:
    """Applies edits and deletions to what still waits, and brings reactions to their conversation."""

    def __init__(self, *, delivery: DeliveryStore, reception: Reception) -> None:
        self._delivery = delivery
        self._reception = reception

    async def edit(self, row: InboxRow, body: EditBody) -> None:
        """Apply an edit."""
        address, key = row.event.address, body.message_key
        if parse_command(body.text) is not None:
            state = await self._delivery.withdraw(address, key)
            if state in _WAITS or (state is InboxState.WITHDRAWN and not await self._was_edited(row, key)):
                meant = replace(row, event=replace(row.event, body=MessageBody(text=body.text)))
                await self._reception.receive([meant])
        elif body.text.strip() or await self._has_files(row, body):
            await self._delivery.revise(address, key, body.text)
        else:
            await self._delivery.withdraw(address, key)

    async def delete(self, row: InboxRow, body: DeleteBody) -> None:
        """Apply a deletion."""
        await self._delivery.withdraw(row.event.address, body.message_key)

    async def react(self, row: InboxRow, body: ReactionBody) -> None:
        """Bring a reaction to where its message stands: not every platform says in which thread that is.

        Decides nothing, whatever it looks like. The next turn there is told.
        """
        event = row.event
        shown = await self._delivery.shown_message(chat_key(event.address), body.message)
        if shown is not None and shown.item.address != event.address:
            placed = replace(event, address=shown.item.address, key=f"{event.key}/placed")
            await self._delivery.accept(placed, conversation_id=None)

    async def _was_edited(self, row: InboxRow, message_key: str) -> bool:
        """Whether an earlier edit withdrew the message; otherwise this one did, and a crash came behind it."""
        past = await self._delivery.inbox_of(row.event.address.key, limit=_LOOKED_BACK)
        return any(
            earlier.id < row.id
            and earlier.state is InboxState.DONE
            and isinstance(earlier.event.body, EditBody)
            and earlier.event.body.message_key == message_key
            for earlier in past
        )

    async def _has_files(self, row: InboxRow, body: EditBody) -> bool:
        past = await self._delivery.inbox_of(row.event.address.key, limit=_LOOKED_BACK)
        found = (earlier.event.body for earlier in past if earlier.event.key == body.message_key)
        return any(isinstance(message, MessageBody) and message.attachments for message in found)
