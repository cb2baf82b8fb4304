"""What turn 10,000 of one conversation costs against turn 10, where both have as much to send.

In this process: the real wiring, database file and backend, a scripted model, a fake chat, a clock
that stands still, and no engine (this file rings the doorbells), so that what differs is the store's
work. All turns are of one conversation in one chat: its sequence numbers, runs, turns, inbox and
outbox grow. Its view would grow too, and with it the request, whatever the host does; that is
compaction's business and not asked here. So, every ten turns, the messages are moved to another
conversation, as a compaction takes them out of the view. What reads the whole past of a conversation
(the console, a takeover) is not part of a turn and not measured.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import update

from benchmarks.figures import MS, Figure
from benchmarks.scale import Scale
from benchmarks.targets import LATE_TURN
from core.contracts.agents import Audience
from core.contracts.ids import ConversationId
from core.models.scripted import ScriptedModel, says
from core.stores.connection import Database
from core.stores.tables.transcripts import MESSAGES
from tests.bot.conversations.hosting import Hosted, hosting

_KEPT_TURNS = 10
_WINDOW = 100


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    turns = scale.of(10_000, 500)
    with tempfile.TemporaryDirectory(prefix="lodger-bench-") as directory:
        place = Path(directory)
        database = await asyncio.to_thread(Database.open, place / "host.db")
        try:
            model = ScriptedModel(itertools.repeat(says("a short answer")))
            async with hosting(place, database=database, model=model) as host:
                took_ms, cpu_ms = await _series(host, turns)
        finally:
            await database.close()
    early, late = slice(_KEPT_TURNS, _KEPT_TURNS + _WINDOW), slice(-_WINDOW, None)
    for what, values in (("time", took_ms), ("processor", cpu_ms)):
        before, behind = statistics.median(values[early]), statistics.median(values[late])
        yield Figure(
            name=f"turn {turns:,} against turn {_KEPT_TURNS}: {what}",
            value=behind / before,
            unit="times",
            target=LATE_TURN,
            note=f"{before:.1f} to {behind:.1f} ms, medians of {_WINDOW} turns",
            digits=2,
        )


async def _series(host: Hosted, turns: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each turn, and those of the processor, all threads."""
    took_ms, cpu_ms = [], []
    past = (await host.backend.create_conversation(host.agent.id, Audience())).id
    for number in range(turns):
        began, used = time.perf_counter(), time.process_time()
        await host.says("a short question")
        took_ms.append((time.perf_counter() - began) * MS)
        cpu_ms.append((time.process_time() - used) * MS)
        if (number + 1) % _KEPT_TURNS == 0:
            await _shorten_view(host, past)
    assert len(host.channel.deliveries) == turns, "every turn is answered"
    return took_ms, cpu_ms


async def _shorten_view(host: Hosted, past: ConversationId) -> None:
    """Move the conversation's messages to another one."""
    here = MESSAGES.c.conversation_id == await host.conversation_id()
    move = update(MESSAGES).where(here).values(conversation_id=past)
    await host.stores.database.write(lambda tx: tx.connection.execute(move))
    host.model.requests.clear()
