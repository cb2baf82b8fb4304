"""What happened at an address since the agent last took a message there: overheard talk, later changes.

All of it is read from the inbox: events that are done and that no turn took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from bot.conversations.albums import album_of
from bot.conversations.changes import Revision, reactions_in, revisions_in, text_before
from core.contracts.addresses import CardContent, FileContent, MessageBody, OutboundContent, Privacy, TextContent
from core.contracts.delivery import DeliveryStore, InboxRow, InboxState, chat_key, place_key
from core.contracts.ids import ConversationId
from core.contracts.messages import ReminderPart
from core.contracts.people import PeopleStore
from core.prompts.surroundings import Saying, changes_reminder, deleted, edited, overheard_reminder, reacted

_PAST = 500
"""In how many of an address's newest events a message is looked for; an older one changes unnoticed."""


class Surroundings:
    """Tells what happened around messages, each thing once ever."""

    def __init__(self, *, delivery: DeliveryStore, people: PeopleStore, zone: ZoneInfo) -> None:
        self._delivery = delivery
        self._people = people
        self._zone = zone

    async def reminders(self, rows: Sequence[InboxRow], conversation_id: ConversationId) -> list[ReminderPart]:
        """Return what there is to tell before these messages of one address."""
        since = await self._since(rows)
        revisions = revisions_in(since)
        talk = [row for row in since if _is_overheard(row)]
        changes = await self._changes(rows, revisions, {row.event.key for row in talk}, conversation_id)
        changes += [await self._reaction(row, body.emoji, body.message) for row, body in reactions_in(since)]
        told = [changes_reminder([text for text in changes if text])] if any(changes) else []
        heard = [self._overheard(row, revisions.get(row.event.key)) for row in talk]
        sayings = [saying for saying in heard if saying is not None]
        return [*told, overheard_reminder(sayings)] if sayings else told

    async def is_late_part(self, row: InboxRow) -> bool:
        """Return whether a message belongs to an album of which a turn has taken the rest before."""
        album = album_of(row)
        if album is None:
            return False
        past = await self._delivery.inbox_of(row.event.address.key, limit=_PAST)
        taken = {
            (part.turn_id, part.step)
            for part in past
            if part.id < row.id and part.turn_id is not None and album_of(part) == album
        }
        return bool(taken - {(row.turn_id, row.step)})

    async def _since(self, rows: Sequence[InboxRow]) -> list[InboxRow]:
        """Return what no turn took, since the agent was last told and since an owner let it listen."""
        found: dict[int, InboxRow] = {}
        for row in rows:
            # Each asks for itself: whether those before it are marked as taken yet makes no difference.
            since = await self._delivery.since_last_turn(row.event.address.key, before=row.id)
            found |= {earlier.id: earlier for earlier in since}
        if found and rows[0].event.privacy is not Privacy.DIRECT:
            place = await self._people.place(place_key(rows[0].event.address))
            found = {key: row for key, row in found.items() if place is not None and row.received_at >= place.at}
        return [found[key] for key in sorted(found)]

    async def _changes(
        self,
        rows: Sequence[InboxRow],
        revisions: Mapping[str, Revision],
        overheard: set[str],
        conversation_id: ConversationId,
    ) -> list[str]:
        """Return what became of messages that the agent knows; an edit that changes no text is none."""
        if not revisions.keys() - overheard:
            return []
        past = await self._delivery.inbox_of(rows[0].event.address.key, limit=_PAST)
        told = []
        for message in past:
            revision = revisions.get(message.event.key)
            if revision is None or message.event.key in overheard or not _was_told(message, conversation_id):
                continue
            before = text_before(message, revision, past)
            if revision.text is None:
                told.append(deleted(self._saying(message, before)))
            elif revision.text.strip() != before.strip():
                told.append(edited(self._saying(message, before), revision.text))
        return told

    async def _reaction(self, row: InboxRow, emoji: Sequence[str], message: str) -> str:
        """Return what somebody's reaction is now; empty where it is none to a message of the agent here."""
        shown = await self._delivery.shown_message(chat_key(row.event.address), message)
        if shown is None or shown.item.address != row.event.address:
            return ""
        return reacted(self._saying(row, ""), emoji, _shown_text(shown.item.content))

    def _overheard(self, row: InboxRow, revision: Revision | None) -> Saying | None:
        """Return what was said, as it reads now; None where its sender took it back."""
        body = row.event.body
        if not isinstance(body, MessageBody) or (revision is not None and revision.text is None):
            return None
        text = body.text if revision is None or revision.text is None else revision.text
        files = [f"[file: {file.name}]" for file in body.attachments]
        missed = [f"[{body.unsupported}]"] if body.unsupported else []
        return self._saying(row, "\n".join(filter(None, [text, *files, *missed])))

    def _saying(self, row: InboxRow, text: str) -> Saying:
        sender = row.event.sender
        at = row.event.sent_at.astimezone(self._zone)
        return Saying(name=sender.name, identity=sender.identity, at=at, text=text, is_bot=sender.is_bot)


def _is_overheard(row: InboxRow) -> bool:
    """Whether an event is talk around the agent: group talk, or another bot's, that it did not answer."""
    body = row.event.body
    return (
        isinstance(body, MessageBody)
        and row.event.privacy is not Privacy.DIRECT
        and row.turn_id is None
        and row.state is InboxState.DONE
        and (row.event.sender.is_bot or not body.addressed)
    )


def _was_told(message: InboxRow, conversation_id: ConversationId) -> bool:
    """Whether the agent got to know a message in this conversation: it took it, or overheard it."""
    if message.turn_id is not None:
        return message.conversation_id == conversation_id
    return _is_overheard(message)


def _shown_text(content: OutboundContent) -> str:
    match content:
        case TextContent(markdown=text) | CardContent(text=text) | FileContent(name=text):
            return text
        case _:
            return ""
