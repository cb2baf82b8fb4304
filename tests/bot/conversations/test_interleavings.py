"""Whatever order messages, stops, decisions and crashes come in: each message is in one turn, and nothing breaks."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.contracts.delivery import CONVERSATION_QUEUE, InboxState
from core.contracts.errors import StoreUnavailable
from core.models.scripted import ScriptedModel, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.turns.loop import TurnLoop
from tests.acceptance.invariants.transcripts import faults_of
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, OPAL, Hosted, chat, hosting
from tests.bot.conversations.queueing import fresh_worker, heard, looks, open_conversation, queue, still_queued
from tests.core.turns.dying import Dying

THERE = chat("111", "7")
PEOPLE, PLACES = (ALICE, OPAL, MIKE), (HERE, THERE)
DEATHS = (
    ("ledger", "begin_turn"),
    ("ledger", "steer_turn"),
    ("ledger", "add_progress"),
    ("ledger", "record_verdicts"),
    ("ledger", "open_approvals"),
    ("ledger", "start_call"),
    ("ledger", "finish_call"),
    ("ledger", "park_turn"),
    ("ledger", "resume_turn"),
    ("ledger", "finish_turn"),
    ("backend", "start_run"),
    ("backend", "settle"),
)


@dataclass(frozen=True)
class Says:
    """Somebody writes somewhere."""

    who: int
    where: int


@dataclass(frozen=True)
class Works:
    """A worker advances the conversation, and may die on the way."""

    death: tuple[str, str] | None
    behind: bool
    passes: int


@dataclass(frozen=True)
class Stops:
    """Somebody stops what is open."""


@dataclass(frozen=True)
class Decides:
    """Somebody decides what is asked."""

    approve: bool


@dataclass(frozen=True)
class Pauses:
    """Somebody pauses the conversation, or lets it go on."""

    paused: bool


Happening: TypeAlias = Says | Works | Stops | Decides | Pauses

HAPPENINGS = st.lists(
    st.one_of(
        st.builds(Says, who=st.sampled_from([0, 0, 1, 2]), where=st.sampled_from([0, 0, 0, 1])),
        st.builds(Says, who=st.sampled_from([0, 0, 1, 2]), where=st.sampled_from([0, 0, 0, 1])),
        st.builds(
            Works,
            death=st.one_of(st.none(), st.sampled_from(DEATHS)),
            behind=st.booleans(),
            passes=st.integers(0, 2),
        ),
        st.builds(Stops),
        st.builds(Decides, approve=st.booleans()),
        st.builds(Pauses, paused=st.booleans()),
    ),
    min_size=3,
    max_size=14,
)
ANSWERS = st.lists(st.sampled_from(["look", "look", "shell", "say"]), min_size=1, max_size=8)


def model_of(answers: list[str]) -> ScriptedModel:
    """Return a model that answers in this order, and then says no more than a word."""
    numbers = itertools.count(1)

    def step(kind: str):
        def played(request):
            number = next(numbers)
            match kind:
                case "look":
                    return asks(looks(f"look-{number}"), text=f"Look {number}.")
                case "shell":
                    return asks(tool_call(f"sh-{number}", "shell", f'{{"command":"make {number}"}}'))
                case _:
                    return says(f"Said {number}.")

        return played

    return ScriptedModel([*map(step, answers), *[step("say")] * 200])


async def happen(host: Hosted, happening: Happening, said: list[tuple[str, str]]) -> None:
    conversation_id = await host.conversation_id()
    match happening:
        case Says(who=who, where=where):
            text = f"message {len(said) + 1}."
            said.append((PEOPLE[who].identity, text))
            await queue(host, text, who=PEOPLE[who], where=PLACES[where])
        case Works(death=death, behind=behind, passes=passes):
            with suppress(StoreUnavailable, ExceptionGroup):
                await worker_of(host, death, behind=behind, passes=passes).advance(conversation_id)
        case Stops():
            await host.stores.ledger.request_cancel(conversation_id, by=None)
        case Decides(approve=approve):
            for approval in (await host.open_approvals())[:1]:
                await host.app.api.decide(approval.id, "approve" if approve else "deny", by="Alice")
        case Pauses(paused=paused):
            conversation = await host.backend.get_conversation(conversation_id)
            await host.stores.transcripts.update_conversation(replace(conversation, paused=paused))


def worker_of(host: Hosted, death: tuple[str, str] | None, *, behind: bool, passes: int):
    if death is None:
        return fresh_worker(host)
    port, name = death
    dying = Dying(getattr(host.app.worker._ports, port), name, behind=behind, passes=passes)
    loop = TurnLoop(replace(host.app.worker._ports.loop._services, **{port: dying}))
    return fresh_worker(host, loop=loop, **{port: dying})


async def comes_to_rest(host: Hosted) -> None:
    """Let the conversation go on, with every question approved, until nothing waits."""
    await happen(host, Pauses(paused=False), [])
    await host.settle()
    for _ in range(20):
        await host.ring(CONVERSATION_QUEUE, await host.conversation_id())
        await host.settle()
        if not await host.open_approvals() and not await still_queued(host):
            return
        await happen(host, Decides(approve=True), [])
    raise AssertionError("it comes to no rest")


async def play(happenings: list[Happening], answers: list[str]) -> None:
    said: list[tuple[str, str]] = []
    made = {f"make {number}": FakeOutcome(output=b"made") for number in range(300)}
    with tempfile.TemporaryDirectory() as folder:
        async with hosting(Path(folder), model=model_of(answers), outcomes=made) as host:
            await open_conversation(host)
            for happening in (Says(who=0, where=0), *happenings):
                await happen(host, happening, said)
            await comes_to_rest(host)
            await check(host, said)


async def check(host: Hosted, said: list[tuple[str, str]]) -> None:
    told = [text for message in await heard(host) for text in message.splitlines()]
    assert sorted(told) == sorted(text for _, text in said), "each message is heard once"
    for person in PEOPLE:
        own = [text for identity, text in said if identity == person.identity]
        assert [text for text in told if text in own] == own, "each person's messages keep their order"
    rows = [row for place in PLACES for row in await host.stores.delivery.inbox_of(place.key)]
    assert all(row.turn_id is not None and row.state is InboxState.DONE for row in rows)
    assert faults_of(await host.transcript()) == []
    assert set(Counter(host.commands).values()) <= {1}, "no command runs twice"
    assert await host.open_turn() is None


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(HAPPENINGS, ANSWERS)
def test_no_order_of_events_loses_doubles_or_reorders_a_message(happenings, answers):
    """Invariants 2, 3 and 11."""
    asyncio.run(asyncio.wait_for(play(happenings, answers), 60))
