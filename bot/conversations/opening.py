"""What a turn opens with: the host's reminders, then the person's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from zoneinfo import ZoneInfo

from core.contracts.addresses import InboundEvent, MessageBody
from core.contracts.agents import Agent, Conversation
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.ids import ConversationId
from core.contracts.messages import ReminderPart, TextPart, UserPart
from core.contracts.runs import UserInput
from core.prompts.escaping import escape_user_text
from core.prompts.reminders import (
    fresh_reminders,
    permission_mode_reminder,
    sender_reminder,
    time_reminder,
    workspace_reminder,
)

_PAGE = 200


class Openings:
    """Composes turn openings; knows per conversation which reminders were already given.

    What was given is read back from the transcript after a restart, so that a restart repeats
    nothing and breaks no prefix.
    """

    def __init__(self, *, backend: Backend, clock: Clock, zone: ZoneInfo, clean: Callable[[str], str]) -> None:
        self._backend = backend
        self._clock = clock
        self._zone = zone
        self._clean = clean
        self._given: dict[ConversationId, dict[str, str]] = {}

    async def compose(self, events: Iterable[InboundEvent], *, agent: Agent, conversation: Conversation) -> UserInput:
        """Return the input that opens a turn for these messages of one sender."""
        events = tuple(events)
        given = await self._given_in(conversation.id)
        reminders = fresh_reminders(given, self._reminders(events, agent, conversation))
        given.update({part.kind: part.text for part in reminders})
        words: list[UserPart] = [
            TextPart(text=escape_user_text(self._clean(event.body.text)))
            for event in events
            if isinstance(event.body, MessageBody)
        ]
        return UserInput(parts=(*reminders, *words))

    def forget(self, conversation_id: ConversationId) -> None:
        """Read the conversation's reminders from its transcript the next time."""
        self._given.pop(conversation_id, None)

    def _reminders(
        self, events: tuple[InboundEvent, ...], agent: Agent, conversation: Conversation
    ) -> tuple[ReminderPart, ...]:
        reminders = [
            time_reminder(self._clock.now(), self._zone.key),
            permission_mode_reminder(conversation.permission_mode or agent.permission_mode),
            workspace_reminder(agent.workspace),
        ]
        if events:
            last = events[-1]
            reminders.append(sender_reminder(last.address, last.sender, last.privacy))
        return tuple(reminders)

    async def _given_in(self, conversation_id: ConversationId) -> dict[str, str]:
        if conversation_id not in self._given:
            given: dict[str, str] = {}
            after = 0
            while page := await self._backend.list_messages(conversation_id, after_seq=after, limit=_PAGE):
                after = page[-1].seq
                for message in page:
                    given.update({part.kind: part.text for part in message.parts if isinstance(part, ReminderPart)})
            self._given[conversation_id] = given
        return self._given[conversation_id]
