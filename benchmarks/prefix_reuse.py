"""Which share of each request is the request before it, unchanged; breaks beside their recorded reasons.

A real host in each provider form goes through plain talk, tools, memory commits by the agent, by
its owner and by somebody else, changes of the permission mode, a new conversation, and a restart.
Requests are compared as the fake server received them, block by block, cache markers left out; the
reasons come from the run events in the host's database.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.prefixes import Body, common_chars, request_text
from benchmarks.scale import Scale
from benchmarks.stage import Stage, open_stage
from benchmarks.targets import PREFIX
from tests.acceptance.processes import OWNER, STRANGER
from tests.platforms.model_script import Answer, Call

_FORMS = ("openai", "anthropic")
_RUNS = """
    SELECT runs.conversation_id, json_extract(run_events.body, '$.reason')
    FROM runs LEFT JOIN run_events
      ON run_events.run_id = runs.id AND json_extract(run_events.body, '$.type') = 'prompt_recompiled'
    ORDER BY runs.started_at, runs.rowid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two requests of one conversation that follow each other; `reason` is the recorded one for a break."""

    before: str
    after: str
    reason: str

    @property
    def share(self) -> float:
        """How much of the earlier request the later one begins with."""
        return common_chars(self.before, self.after) / len(self.before)


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    del scale
    results = await asyncio.gather(*(_pairs(form) for form in _FORMS))
    for form, pairs in zip(_FORMS, results, strict=True):
        for figure in _figures(form, pairs):
            yield figure


async def _pairs(form: str) -> list[Pair]:
    async with open_stage(form=form, files={"plan.txt": "ship it\n", "notes.txt": "nothing yet\n"}) as stage:
        async with stage.host():
            await _before_the_restart(stage)
        async with stage.host():
            await _after_the_restart(stage)
        refused = [seen.refusal for seen in stage.model.requests if seen.refusal]
        assert not refused, f"the {form} server refused requests: {refused[:1]}"
        return pairs_of(stage.model.bodies, recorded_runs(stage.place.data / "host.db"))


async def _before_the_restart(stage: Stage) -> None:
    await stage.turn(OWNER)
    await stage.turn(OWNER, answers=_with_call("read", path="plan.txt"))
    await stage.turn(OWNER, answers=_with_call("memory_write", **_new_file("learned.md", "agent")))
    await stage.turn(OWNER)
    await stage.command(OWNER, "/remember the owner drinks tea")
    await stage.turn(OWNER)
    await stage.turn(STRANGER)
    await stage.command(STRANGER, "/remember a guest drinks coffee")
    await stage.turn(OWNER)
    await stage.command(OWNER, "/mode unrestricted")
    await stage.turn(OWNER, answers=_with_call("shell", command="wc -l plan.txt"))
    await stage.command(OWNER, "/mode ask")
    await stage.turn(OWNER, answers=_with_call("read", "glob", path="notes.txt", pattern="*.txt"))
    await stage.turn(STRANGER)


async def _after_the_restart(stage: Stage) -> None:
    await stage.turn(OWNER)
    await stage.turn(OWNER, answers=_with_call("memory_write", **_new_file("later.md", "agent, later")))
    await stage.turn(STRANGER)
    await stage.command(OWNER, "/new")
    await stage.turn(OWNER, words="this begins another conversation")
    await stage.turn(OWNER)


_ARGUMENTS = {
    "read": ("path",),
    "glob": ("pattern",),
    "shell": ("command",),
    "memory_write": ("message", "changes"),
}


_call_numbers = itertools.count(1)


def _with_call(*tools: str, **arguments: object) -> list[Answer]:
    """Return a silent step with one call of each tool, and the text that ends the turn."""
    number = next(_call_numbers)
    calls = [
        Call(f"call_{number}_{tool}", tool, json.dumps({name: arguments[name] for name in _ARGUMENTS[tool]}))
        for tool in tools
    ]
    return [Answer(calls=calls), Answer(text=f"Done with step {number}.")]


def _new_file(path: str, text: str) -> dict[str, object]:
    change = {"kind": "create", "path": path, "text": f"Written by the {text}.", "description": "What was learned"}
    return {"message": f"learn: {path}", "changes": [change]}


def recorded_runs(database: Path) -> list[tuple[str, str]]:
    """Return each run's conversation, oldest run first, and why its prompt was compiled afresh, if it was."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return [(conversation, reason or "") for conversation, reason in connection.execute(_RUNS)]


def pairs_of(bodies: list[Body], runs: list[tuple[str, str]]) -> list[Pair]:
    """Return neighbouring requests of each conversation; one request is one run."""
    assert len(bodies) == len(runs), f"{len(bodies)} requests, {len(runs)} runs"
    by_conversation: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for body, (conversation, reason) in zip(bodies, runs, strict=True):
        by_conversation[conversation].append((request_text(body), reason))
    return [
        Pair(before=before, after=after, reason=reason)
        for requests in by_conversation.values()
        for (before, _), (after, reason) in itertools.pairwise(requests)
    ]


def _figures(form: str, pairs: list[Pair]) -> list[Figure]:
    assert pairs, "nothing was compared"
    kept = [pair for pair in pairs if not pair.reason]
    broken = [pair for pair in pairs if pair.share < 1]
    unexplained = [pair for pair in broken if not pair.reason]
    told = [f"{pair.share:.3f} ({pair.reason or 'no reason recorded'})" for pair in broken]
    return [
        Figure(
            name=f"prefix kept, {form} form: mean share",
            value=sum(pair.share for pair in kept) / len(kept),
            unit="",
            target=PREFIX,
            note=f"{len(kept)} pairs without a recorded break; smallest {min(pair.share for pair in kept):.3f}",
            digits=4,
        ),
        Figure(
            name=f"prefix kept, {form} form: breaks",
            value=len(broken),
            unit="",
            note=f"of {len(pairs)} pairs; without a reason: {len(unexplained)}" + "".join(f"; {text}" for text in told),
            digits=0,
        ),
    ]
