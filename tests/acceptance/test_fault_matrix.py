"""Every fault of the wire on every call to Telegram that a turn makes: one turn and one answer for each message.

A text may stand twice where the answer to the call that made it was lost, and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from core.sandbox.fake import FakeOutcome
from tests.acceptance.wired_host import asked
from tests.acceptance.wired_telegram import HASTY, PATIENT, Wired, wired
from tests.platforms.model_script import Answer, Call
from tests.platforms.telegram_faults import Fault

OWNER, FRIEND = 111, 333
SHORT_SECONDS, LONG_SECONDS, SLOW_SECONDS = 2.0, 149.0, 3.0
STEPS_OF_A_PAUSE = 60
"""Longer than a preview waits for the pace of its chat."""
LINE = "make report"
LONG_TEXT = "\n\n".join(f"Paragraph {number}: {'word ' * 150}".strip() for number in range(14))
"""Three messages."""


@dataclass(frozen=True)
class Trouble:
    """A fault with its numbers; `doubles`: what the call made may stand twice."""

    fault: Fault
    seconds: float = 0.0
    doubles: bool = False
    hasty: bool = False

    def __str__(self) -> str:
        return f"{self.fault}{f' {self.seconds:g} s' if self.seconds else ''}"


LOST_REQUEST = Trouble(Fault.LOST_REQUEST)
LOST_RESPONSE = Trouble(Fault.LOST_RESPONSE, doubles=True)
BROKEN = Trouble(Fault.ANSWERED)
SHORT_FLOOD = Trouble(Fault.FLOODED, seconds=SHORT_SECONDS)
SLOW = Trouble(Fault.SLOW, seconds=SLOW_SECONDS)
HALF_OPEN = Trouble(Fault.HALF_OPEN, hasty=True)
UNFORMATTED = Trouble(Fault.ENTITIES_REFUSED)
CALLS = (LOST_REQUEST, LOST_RESPONSE, BROKEN, SHORT_FLOOD, SLOW, HALF_OPEN)
TEXTS = (*CALLS, UNFORMATTED)
UPDATES = (*CALLS, Trouble(Fault.DUPLICATED), Trouble(Fault.REORDERED))


@dataclass(frozen=True)
class Story:
    """What a person does in chat 111 and what has to stand there in the end, oldest first."""

    name: str
    play: Callable[[Wired], Awaitable[None]]
    told: tuple[str, ...]
    """What each message of the bot says, or begins with, in the end."""
    script: Callable[[], tuple[object, ...]]


async def plain(run: Wired) -> None:
    run.telegram.user_says(OWNER, "hello")


async def streamed(run: Wired) -> None:
    """Let the text go on when its beginning was tried to be shown, and again when that was tried to be edited."""
    run.telegram.user_says(OWNER, "hello")
    first, second = run.model.script[0].gates[1], run.model.script[0].gates[2]
    await run.until(lambda: run.telegram.calls_of("sendMessage"))
    first.set()
    await run.until(either(lambda: run.telegram.calls_of("editMessageText"), asked(times=STEPS_OF_A_PAUSE)))
    second.set()


def either(*conditions: Callable[[], object]) -> Callable[[], bool]:
    return lambda: any(condition() for condition in conditions)


async def approved(run: Wired) -> None:
    run.telegram.user_says(OWNER, "do it")
    await run.until(lambda: [m for m in run.telegram.visible(OWNER) if "Approve" in m.buttons])
    card = next(m for m in run.telegram.visible(OWNER) if "Approve" in m.buttons)
    run.telegram.press(OWNER, card.id, card.buttons["Approve"])


def gated() -> tuple[Answer, ...]:
    gates = {1: asyncio.Event(), 2: asyncio.Event()}
    return (Answer(text=["It begins here", " and goes on", " and ends."], gates=gates),)


def called(name: str, **arguments: str) -> tuple[Answer, ...]:
    return Answer(calls=[Call("call-1", name, json.dumps(arguments))]), Answer(text="It is done.")


PLAIN = Story("plain", plain, ("The answer.",), lambda: (Answer(text="The answer."),))
LONG = Story("long", plain, ("Paragraph 0:", "Paragraph 5:", "Paragraph 10:"), lambda: (Answer(text=LONG_TEXT),))
STREAMED = Story("streamed", streamed, ("It begins here and goes on and ends.",), gated)
CARD = Story("card", approved, ("Approved by Alice", "It is done."), lambda: called("shell", command=LINE))
FILE = Story("file", plain, ("", "It is done."), lambda: called("send_file", path="report.txt"))

CELLS = [
    *[("sendMessage", story, trouble) for story in (PLAIN, LONG, STREAMED, CARD) for trouble in TEXTS],
    *[("editMessageText", story, trouble) for story in (STREAMED, CARD) for trouble in TEXTS],
    *[("sendChatAction", STREAMED, trouble) for trouble in CALLS],
    *[("getUpdates", PLAIN, trouble) for trouble in UPDATES],
    *[("answerCallbackQuery", CARD, trouble) for trouble in CALLS],
]


def named(cell: object) -> str:
    return cell.name if isinstance(cell, Story) else str(cell)


def opened(directory: Path, story: Story, trouble: Trouble | None = None):
    workspace = directory / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "report.txt").write_text("all is well")
    timing = HASTY if trouble is not None and trouble.hasty else PATIENT
    return wired(directory, *story.script(), timing=timing, outcomes={LINE: FakeOutcome(output=b"made")})


@pytest.mark.parametrize(("method", "story", "trouble"), CELLS, ids=named)
async def test_every_message_has_one_turn_and_one_answer_whatever_happens_to_a_call(tmp_path, method, story, trouble):
    async with opened(tmp_path, story, trouble) as run:
        await played(run, method, story, trouble)
        check_chat(run.texts(OWNER), story, doubled=trouble.doubles and method == "sendMessage")


@pytest.mark.parametrize("trouble", CALLS, ids=named)
async def test_a_file_is_shown_once_or_its_fate_is_told_and_the_answer_is_there(tmp_path, trouble):
    """A file is never sent again where it may have arrived: who asked is told so instead."""
    async with opened(tmp_path, FILE, trouble) as run:
        await played(run, "sendDocument", FILE, trouble)
        files = [message for message in run.telegram.visible(OWNER) if message.file is not None]
        texts = sorted(text for text in run.texts(OWNER) if text)
        unknown = trouble in {LOST_REQUEST, LOST_RESPONSE, BROKEN, HALF_OPEN}
        assert texts == (["It is done."] + ["It is not known whether report.txt arrived."] * unknown)
        assert len(files) == (not unknown or trouble is LOST_RESPONSE)
        assert len(run.telegram.calls_of("sendDocument")) == (1 if unknown or trouble is SLOW else 2)


async def played(run: Wired, method: str, story: Story, trouble: Trouble) -> None:
    """Play a story with a fault in it to its end: nothing is left to do then, and one turn was made."""
    planned = run.telegram.fault(method, trouble.fault, seconds=trouble.seconds)
    await story.play(run)
    await run.until(planned.entered.is_set)
    await run.until(lambda: story.told[-1] in run.texts(OWNER) or len(run.texts(OWNER)) >= len(story.told))
    await run.until_settled()
    turns = await run.turns_of_messages()
    assert len(turns) == 1
    assert None not in turns


def check_chat(shown: list[str], story: Story, *, doubled: bool) -> None:
    """What has to be told stands there in order, each text once; or one of them twice, where that may be."""
    if not doubled:
        assert [beginning(text, story) for text in shown] == list(story.told)
        if story is LONG:
            assert " ".join(shown).split() == LONG_TEXT.split()
        return
    kept = [text for text in shown if text.startswith(story.told)]
    assert {beginning(text, story) for text in kept} == set(story.told)
    left = [text for text in shown if text not in kept]
    assert len(shown) <= len(story.told) + 1
    # Nobody knows the id of a message whose making was not confirmed: it stays as it was then.
    assert all(text.startswith("May I run") or story.told[0].startswith(text) for text in left)


def beginning(text: str, story: Story) -> str:
    """Return what of a story a text tells."""
    known = [told for told in story.told if text.startswith(told)]
    assert known, text
    return known[0]


async def test_a_long_flood_limit_of_one_chat_is_waited_for_and_delays_nobody_else(tmp_path):
    """C15."""
    async with opened(tmp_path, PLAIN) as run:
        run.telegram.fault("sendMessage", Fault.FLOODED, seconds=LONG_SECONDS, chat_id=OWNER)
        run.telegram.user_says(OWNER, "hello")
        await run.until(lambda: run.telegram.calls_of("sendMessage", OWNER))
        await run.until(asked(times=STEPS_OF_A_PAUSE))
        (wait,) = (await run.deferred()).values()
        assert timedelta(seconds=LONG_SECONDS - 30) < wait <= timedelta(seconds=LONG_SECONDS)
        asked_at = run.clock.monotonic()
        run.telegram.user_says(FRIEND, "hello")
        await run.until(lambda: run.texts(FRIEND) == ["The answer."])
        assert run.clock.monotonic() - asked_at < LONG_SECONDS / 3
        assert run.texts(OWNER) == []
        await run.passes(timedelta(seconds=LONG_SECONDS))
        await run.until(lambda: run.texts(OWNER))
        await run.until_settled()
        first, second = run.telegram.calls_of("sendMessage", OWNER)
        assert second.at - first.at >= LONG_SECONDS
        assert run.texts(OWNER) == run.texts(FRIEND) == ["The answer."]


async def test_an_answer_whose_preview_was_deleted_is_posted_anew_and_once(tmp_path):
    """The edit finds no message any more."""
    async with opened(tmp_path, STREAMED) as run:
        run.telegram.user_says(OWNER, "hello")
        await run.until(lambda: run.texts(OWNER))
        (preview,) = run.telegram.visible(OWNER)
        run.telegram.delete(OWNER, preview.id)
        for gate in run.model.script[0].gates.values():
            gate.set()
        await run.until(lambda: run.texts(OWNER) == list(STREAMED.told))
        await run.until_settled()
        assert run.texts(OWNER) == list(STREAMED.told)


@pytest.mark.parametrize("fault", [Fault.DUPLICATED, Fault.REORDERED])
async def test_a_batch_of_updates_told_twice_or_in_no_order_is_answered_in_order_and_once(tmp_path, fault):
    story = Story("many", plain, (), lambda: (lambda body: Answer(text=f"You said {said(body)}."),))
    words = ["one", "two", "three"]
    async with opened(tmp_path, story) as run:
        await run.until(lambda: run.telegram.updates.is_polled)
        planned = run.telegram.fault("getUpdates", fault, times=2)
        for word in words:
            run.telegram.user_says(OWNER, word)
        await run.until(planned.entered.is_set)
        await run.until(lambda: any("three" in text for text in run.texts(OWNER)))
        await run.until_settled()
        asked_for = [said(body) for body in run.model.bodies]
        assert asked_for == sorted(asked_for, key=words.index)
        assert len(run.texts(OWNER)) == len(set(await run.turns_of_messages())) == len(asked_for)
        assert len(await run.turns_of_messages()) == len(words)


def said(body) -> str:
    """Return the last word that a person said."""
    blocks = [message["content"] for message in body["messages"] if message["role"] == "user"][-1]
    told = [blocks] if isinstance(blocks, str) else [block["text"] for block in blocks]
    return next(text for text in reversed(told) if not text.startswith("<system-")).split()[-1]
