"""A day of many people on one platform: a model that answers by what it was asked, and the account at the end.

Every message of a day carries a tag such as `q017`, and so does the answer to it: `Re q017: ...`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from pathlib import Path
from typing import Any

from sqlalchemy import select

from bot.agents import ensure_agents
from bot.app import _running
from bot.config.live import LiveSettings
from bot.config.model import Channels
from bot.wiring.assembly import assemble
from core.backends.local.backend import LocalBackend
from core.contracts.addresses import MessageBody
from core.contracts.agents import PermissionMode
from core.contracts.clock import FakeClock
from core.contracts.delivery import InboxRow, InboxState
from core.contracts.ledger import CallState
from core.engines.embedded import EmbeddedEngine
from core.memory.fake import FakeMemoryStore
from core.models.direct import DirectClient
from core.sandbox.fake import FakeOutcome, FakeSandbox
from core.secrets.redaction import ValueRedactor
from core.stores.connection import Database
from core.stores.records import inbox_from
from core.stores.sql import sql_stores
from core.stores.tables.delivery import INBOX
from core.stores.tables.ledger import TOOL_CALLS, TURNS
from core.stores.work_items import SqlWorkItems
from core.turns.outcomes import OUTCOMES, TurnOutcome
from tests.acceptance.telegram_talk import blocks
from tests.acceptance.wired_host import OpenChannel, WiredHost, wired_settings
from tests.bot.conversations.hosting import _parts
from tests.platforms.model_script import Answer, Call, Reply, Status, Step
from tests.platforms.openai_server import OpenAIServer

NAMES = (
    *("CARL", "DORA", "EMIL", "FAY", "GUS", "HAL", "IDA", "JON", "KIM"),
    *("LEA", "MAX", "NED", "ONA", "PIA", "REX", "SUE", "TOM", "UTE"),
)
"""Who there is besides Alice and Bob."""

TAG = re.compile(r"\bq\d{3}\b")
ANSWERED = re.compile(r"Re (q\d{3}):")
ERROR_NOTICE = OUTCOMES[TurnOutcome.ERROR].notice


_ENDED = {CallState.DONE, CallState.DENIED, CallState.UNKNOWN}


class Fate(Enum):
    """What has to become of a message."""

    ANSWERED = auto()
    FAILED = auto()
    """Its turn ends with a visible error."""
    STOPPED = auto()
    """Its turn is cancelled, which is said."""
    WITHDRAWN = auto()
    """It was deleted before a turn took it."""
    UNHEARD = auto()
    """It was not for the agent, or of somebody who may not talk to it."""


@dataclass
class Said:
    """One message of a day. `place` is where its answer belongs, `fate` what has to become of it."""

    tag: str
    id: Any
    place: str
    fate: Fate = Fate.ANSWERED
    words: str = ""
    """What the answer has to repeat; empty: it does not matter."""


class Mind:
    """A model that has replies for some tags, and repeats what was said with all others."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._replies: dict[str, list[Step]] = {}

    def on(self, tag: str, *replies: Step) -> None:
        """Give these replies, one after the other, in the turn that a message with this tag opens."""
        self._replies[tag] = list(replies)

    def __call__(self, body: dict[str, Any]) -> Reply:
        self.bodies.append(body)
        said = newest_said(body)
        for tag in tags_of(said):
            if left := self._replies.get(tag):
                reply = left.pop(0)
                return reply(body) if callable(reply) else reply
        return answer_to(body)

    def asked(self, tag: str) -> list[dict[str, Any]]:
        """Return the requests of turns in which a message with this tag was said."""
        return [body for body in self.bodies if tag in tags_of(newest_said(body))]


def newest_said(body: Mapping[str, Any]) -> list[str]:
    """Return what people said in the newest turn of a request; reminders are left out."""
    said: list[str] = []
    for message in reversed(body["messages"]):
        if message["role"] == "assistant" and not message.get("tool_calls"):
            break
        if message["role"] == "user":
            said = [text for text in blocks(message) if not text.startswith("<system-")] + said
    return said


