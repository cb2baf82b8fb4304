"""Books over real stores in memory, and turns that a test plays by hand, event by event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bot.conversations.local import OWNER, local_address
from bot.conversations.sessions.book import BookPorts, SessionBook
from bot.conversations.sessions.books import SessionBooks
from bot.conversations.sessions.protocol import CHANNEL
from core.contracts.addresses import InboundEvent, MessageBody, Privacy
from core.contracts.events import RunEvent, TextDelta
from core.contracts.ids import RunId, TurnId
from core.contracts.ledger import TurnEnd
from core.contracts.permissions import Approval, ApprovalState, Decision
from core.contracts.runs import Claim, Turn, TurnOutcome, TurnState
from core.secrets.redaction import ValueRedactor
from tests.core.stores.samples import (
    CONVERSATION,
    START,
    World,
    approval,
    assistant_message,
    events,
    open_world,
    run_end,
    run_start,
    seed,
    turn,
    user_message,
)

BOUND_SECONDS = 60
SECRET = "hunter" + "2" * 12
HERE = local_address(CHANNEL, CONVERSATION)


@dataclass
class Notebook:
    """A conversation with a session. `restart` forgets everything but the stores, as a killed host does."""

    world: World
    books: SessionBooks

    def restart(self) -> None:
        self.books = books_of(self.world)

    async def book(self) -> SessionBook:
        async with self.books.book(CONVERSATION) as book:
            return book

    async def says(self, input_id: str, text: str = "hi") -> bool:
        """Let a message be accepted, without a line of it."""
        event = InboundEvent(
            address=HERE,
            key=f"{CONVERSATION}/{input_id}",
            sender=OWNER,
            body=MessageBody(text=text),
            privacy=Privacy.DIRECT,
            sent_at=START,
        )
        return await self.world.stores.delivery.accept(event, conversation_id=CONVERSATION)

    async def lines(self) -> list[dict]:
        """Return all lines that are stored, each with its number."""
        stored = await self.world.stores.sessions.lines_after(CONVERSATION, 0)
        return [{"seq": line.seq, **json.loads(line.text)} for line in stored]

    async def kinds(self) -> list[str]:
        return [line["type"] for line in await self.lines()]

    async def begin(self, turn_id: str = "turn-1", *input_ids: str) -> PlayedTurn:
        """Begin a turn that takes these messages."""
        queued = await self.world.stores.delivery.queued(CONVERSATION)
        ids = [row.id for row in queued if row.event.key.rpartition("/")[2] in input_ids]
        begun = replace(turn(turn_id), origin=HERE)
        claim = await self.world.stores.ledger.begin_turn(begun, inbox_ids=ids, live=None)
        return PlayedTurn(self, claim, begun)


@dataclass
class PlayedTurn:
    """One turn in the hands of a test."""

    notebook: Notebook
    claim: Claim
    turn: Turn

    async def hears(self, *events) -> None:
        """Record events as the turn's worker does."""
        for event in events:
            await self.notebook.books.record(self.turn, event)

    async def step(self, number: int, *parts, said: str = "", deltas: tuple[str, ...] = ()) -> list[RunEvent]:
        """Take a whole step and return its events, unheard."""
        transcripts = self.notebook.world.stores.transcripts
        run_id = RunId(f"{self.turn.id}-run-{number}")
        opening = (user_message(said),) if said else ()
        start = run_start(run_id, *opening, request_id=f"{self.turn.id}/{number}")
        await transcripts.begin_run(self.claim, start)
        first = len(opening) + 1
        await transcripts.append_events(self.claim, events(run_id, first, *[TextDelta(text=piece) for piece in deltas]))
        message = assistant_message(*parts)
        await transcripts.finish_run(self.claim, run_end(message, run_id=run_id, first_seq=first + len(deltas)))
        return list(await transcripts.events(run_id))

    async def asks(self, call_id: str) -> Approval:
        """Open an approval for a call of the last step."""
        asked = replace(approval(f"apr-{call_id}", call_id), turn_id=self.turn.id, origin=HERE)
        await self.notebook.world.stores.ledger.open_approvals(self.claim, [asked], None)
        return asked

    async def decided(self, asked: Approval, *, approve: bool = True) -> None:
        decision = Decision(approve=approve, by=None, by_name="Ada", feedback="because")
        state = ApprovalState.APPROVED if approve else ApprovalState.DENIED
        await self.notebook.world.stores.ledger.decide(asked.id, decision, state, hash_shown=asked.hash, grant=None)

    async def end(self, outcome: TurnOutcome = TurnOutcome.COMPLETED) -> Turn:
        """Store the end of the turn, and let nobody hear of it."""
        ledger = self.notebook.world.stores.ledger
        await ledger.finish_turn(self.claim, TurnId(self.turn.id), TurnEnd(outcome=outcome, outgoing=()))
        self.turn = replace(self.turn, state=TurnState.FINISHED, outcome=outcome)
        return self.turn


def books_of(world: World) -> SessionBooks:
    stores = world.stores
    return SessionBooks(
        BookPorts(
            log=stores.sessions,
            ledger=stores.ledger,
            delivery=stores.delivery,
            transcripts=stores.transcripts,
            redactor=ValueRedactor([("password", SECRET)]),
            clock=world.clock,
        )
    )


@asynccontextmanager
async def opened() -> AsyncIterator[Notebook]:
    async with asyncio.timeout(BOUND_SECONDS), open_world(":memory:") as world:
        await seed(world)
        yield Notebook(world, books_of(world))
