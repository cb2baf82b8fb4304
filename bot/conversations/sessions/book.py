"""One conversation's lines: what happens is stored as a line, once, before anybody is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from bot.control.wire import plain
from bot.conversations.local import local_address
from bot.conversations.sessions import lines
from bot.conversations.sessions.clients import Clients
from bot.conversations.sessions.protocol import CHANNEL, Withdrawal
from bot.conversations.sessions.told import Told, ToldTurn, read_told
from bot.conversations.telling import LiveTeller, event_json, masked, turn_messages, turn_result
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore
from core.contracts.errors import ToolError
from core.contracts.events import MessageStored, RunEvent
from core.contracts.ids import CallId, ConversationId, TurnId
from core.contracts.ledger import CallState, TurnLedger
from core.contracts.messages import Role
from core.contracts.permissions import ApprovalState
from core.contracts.runs import Turn, TurnState
from core.contracts.secrets import Redactor
from core.contracts.sessions import SessionLog
from core.contracts.store import TranscriptStore
from core.turns.observer import ApprovalsOpened, CallFinished, TurnEvent

Line = Mapping[str, Any]

_UNKNOWN = "Whether it took effect is unknown; it was not repeated."
_NO_ANSWER = {
    Withdrawal.TIMEOUT: f"The program that runs this tool did not answer in time. {_UNKNOWN}",
    Withdrawal.DISCONNECTED: f"The program that runs this tool went away after it was asked. {_UNKNOWN}",
}
_NOT_ASKED = "The program that runs this tool is not connected. It was not asked, and nothing was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class BookPorts:
    """What books stand on."""

    log: SessionLog
    ledger: TurnLedger
    delivery: DeliveryStore
    transcripts: TranscriptStore
    redactor: Redactor
    clock: Clock


class SessionBook:
    """The only writer of a conversation's lines.

    It knows what was told from the stored lines alone. Where a host died between something that
    happened and its line, the line follows when the book is opened again; an event that is replayed
    to the next worker is recognised by its run and number.
    """

    def __init__(self, conversation_id: ConversationId, ports: BookPorts) -> None:
        self._id = conversation_id
        self._ports = ports
        self._lock = asyncio.Lock()
        self._told: Told | None = None
        self._teller = LiveTeller(ports.redactor)
        self._grown = asyncio.Event()
        self.clients = Clients(ports.clock)

    @property
    def tells_a_turn(self) -> bool:
        """Whether the beginning of a turn was told, and not its end."""
        return self._told is not None and self._told.open_turn is not None

    async def read(self) -> Told:
        """Return what was told so far, with what a dead host had still to tell."""
        async with self._writing() as told:
            return told

    async def follow(self, after: int) -> AsyncGenerator[Sequence[str], None]:
        """Yield the lines behind number `after` as they are told, in order; whoever follows is connected."""
        with self.clients.connected():
            while True:
                grown = self._grown
                page = await self._ports.log.lines_after(self._id, after)
                if page:
                    after = page[-1].seq
                    yield tuple(lines.numbered(stored) for stored in page)
                else:
                    await grown.wait()

    async def say(self, line: Line) -> None:
        """Tell one line."""
        async with self._writing() as told:
            await self._tell(told, [line])

    async def take(self, input_id: str, accept: Callable[[], Awaitable[bool]]) -> None:
        """Accept a message and tell that it is queued; nothing of its turn is told before."""
        async with self._writing() as told:
            is_new = await accept()
            await self._tell(told, [lines.queued(input_id, duplicate=not is_new)])

    async def record(self, turn: Turn, event: TurnEvent | None) -> None:
        """Tell an event of a turn of this conversation; None: it has ended, and its end is stored."""
        async with self._writing() as told:
            known = await self._begun(told, turn)
            if event is None:
                await self._end(told, known, turn)
                return
            asks = isinstance(event, ApprovalsOpened) or bool(known.open_approvals)
            happened = [
                *(await self._steered(known, turn) if _may_hold_messages(event) else ()),
                *(await self._approvals(known, turn) if asks else ()),
                *self._events(known, event),
            ]
            await self._tell(told, happened)

    async def approvals_changed(self) -> None:
        """Tell which of the open turn's questions were opened or have ended meanwhile."""
        async with self._writing() as told:
            turn = await self._ports.ledger.open_turn(self._id)
            if turn is not None:
                known = await self._begun(told, turn)
                await self._tell(told, await self._approvals(known, turn))

    async def ask(self, call_id: CallId, name: str, arguments: Mapping[str, Any]) -> str:
        """Have the client run one of its tools, and return what the model reads.

        Raises:
            ToolError: The tool failed, was not asked, or its end is not known; says which.
            asyncio.CancelledError: The client was told that the answer is not wanted any more.
        """
        if name not in {tool.name for tool in (await self.read()).tools}:
            raise ToolError(f"The tool {name!r} is not offered any more. Nothing was done.")
        try:
            answer = await self.clients.ask(call_id, partial(self.say, lines.tool_request(call_id, name, arguments)))
        except asyncio.CancelledError:
            await self._withdraw(call_id, Withdrawal.CANCELLED)
            raise
        if answer is None:
            raise ToolError(_NOT_ASKED)
        if isinstance(answer, Withdrawal):
            await self._withdraw(call_id, answer)
            raise ToolError(_NO_ANSWER[answer])
        if answer.is_error:
            raise ToolError(answer.text)
        return answer.text

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Told]:
        """Hold the book alone, with what was told so far."""
        async with self._lock:
            try:
                if self._told is None:
                    self._told = await read_told(self._ports.log, self._id)
                    await self._catch_up(self._told)
                yield self._told
            except BaseException:
                # What of it was stored is not known for sure: the next writer reads it.
                self._told = None
                raise

    async def _tell(self, told: Told, happened: Sequence[Line]) -> None:
        if not happened:
            return
        clean = [masked(line, self._ports.redactor) for line in happened]
        stored = await self._ports.log.append_lines(self._id, [lines.stored_text(line) for line in clean])
        for line, row in zip(clean, stored, strict=True):
            told.note(row.seq, line)
        self._grown.set()
        self._grown = asyncio.Event()

    async def _catch_up(self, told: Told) -> None:
        """Tell what an earlier host did and could not tell any more."""
        known = told.open_turn
        if known is not None:
            await self._tell(told, await self._ended_calls(known))
            turn = await self._ports.ledger.turn(TurnId(known.id))
            await self._tell(told, await self._approvals(known, turn))
            if turn.state is TurnState.FINISHED:
                await self._end(told, known, turn)
        latest = await self._ports.ledger.latest_turn(self._id) if told.last_seq else None
        if latest is not None and latest.state is TurnState.FINISHED and _is_ours(latest):
            await self._end(told, await self._begun(told, latest), latest)

    async def _ended_calls(self, known: ToldTurn) -> list[Line]:
        """Return how calls ended that an earlier host had begun: with a stored result, or as nobody's any more."""
        results = {
            record.call.id: record.result
            for record in await self._ports.ledger.calls_of_turn(TurnId(known.id))
            if record.state is CallState.DONE and record.result is not None
        }
        untold = [results[CallId(c)] for c in sorted(known.started_calls - known.finished_calls) if c in results]
        dead = known.open_requests - results.keys() - self.clients.open_requests
        return [
            *filter(None, (event_json(CallFinished(result=result)) for result in untold)),
            *(lines.tool_withdrawn(call, Withdrawal.HOST_STOPPED) for call in sorted(dead)),
        ]

    async def _begun(self, told: Told, turn: Turn) -> ToldTurn:
        """Return what was told of a turn; that it has begun is told first."""
        if told.turn is None or told.turn.id != turn.id:
            inputs = await self._inputs(turn, first_step=True)
            await self._tell(told, [lines.turn_started(turn, inputs, tools_seq=told.tools_seq)])
        return told.turn_of(turn.id)

    async def _end(self, told: Told, known: ToldTurn, turn: Turn) -> None:
        """Tell how a turn ended, and before that what of it no event said; once."""
        if known.has_ended:
            return
        redactor, transcripts = self._ports.redactor, self._ports.transcripts
        messages = await turn_messages(transcripts, turn, after_seq=max(0, known.first_message - 1))
        usage = plain(await transcripts.usage_since(turn.id))
        happened = [
            *await self._steered(known, turn),
            *await self._approvals(known, turn),
            *(lines.stored_message(message) for message in messages if message.seq > known.last_message),
            {**turn_result(turn, messages, redactor), "usage": usage},
        ]
        await self._tell(told, happened)

    def _events(self, known: ToldTurn, event: TurnEvent) -> Iterator[Line]:
        """Yield the lines of an event, but for what was told before the host stopped."""
        if isinstance(event, CallFinished) and event.result.call_id in known.finished_calls:
            return
        if isinstance(event, RunEvent) and event.seq == 1:
            self._teller = LiveTeller(self._ports.redactor)
        for told in self._teller.tell(event):
            line = lines.run_line(told)
            if "run_seq" not in line or line["run_seq"] > known.runs.get(line["run_id"], 0):
                yield line

    async def _steered(self, known: ToldTurn, turn: Turn) -> list[Line]:
        entered = [each for each in await self._inputs(turn) if each not in known.inputs]
        return [lines.steered(turn, entered)] if entered else []

    async def _approvals(self, known: ToldTurn, turn: Turn) -> list[Line]:
        approvals = await self._ports.ledger.approvals_of(turn.id)
        told = known.open_approvals | known.settled_approvals
        return [
            *(lines.approval_opened(each) for each in approvals if each.id not in told),
            *(
                lines.approval_settled(each)
                for each in approvals
                if each.state is not ApprovalState.OPEN and each.id not in known.settled_approvals
            ),
        ]

    async def _inputs(self, turn: Turn, *, first_step: bool = False) -> list[str]:
        """Return the ids of clients' messages that are in a turn."""
        here = local_address(CHANNEL, self._id)
        rows = await self._ports.delivery.taken(turn.id)
        ours = [row for row in rows if row.event.address == here and (row.step == 0 or not first_step)]
        return [row.event.key.removeprefix(f"{self._id}/") for row in ours]

    async def _withdraw(self, call_id: CallId, reason: Withdrawal) -> None:
        async with self._writing() as told:
            if told.turn is not None and call_id in told.turn.open_requests:
                await self._tell(told, [lines.tool_withdrawn(call_id, reason)])


def _may_hold_messages(event: TurnEvent) -> bool:
    """Whether an event says that something of a person's was stored."""
    return (
        isinstance(event, RunEvent) and isinstance(event.body, MessageStored) and event.body.message.role is Role.USER
    )


def _is_ours(turn: Turn) -> bool:
    return turn.origin is not None and turn.origin.channel == CHANNEL