def answer_to(body: Mapping[str, Any]) -> Answer:
    """Return an answer that repeats what people said, line by line."""
    return Answer(text="\n".join(f"Re {tag}: {text}" for text in newest_said(body) for tag in tags_of([text])[:1]))


def tags_of(texts: Iterable[str]) -> list[str]:
    return [tag for text in texts for tag in TAG.findall(text)]


def shell(tag: str, line: str) -> Answer:
    """Return a step that asks for one line of shell; its call id tells whose it is."""
    return Answer(calls=[Call(f"call-{tag}", "shell", json.dumps({"command": line}))])


def held(gate: asyncio.Event, *calls: Call) -> Step:
    """Return a step that repeats what was said, or makes these calls, once the gate is open."""

    def step(body: dict[str, Any]) -> Answer:
        return replace(Answer(text="One moment.", calls=calls) if calls else answer_to(body), gates={0: gate})

    return step


BROKEN = Status(400, '{"error": {"message": "the model is unwell", "type": "invalid_request_error"}}')
"""A step that fails for good."""


class DayHost(WiredHost):
    """A host of a day."""

    async def pending(self) -> list[str]:
        """Return what is left to do, as rows; what was withdrawn is done with."""
        return [row for row in await super().pending() if not row.endswith(f": {InboxState.WITHDRAWN}")]


