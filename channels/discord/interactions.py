"""Answers to presses, forms and commands: one first answer to each, in time, and what may follow it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Self

from channels.contract import Form, FormField
from channels.discord.errors import InteractionAnswered
from channels.discord.forms import modal
from channels.discord.inbound_interactions import QUESTION_FIELD, QUESTION_MARK, Kind, Ticket, read_ticket
from channels.discord.limits import Timing
from channels.discord.outbound import Payload, notices
from channels.discord.quiet import EPHEMERAL
from channels.discord.transport import DiscordApi
from channels.workers import Beside
from core.contracts.addresses import CommandBody, PressBody
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, SendLimited, SendRejected, SendUnknown

logger = logging.getLogger(__name__)

_MESSAGE = 4
_THINKING = {"type": 5, "data": {"flags": EPHEMERAL}}
_NOTED = {"type": 6}
"""docs.discord.com/developers/interactions/receiving-and-responding, read on 2026-11-30: what a first answer does."""

_LONGEST_LIMIT = timedelta(seconds=2)
"""Of the three seconds that Discord waits."""
_REMEMBERED = 2_000


class _Answer(Enum):
    """With what an interaction was answered at first."""

    SHOWN = "shown"
    THINKING = "thinking"
    NOTED = "noted"


@dataclass(slots=True)
class _State:
    """What is known of one interaction. One answer at a time: whoever answers holds the lock."""

    first: _Answer | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Interactions:
    """Answers each interaction within the three seconds that Discord waits, with the host's text or without one.

    The first answer to a press may be a form and nothing else may come before that, so a press gets
    a short grace. An interaction from before a restart is answered as far as Discord still takes it.
    """

    def __init__(self, api: DiscordApi, clock: Clock, timing: Timing) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._waiting = Beside()
        self._states: OrderedDict[str, _State] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._waiting.aclose()

    def expect(self, ticket: Ticket) -> None:
        """Begin the grace of what somebody just did; once for each."""
        if ticket.id not in self._states:
            self._state(ticket)
            self._waiting.begin(self._answer_later(ticket), name="interaction")

    async def answer(self, asked: PressBody | CommandBody, markdown: str) -> None:
        """Answer what somebody did; see `channels.contract.Channel.acknowledge`."""
        ticket = read_ticket(asked.acknowledge or "")
        if ticket is not None:
            await self.tell(ticket, markdown)

    async def tell(self, ticket: Ticket, markdown: str) -> None:
        """Show Markdown to whoever acted; an empty text ends Discord's waiting alone. Never raises."""
        state = self._state(ticket)
        try:
            async with state.lock:
                await self._tell(ticket, state, notices(markdown))
        except ChannelError as error:
            logger.info("discord_interaction_not_answered", extra={"kind": ticket.kind.value, "detail": error.detail})

    async def open_form(self, press: PressBody, form: Form) -> None:
        """Answer a press with a form.

        Raises:
            ChannelError: It came too late, or Discord does not take it.
        """
        ticket = read_ticket(press.acknowledge or "")
        if ticket is None or ticket.kind is not Kind.PRESS:
            raise SendRejected("a form can be opened for a press alone")
        await self._open(ticket, modal(form))

    async def ask_about(self, ticket: Ticket, message: str) -> None:
        """Answer with a form in which somebody asks about a message. Never raises."""
        asking = FormField(name=QUESTION_FIELD, label="What do you want to know?", lines=3)
        shown = modal(Form(token=message, title="Ask about this", fields=(asking,), send_label="Ask"))
        shown["data"]["custom_id"] = f"{QUESTION_MARK}{message}"
        try:
            await self._open(ticket, shown)
        except ChannelError as error:
            logger.info("discord_question_not_asked", extra={"detail": error.detail})

    async def _answer_later(self, ticket: Ticket) -> None:
        await self._clock.sleep(self._timing.press_grace)
        await self.tell(ticket, "")

    async def _open(self, ticket: Ticket, callback: Payload) -> None:
        state = self._state(ticket)
        async with state.lock:
            if state.first is not None:
                raise SendRejected("a form cannot be shown any more, as something else was")
            await self._begin(ticket, state, callback, _Answer.SHOWN)

    async def _tell(self, ticket: Ticket, state: _State, texts: Sequence[Payload]) -> None:
        if state.first is None:
            is_of_message = ticket.kind in {Kind.PRESS, Kind.FORM}
            try:
                if texts:
                    await self._begin(ticket, state, {"type": _MESSAGE, "data": texts[0]}, _Answer.SHOWN)
                    texts = texts[1:]
                elif is_of_message:
                    await self._begin(ticket, state, _NOTED, _Answer.NOTED)
                else:
                    await self._begin(ticket, state, _THINKING, _Answer.THINKING)
            except InteractionAnswered:
                # By this host, before it was started anew.
                state.first = _Answer.NOTED if is_of_message else _Answer.THINKING
        if state.first is _Answer.THINKING and texts:
            await self._api.edit_original(ticket.application, ticket.token, {"content": texts[0]["content"]})
            state.first, texts = _Answer.SHOWN, texts[1:]
        for text in texts:
            await self._api.follow_up(ticket.application, ticket.token, text)

    async def _begin(self, ticket: Ticket, state: _State, callback: Payload, answer: _Answer) -> None:
        """Give the first answer, a second time where a short limit refused it; one of unknown fate counts as given."""
        try:
            try:
                await self._api.respond(ticket.id, ticket.token, callback)
            except SendLimited as limited:
                if limited.retry_after > _LONGEST_LIMIT:
                    raise
                await self._clock.sleep(limited.retry_after)
                await self._api.respond(ticket.id, ticket.token, callback)
        except SendUnknown:
            state.first = answer
            raise
        state.first = answer

    def _state(self, ticket: Ticket) -> _State:
        state = self._states.setdefault(ticket.id, _State())
        self._states.move_to_end(ticket.id)
        if len(self._states) > _REMEMBERED:
            self._states.popitem(last=False)
        return state
