"""How much of a new conversation's first request some other conversation has sent before.

Three conversations begin on one host: the owner's, another of the owner's (the same audience), and
a guest's (another audience, with memory of its own). The share is given twice: of tools and system
prompt, which is what a cache can keep for all conversations, and of the whole request, which ends
with the reminders and words of the day. Behind the prefix the first of them is the time to the
minute: the whole is near 1 only because these conversations begin within one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks.figures import Figure
from benchmarks.prefixes import Body, common_chars, request_text, standing_text
from benchmarks.scale import Scale
from benchmarks.stage import open_stage
from benchmarks.targets import FIRST_REQUEST
from tests.acceptance.processes import OWNER, STRANGER


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    del scale
    for form in ("openai", "anthropic"):
        async with open_stage(form=form) as stage, stage.host():
            await stage.turn(OWNER)
            await stage.command(OWNER, "/new")
            await stage.turn(OWNER)
            await stage.turn(STRANGER)
            bodies = stage.model.bodies
        assert len(bodies) == 3, f"{len(bodies)} requests for three conversations"
        yield _standing(f"first request, {form} form, same audience: prefix", bodies[1], bodies[:1])
        yield _whole(f"first request, {form} form, same audience: whole", bodies[1], bodies[:1])
        yield _standing(f"first request, {form} form, other audience: prefix", bodies[2], bodies[:2])


def _standing(name: str, body: Body, earlier: list[Body]) -> Figure:
    text = standing_text(body)
    known = max(common_chars(text, standing_text(other)) for other in earlier)
    return _figure(name, known, len(text), "tools and system prompt")


def _whole(name: str, body: Body, earlier: list[Body]) -> Figure:
    text = request_text(body)
    known = max(common_chars(text, request_text(other)) for other in earlier)
    return _figure(name, known, len(text), "with reminders and words")


def _figure(name: str, known: int, length: int, what: str) -> Figure:
    note = f"{known:,} of {length:,} characters, {what}"
    return Figure(name=name, value=known / length, unit="", target=FIRST_REQUEST, note=note, digits=4)
