"""What a turn opens with, and what enters it later: the host's reminders, then people's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from bot.conversations.pictures import PictureRoom, pictures_of
from bot.conversations.surroundings import Surroundings
from core.contracts.addresses import MessageBody
from core.contracts.agents import Agent, Conversation
from core.contracts.attachments import AttachmentStore, StoredAttachment
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore, InboxRow
from core.contracts.errors import InvalidInput
from core.contracts.ids import ConversationId, PersonId
from core.contracts.messages import ReminderPart, TextPart, UserPart
from core.contracts.people import PeopleStore
from core.contracts.runs import UserInput
from core.prompts.escaping import escape_user_text, one_line
from core.prompts.reminders import (
    fresh_reminders,
    permission_mode_reminder,
    sender_reminder,
    time_reminder,
    workspace_reminder,
)
from core.prompts.surroundings import (
    TRANSCRIPT_CHARS,
    attachments_reminder,
    forwarded_reminder,
    late_part_reminder,
    reply_reminder,
    spoken_reminder,
    steering_reminder,
    transcript_reminder,
    unsupported_reminder,
    waited_reminder,
)

_PAGE = 200


class Openings:
    """Composes what people said as a model reads it; knows per conversation which states were told already.

    What was told is read back from the transcript after a restart, so that a restart repeats
    nothing and breaks no prefix. What belongs to one message is told with it, always.
    """

    def __init__(
        self,
        *,
        backend: Backend,
        delivery: DeliveryStore,
        attachments: AttachmentStore,
        people: PeopleStore,
        clock: Clock,
        zone: ZoneInfo,
        clean: Callable[[str], str],
    ) -> None:
        self._backend = backend
        self._attachments = attachments
        self._people = people
        self._surroundings = Surroundings(delivery=delivery, people=people, zone=zone)
        self._clock = clock
        self._zone = zone
        self._clean = clean
        self._told: dict[ConversationId, dict[str, str]] = {}

    async def compose(
        self, rows: Sequence[InboxRow], *, agent: Agent, conversation: Conversation, waited: bool = False
    ) -> UserInput:
        """Return the input that opens a turn for these messages: one, or the parts of an album.

        `waited`: they came while the host was down.
        """
        states = [
            time_reminder(self._clock.now(), self._zone.key),
            permission_mode_reminder(conversation.permission_mode or agent.permission_mode),
            workspace_reminder(agent.workspace),
            *(_sender(row) for row in rows[-1:]),
        ]
        parts: list[UserPart] = [*await self._fresh(conversation.id, states)]
        if waited and rows:
            parts.append(self._waited(rows))
        parts += await self._around(rows, conversation.id)
        room = PictureRoom()
        for row in rows:
            parts += await self._message(row, room)
        return UserInput(parts=tuple(parts))

    async def steer(self, rows: Sequence[InboxRow], *, requester: PersonId | None) -> tuple[UserPart, ...]:
        """Return what enters a running turn of `requester`: queued messages of its conversation, any number.

        Each sender is named where the one before was another.
        """
        parts: list[UserPart] = []
        room = PictureRoom()
        for row in rows:
            if row.conversation_id is None:
                raise InvalidInput(f"inbox row {row.id} was never queued and cannot steer")
            person = await self._people.person_of(row.event.sender.identity)
            parts += await self._fresh(row.conversation_id, [_sender(row)])
            parts.append(steering_reminder(by_requester=person is not None and person.id == requester))
            parts += await self._around([row], row.conversation_id)
            parts += await self._message(row, room)
        return tuple(parts)

    def forget(self, conversation_id: ConversationId) -> None:
        """Read what the conversation was told from its transcript the next time."""
        self._told.pop(conversation_id, None)

    async def _fresh(self, conversation_id: ConversationId, states: Sequence[ReminderPart]) -> list[ReminderPart]:
        """Return the states that the conversation was not told yet, and count them as told."""
        told = await self._told_in(conversation_id)
        fresh = fresh_reminders(told, states)
        told.update({part.kind: part.text for part in fresh})
        return list(fresh)

    async def _around(self, rows: Sequence[InboxRow], conversation_id: ConversationId) -> list[ReminderPart]:
        return [self._cleaned(part) for part in await self._surroundings.reminders(rows, conversation_id)]

    async def _message(self, row: InboxRow, room: PictureRoom) -> list[UserPart]:
        """Return a message: what came with it, its images, then its words."""
        body = row.event.body
        if not isinstance(body, MessageBody):
            return []
        files = await self._attachments.attachments_of([row.id]) if body.attachments else ()
        pictures = await pictures_of(files, room)
        unheard = {file.id: f"It was not heard, because {file.unheard}." for file in files if file.unheard}
        late = await self._surroundings.is_late_part(row)
        reminders = [
            self._cleaned(part) for part in _with_message(body, files, {**unheard, **pictures.notes}, late=late)
        ]
        return [*reminders, *pictures.parts, TextPart(text=escape_user_text(self._clean(_words(body, files))))]

    def _waited(self, rows: Sequence[InboxRow]) -> ReminderPart:
        sent = [row.event.sent_at.astimezone(self._zone) for row in rows]
        return waited_reminder(min(sent), max(sent), self._clock.now().astimezone(self._zone))

    def _cleaned(self, part: ReminderPart) -> ReminderPart:
        """Return a reminder that quotes people without the secrets they told."""
        return replace(part, text=self._clean(part.text))

    async def _told_in(self, conversation_id: ConversationId) -> dict[str, str]:
        if conversation_id not in self._told:
            told: dict[str, str] = {}
            after = 0
            while page := await self._backend.list_messages(conversation_id, after_seq=after, limit=_PAGE):
                after = page[-1].seq
                for message in page:
                    told.update({part.kind: part.text for part in message.parts if isinstance(part, ReminderPart)})
            self._told[conversation_id] = told
        return self._told[conversation_id]


def _sender(row: InboxRow) -> ReminderPart:
    return sender_reminder(row.event.address, row.event.sender, row.event.privacy)


def _with_message(
    body: MessageBody, files: Sequence[StoredAttachment], notes: Mapping[str, str], *, late: bool
) -> Iterator[ReminderPart]:
    """Yield what the host has to say of one message."""
    if late:
        yield late_part_reminder()
    if body.quote is not None:
        yield reply_reminder(body.quote)
    if body.forwarded_from:
        yield forwarded_reminder(body.forwarded_from)
    if files:
        yield attachments_reminder(files, notes)
    heard = [file for file in files if file.transcript]
    if body.text.strip():
        yield from (transcript_reminder(file.name, file.transcript) for file in heard)
    elif heard:
        yield spoken_reminder([file.name for file in heard])
    if body.unsupported:
        yield unsupported_reminder(body.unsupported)


def _words(body: MessageBody, files: Sequence[StoredAttachment]) -> str:
    """Return what its sender said: wrote, or else spoke.

    A message without words is told by the names of its files: a transcript shows who spoke when by texts.
    """
    if body.text.strip():
        return body.text
    spoken = "\n\n".join(file.transcript[:TRANSCRIPT_CHARS] for file in files if file.transcript)
    if spoken:
        return spoken
    return f"[{', '.join(one_line(file.name) for file in body.attachments)}]" if body.attachments else body.text