@dataclass(repr=False)
class Premises:
    """What outlives the hosts of a day: the database and the workspace in `directory`, memory, time, the model's mind.

    `ran` are the shell lines that ran in hosts that have ended.
    """

    directory: Path
    clock: FakeClock = field(default_factory=FakeClock)
    mind: Mind = field(default_factory=Mind)
    ran: list[str] = field(default_factory=list)
    outcomes: dict[str, FakeOutcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._memory = FakeMemoryStore(self.clock)

    @asynccontextmanager
    async def host_at_work(
        self, open_channel: OpenChannel, *, channels: Channels, owners: Sequence[str], people: Sequence[str] = ()
    ) -> AsyncIterator[DayHost]:
        """Run a host for the length of the block, on what the one before left behind; it ends in a hurry."""
        async with AsyncExitStack() as stack:
            model = await stack.enter_async_context(OpenAIServer([self.mind]))
            database = await asyncio.to_thread(Database.open, self.directory / "host.db")
            stack.push_async_callback(database.close)
            engine = EmbeddedEngine(SqlWorkItems(database), self.clock)
            stores = sql_stores(database, submit=engine.submit, clock=self.clock)
            redactor = ValueRedactor()
            client = DirectClient(resolve_key=lambda _: None, mask=redactor.mask)
            stack.push_async_callback(client.aclose)
            backend = await stack.enter_async_context(
                LocalBackend(
                    store=stores.transcripts, memory=self._memory, model=client, clock=self.clock, mask=redactor.mask
                )
            )
            mode = PermissionMode.ASK
            settings = wired_settings(self.directory, model.base_url, people, owners, mode, channels)
            await ensure_agents(settings, backend, lambda path: path.mkdir(parents=True, exist_ok=True))
            channel = await stack.enter_async_context(open_channel(redactor.mask))
            sandbox = FakeSandbox(self.outcomes, clock=self.clock)
            stack.callback(lambda: self.ran.extend(command.argv[-1] for command in sandbox.commands))
            parts = _parts(stores, self._memory, sandbox, client, backend, channel, redactor, self.clock)
            host = assemble(LiveSettings(settings), replace(parts, engine=engine))
            hurry = asyncio.Event()
            await stack.enter_async_context(_running(host, hurry))
            stack.callback(hurry.set)
            yield DayHost(host=host, stores=stores, model=model, clock=self.clock)


@dataclass(frozen=True)
class Shown:
    """One message of the bot as it stands in the end."""

    place: str
    text: str


@dataclass
class Books:
    """What the database says at the end of a day: messages, turns and calls."""

    rows: list[InboxRow]
    outcomes: dict[str, str]
    calls: list[Any] = field(default_factory=list)

    def of(self, tag: str) -> list[InboxRow]:
        """Return the messages with that tag that were accepted."""
        bodies = [(row, row.event.body) for row in self.rows]
        return [row for row, body in bodies if isinstance(body, MessageBody) and tag in tags_of([body.text])]


async def books_of(run: WiredHost) -> Books:
    """Read the books of a host."""

    def operation(connection) -> Books:
        return Books(
            rows=[inbox_from(row) for row in connection.execute(select(INBOX).order_by(INBOX.c.id))],
            outcomes={row.id: row.outcome for row in connection.execute(select(TURNS.c.id, TURNS.c.outcome))},
            calls=list(connection.execute(select(TOOL_CALLS.c.call_id, TOOL_CALLS.c.state))),
        )

    return await run.stores.database.read(operation)


def account(said: Iterable[Said], shown: list[Shown], books: Books, *, notices: Iterable[str]) -> list[str]:
    """Return what is wrong with a day; empty where every message got what it has to.

    A message that is to be answered has one turn, and one answer where it was asked; others have no
    answer anywhere. A turn belongs to messages of one person. Beside answers there is one message for
    each of `notices`, which begins so, and no other. Every call has come to its end.
    """
    said = list(said)
    wrong = [line for one in said for line in _faults_of(one, shown, books)]
    known = {one.tag for one in said}
    wrong += [f"answer to nothing in {one.place}: {one.text!r}" for one in shown if set(_answered(one)) - known]
    senders = {turn: {r.event.sender.identity for r in books.rows if r.turn_id == turn} for turn in books.outcomes}
    wrong += [f"turn {turn} is of {of or 'nobody'}" for turn, of in senders.items() if len(of) != 1]
    wrong += [f"call {call.call_id} is {call.state}" for call in books.calls if call.state not in _ENDED]
    return wrong + _unlike(notices, [one.text for one in shown if not _answered(one)])


def spoiled(shown: list[Shown]) -> list[list[Shown]]:
    """Return a day's messages as they must not be: one doubled, left out, elsewhere, or too much."""
    answer = next(one for one in shown if _answered(one))
    rest = [one for one in shown if one is not answer]
    return [[*shown, answer], rest, [*rest, replace(answer, place="elsewhere")], [*shown, Shown(answer.place, "Done.")]]


def _unlike(notices: Iterable[str], texts: list[str]) -> list[str]:
    """Return the notices that nothing begins with, and the texts that are none of them."""
    left, missing = list(texts), []
    for notice in notices:
        found = next((text for text in left if (text.startswith(notice) if notice else not text)), None)
        if found is None:
            missing.append(f"nowhere: {notice!r}")
        else:
            left.remove(found)
    return missing + [f"too much: {text!r}" for text in left]


def _faults_of(one: Said, shown: list[Shown], books: Books) -> list[str]:
    places = [message.place for message in shown for tag in _answered(message) if tag == one.tag]
    rows = books.of(one.tag)
    turns = [row.turn_id for row in rows if row.turn_id is not None]
    outcomes = [books.outcomes[turn] for turn in turns]
    states = [row.state for row in rows]
    facts = f"{one.tag} {one.fate.name}: answered in {places}, rows {states}, turns {outcomes}"
    match one.fate:
        case Fate.ANSWERED:
            texts = [message.text for message in shown if one.tag in _answered(message)]
            fine = places == [one.place] and outcomes == ["completed"] and one.words in texts[0]
        case Fate.FAILED:
            errors = [m for m in shown if m.place == one.place and ERROR_NOTICE in m.text]
            fine = not places and outcomes == ["error"] and len(errors) == 1
        case Fate.STOPPED:
            stopped = [m for m in shown if m.place == one.place and "Stopped." in m.text]
            fine = outcomes == ["cancelled"] and len(stopped) == 1
        case Fate.WITHDRAWN:
            fine = not places and not turns and states in ([InboxState.WITHDRAWN], [])
        case Fate.UNHEARD:
            fine = not places and not turns
    return [] if fine else [facts]


def _answered(message: Shown) -> list[str]:
    return ANSWERED.findall(message.text)
