"""Every fault of the wire on every call to Slack that a turn makes: one turn and one answer for each message.

No text stands twice, whatever is lost: what an unknown send left behind is found by its metadata. Only
the beginning of an answer may stay above it, where the answer to the call that first showed it was lost.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from channels.slack.limits import Timing
from core.sandbox.fake import FakeOutcome
from tests.acceptance.wired_host import asked
from tests.acceptance.wired_slack import WiredSlack, wired_slack
from tests.platforms.model_script import Answer, Call
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_message import Message
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, BOB_DM, ROOM

SHORT_SECONDS, LONG_SECONDS, SLOW_SECONDS = 2.0, 149.0, 3.5
"""What is slow is slower than a trigger lives."""
STEPS_OF_A_PAUSE = 60
"""Longer than a preview waits for the pace of its channel."""
LINE = "make report"
LONG_TEXT = "\n\n".join(f"Paragraph {number}: {'word ' * 150}".strip() for number in range(10))
"""Three messages."""
AT_ONCE = Timing(preview_delay=timedelta(hours=1))
"""Answers get no preview."""
GROWING = Timing()
IMPATIENT = timedelta(seconds=0.7)
"""For calls that are never answered: the machine's own time passes until one counts as lost."""


@dataclass(frozen=True)
class Trouble:
    """A fault with its numbers."""

    fault: Fault
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.fault}{f' {self.seconds:g} s' if self.seconds else ''}"


LOST_REQUEST = Trouble(Fault.LOST_REQUEST)
LOST_RESPONSE = Trouble(Fault.LOST_RESPONSE)
BROKEN = Trouble(Fault.ANSWERED)
SHORT_FLOOD = Trouble(Fault.FLOODED, seconds=SHORT_SECONDS)
SLOW = Trouble(Fault.SLOW, seconds=SLOW_SECONDS)
HALF_OPEN = Trouble(Fault.HALF_OPEN)
CALLS = (LOST_REQUEST, LOST_RESPONSE, BROKEN, SHORT_FLOOD, SLOW, HALF_OPEN)


@dataclass(frozen=True)
class Story:
    """What Alice does in her direct messages, and what of the bot's has to stand there in the end, oldest first."""

    name: str
    play: Callable[[WiredSlack], Awaitable[None]]
    told: tuple[str, ...]
    """What each message of the bot says, or begins with, in the end."""
    script: Callable[[], tuple[Answer, ...]]
    timing: Timing = AT_ONCE
    ran: int = 0
    """How many commands run."""


async def plain(run: WiredSlack) -> None:
    run.slack.user_says(ALICE_DM, ALICE, "hello")


async def streamed(run: WiredSlack) -> None:
    """Let the text go on when its beginning was tried to be shown, and again when that was tried to be prolonged."""
    await plain(run)
    first, second = run.model.script[0].gates[1], run.model.script[0].gates[2]
    await run.until(lambda: run.slack.calls_of("chat.startStream"))
    first.set()
    prolonged = either(
        lambda: run.slack.calls_of("chat.appendStream"),
        lambda: run.slack.calls_of("chat.update"),
        asked(times=STEPS_OF_A_PAUSE),
    )
    await run.until(prolonged)
    second.set()


async def edited(run: WiredSlack) -> None:
    """The same where Slack takes no streams: it is posted and edited."""
    run.slack.refuse_next("chat.startStream", "channel_type_not_supported", times=STEPS_OF_A_PAUSE)
    await streamed(run)


async def approved(run: WiredSlack) -> None:
    await plain(run)
    card = await card_of(run)
    run.slack.presses(ALICE, ALICE_DM, card.ts, "Approve")


async def denied_with_a_reason(run: WiredSlack) -> None:
    """Who is told that the form could not be opened presses again, and uses what opened in the end."""
    await plain(run)
    card = await card_of(run)
    run.slack.presses(ALICE, ALICE_DM, card.ts, "Deny…")
    await run.until(lambda: run.slack.calls_of("views.open"))
    await run.until(lambda: run.slack.views.opened(ALICE) or run.slack.ephemeral(ALICE_DM, ALICE))
    if not run.slack.views.opened(ALICE):
        assert "press again" in run.slack.ephemeral(ALICE_DM, ALICE)[0].text
        run.slack.presses(ALICE, ALICE_DM, card.ts, "Deny…")
        await run.until(lambda: run.slack.views.opened(ALICE))
    run.slack.submits(ALICE, {"reason": "keep it"})


async def card_of(run: WiredSlack) -> Message:
    """Wait for the question whether a command may run."""
    await run.until(lambda: cards(run))
    return cards(run)[0]


def cards(run: WiredSlack) -> list[Message]:
    return [message for message in run.slack.visible(ALICE_DM) if "Approve" in message.buttons]


def either(*conditions: Callable[[], object]) -> Callable[[], bool]:
    return lambda: any(condition() for condition in conditions)


def gated() -> tuple[Answer, ...]:
    gates = {1: asyncio.Event(), 2: asyncio.Event()}
    return (Answer(text=["It begins here", " and goes on", " and ends."], gates=gates),)


def called(name: str, **arguments: str) -> tuple[Answer, ...]:
    return Answer(calls=[Call("call-1", name, json.dumps(arguments))]), Answer(text="It is done.")


def shell() -> tuple[Answer, ...]:
    return called("shell", command=LINE)


WHOLE = "It begins here and goes on and ends."
PLAIN = Story("plain", plain, ("The answer.",), lambda: (Answer(text="The answer."),))
LONG = Story("long", plain, ("Paragraph 0:", "Paragraph 4:", "Paragraph 8:"), lambda: (Answer(text=LONG_TEXT),))
STREAMED = Story("streamed", streamed, (WHOLE,), gated, timing=GROWING)
EDITED = Story("edited", edited, (WHOLE,), gated, timing=GROWING)
CARD = Story("card", approved, ("Approved by alice at", "It is done."), shell, ran=1)
FORM = Story("form", denied_with_a_reason, ("Denied by alice at", "It is done."), shell)
FILE = Story("file", plain, ("It is done.",), lambda: called("send_file", path="report.txt"))

CELLS = [
    *[("chat.postMessage", PLAIN, trouble) for trouble in CALLS],
    *[("chat.postMessage", LONG, trouble) for trouble in (LOST_RESPONSE,)],
    *[("chat.postMessage", EDITED, trouble) for trouble in (LOST_RESPONSE, SHORT_FLOOD)],
    *[("chat.postMessage", CARD, trouble) for trouble in (LOST_RESPONSE, BROKEN)],
    *[("chat.update", EDITED, trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, BROKEN, SHORT_FLOOD)],
    *[("chat.update", CARD, trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, SHORT_FLOOD)],
    *[("chat.startStream", STREAMED, trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, SHORT_FLOOD, HALF_OPEN)],
    *[("chat.appendStream", STREAMED, trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, SHORT_FLOOD, SLOW)],
    *[("chat.stopStream", STREAMED, trouble) for trouble in (LOST_RESPONSE, BROKEN, SHORT_FLOOD, HALF_OPEN)],
    *[("views.open", FORM, trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, SHORT_FLOOD, SLOW)],
    *[("respond", CARD, trouble) for trouble in (LOST_RESPONSE, BROKEN, HALF_OPEN)],
]
"""Kinds of calls with what differs for them; not everything by everything."""
FIRST_SHOWN = {("chat.startStream", STREAMED), ("chat.postMessage", EDITED)}
"""What shows the beginning of an answer first."""
TIMES = {("chat.update", EDITED): 2}
"""How often a call fails, where not once: the preview's edit, and then the answer's."""


def named(cell: object) -> str:
    return cell.name if isinstance(cell, Story) else str(cell)


def opened(directory: Path, story: Story, trouble: Trouble | None = None):
    timing = story.timing if trouble is not HALF_OPEN else replace(story.timing, answer_timeout=IMPATIENT)
    workspace = directory / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "report.txt").write_text("all is well")
    return wired_slack(directory, *story.script(), timing=timing, outcomes={LINE: FakeOutcome(output=b"made")})


@pytest.mark.parametrize(("method", "story", "trouble"), CELLS, ids=named)
async def test_every_message_has_one_turn_and_one_answer_whatever_happens_to_a_call(tmp_path, method, story, trouble):
    async with opened(tmp_path, story, trouble) as run:
        times = TIMES.get((method, story), 1)
        planned = run.slack.fault(method, trouble.fault, seconds=trouble.seconds, times=times)
        await story.play(run)
        await run.until(planned.entered.is_set)
        await to_its_end(run, story)
        may_leave = trouble is LOST_RESPONSE and (method, story) in FIRST_SHOWN
        check_chat(run.texts(ALICE_DM), story, left_above=int(may_leave))
        assert len(told_to_alice(run, "Approved.")) <= 1


async def to_its_end(run: WiredSlack, story: Story) -> None:
    """Wait until the answer is there and nothing is left to do; there was one turn, and no call ran twice."""
    await run.until(lambda: any(text.startswith(story.told[-1]) for text in run.texts(ALICE_DM)))
    await run.until_settled()
    turns = await run.turns_of_messages()
    assert len(turns) == 1
    assert None not in turns
    assert [command.argv[-1] for command in run.host.sandbox.commands] == [LINE] * story.ran


def check_chat(shown: list[str], story: Story, *, left_above: int = 0) -> None:
    """What has to be told stands there in order, each text once.

    Above it so many messages may be left, and no more, that show its beginning and whose id nobody knows.
    """
    surplus = min(left_above, max(0, len(shown) - len(story.told)))
    left, kept = shown[:surplus], shown[surplus:]
    assert [beginning(text, story) for text in kept] == list(story.told)
    assert all(len(text) < len(story.told[0]) and story.told[0].startswith(text) for text in left)
    if story is LONG:
        assert " ".join(kept).split() == LONG_TEXT.split()


def beginning(text: str, story: Story) -> str:
    """Return what of a story a text tells."""
    known = [told for told in story.told if text.startswith(told)]
    assert known, text
    return known[0]


def told_to_alice(run: WiredSlack, told: str) -> list[str]:
    return [message.text for message in run.slack.ephemeral(ALICE_DM, ALICE) if told in message.text]


@pytest.mark.parametrize(
    ("method", "trouble"),
    [
        ("upload", LOST_RESPONSE),
        *[("files.completeUploadExternal", trouble) for trouble in (LOST_REQUEST, LOST_RESPONSE, SHORT_FLOOD)],
    ],
    ids=named,
)
async def test_a_file_is_shown_once_or_its_fate_is_told_and_the_answer_is_there(tmp_path, method, trouble):
    """A file whose post was lost is not posted again: who asked is told so instead."""
    async with opened(tmp_path, FILE, trouble) as run:
        planned = run.slack.fault(method, trouble.fault, seconds=trouble.seconds)
        await plain(run)
        await run.until(planned.entered.is_set)
        await to_its_end(run, FILE)
        files = [file.name for message in run.slack.visible(ALICE_DM) for file in message.files]
        texts = sorted(text for text in run.texts(ALICE_DM) if text)
        unknown = (method, trouble) == ("files.completeUploadExternal", LOST_REQUEST)
        assert texts == ["It is done."] + ["It is not known whether report.txt arrived."] * unknown
        assert files == ["report.txt"] * (not unknown)


@pytest.mark.parametrize("trouble", [LOST_REQUEST, BROKEN, SHORT_FLOOD], ids=named)
async def test_a_text_is_not_sent_again_while_slack_cannot_be_asked_whether_it_arrived(tmp_path, trouble):
    async with opened(tmp_path, PLAIN) as run:
        run.slack.fault("chat.postMessage", Fault.LOST_RESPONSE)
        looking = run.slack.fault("conversations.replies", trouble.fault, seconds=trouble.seconds, times=2)
        await plain(run)
        await run.until(looking.entered.is_set)
        await to_its_end(run, PLAIN)
        check_chat(run.texts(ALICE_DM), PLAIN)
        assert len(run.slack.calls_of("chat.postMessage")) == 1


async def test_a_long_flood_limit_of_one_channel_is_waited_for_and_delays_nobody_else(tmp_path):
    """C15."""
    async with opened(tmp_path, PLAIN) as run:
        run.slack.fault("chat.postMessage", Fault.FLOODED, seconds=LONG_SECONDS, channel=ROOM)
        run.slack.user_says(ROOM, ALICE, "<@U0BOT> hello")
        await run.until(lambda: run.slack.calls_of("chat.postMessage", ROOM))
        await run.until(asked(times=STEPS_OF_A_PAUSE))
        (wait,) = (await run.deferred()).values()
        assert timedelta(seconds=LONG_SECONDS - 30) < wait <= timedelta(seconds=LONG_SECONDS)
        asked_at = run.clock.monotonic()
        run.slack.user_says(ALICE_DM, ALICE, "hello")
        await run.until(lambda: run.texts(ALICE_DM) == ["The answer."])
        assert run.clock.monotonic() - asked_at < LONG_SECONDS / 3
        assert run.texts(ROOM) == []
        await run.passes(timedelta(seconds=LONG_SECONDS))
        await run.until(lambda: run.texts(ROOM))
        await run.until_settled()
        first, second = run.slack.calls_of("chat.postMessage", ROOM)
        assert second.at - first.at >= LONG_SECONDS
        assert run.texts(ROOM) == run.texts(ALICE_DM) == ["The answer."]


async def test_a_long_flood_limit_of_streams_delays_no_answer_anywhere(tmp_path):
    """C15: while Slack takes no streams, answers are posted and edited."""
    async with wired_slack(tmp_path, *gated(), *gated(), timing=GROWING) as run:
        began_at = run.clock.monotonic()
        run.slack.flood("chat.startStream", LONG_SECONDS)
        for channel, user, answer in ((ALICE_DM, ALICE, run.model.script[0]), (BOB_DM, BOB, run.model.script[1])):
            run.slack.user_says(channel, user, "hello")
            await run.until(lambda channel=channel: run.texts(channel))
            for gate in answer.gates.values():
                gate.set()
            await run.until(lambda channel=channel: run.texts(channel) == [WHOLE])
        await run.until_settled()
        assert run.clock.monotonic() - began_at < LONG_SECONDS / 3
        assert len(run.slack.calls_of("chat.startStream")) == 1
        assert len(await run.turns_of_messages()) == 2


@pytest.mark.parametrize("story", [STREAMED, EDITED], ids=named)
async def test_an_answer_whose_preview_was_deleted_is_posted_anew_and_once(tmp_path, story):
    """The edit finds no message any more."""
    async with opened(tmp_path, story) as run:
        if story is EDITED:
            run.slack.refuse_next("chat.startStream", "channel_type_not_supported")
        await plain(run)
        await run.until(lambda: run.texts(ALICE_DM))
        (preview,) = run.slack.visible(ALICE_DM)
        run.slack.user_deletes(ALICE_DM, preview.ts)
        for gate in run.model.script[0].gates.values():
            gate.set()
        await to_its_end(run, story)
        check_chat(run.texts(ALICE_DM), story)


WORDS = ("one", "two", "three")


def repeats(body) -> Answer:
    return Answer(text=f"You said {' and '.join(said(body))}.")


def said(body) -> list[str]:
    """Return what was said behind the last answer."""
    words: list[str] = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            words.clear()
        elif message["role"] == "user":
            content = message["content"]
            blocks = [content] if isinstance(content, str) else [block["text"] for block in content]
            words += [text.split()[-1] for text in blocks if not text.startswith("<system-")]
    return words


async def all_told(run: WiredSlack) -> None:
    """Wait until Slack knows that each of its events arrived, and nothing is left to do."""
    await run.until(lambda: not run.slack.deliveries.waiting and not run.slack.deliveries.unacked())
    await run.until_settled()


@pytest.mark.parametrize("fault", [Fault.DUPLICATED, Fault.REORDERED, Fault.SLOW, Fault.LOST_REQUEST])
async def test_messages_told_twice_late_or_in_no_order_are_answered_once_each_where_they_stand(tmp_path, fault):
    """Each comes by two events besides: as a message and as a mention."""
    async with wired_slack(tmp_path, repeats, timing=AT_ONCE) as run:
        await run.until(lambda: run.slack.sockets.is_open)
        run.slack.fault("envelope", fault, seconds=SLOW_SECONDS, times=len(WORDS))
        roots = [run.slack.user_says(ROOM, ALICE, f"<@U0BOT> {word}") for word in WORDS]
        if fault is Fault.LOST_REQUEST:
            run.slack.redeliver()
        await run.until(lambda: all(run.texts(ROOM, root) for root in roots))
        await all_told(run)
        assert [run.texts(ROOM, root) for root in roots] == [[f"You said {word}."] for word in WORDS]
        turns = await run.turns_of_messages()
        assert len(turns) == len(set(turns)) == len(WORDS)


@pytest.mark.parametrize("fault", [Fault.DUPLICATED, Fault.REORDERED])
async def test_messages_of_one_thread_told_twice_or_in_no_order_are_answered_once(tmp_path, fault):
    async with wired_slack(tmp_path, repeats, timing=AT_ONCE) as run:
        root = run.slack.user_says(ALICE_DM, ALICE, "zero")
        await run.until(lambda: run.texts(ALICE_DM))
        run.slack.fault("envelope", fault, times=2)
        for word in WORDS:
            run.slack.user_says(ALICE_DM, ALICE, word, thread_ts=root)
        await run.until(lambda: all(any(word in text for text in run.texts(ALICE_DM, root)) for word in WORDS))
        await all_told(run)
        answers = run.texts(ALICE_DM)
        told = [word for text in answers for word in WORDS if word in text.rstrip(".").split()]
        assert sorted(told) == sorted(WORDS)
        turns = await run.turns_of_messages()
        assert len(turns) == 1 + len(WORDS)
        assert len(set(turns)) == len(answers)


async def test_an_event_whose_acknowledgement_is_lost_is_told_again_and_answered_once(tmp_path):
    async with opened(tmp_path, PLAIN) as run:
        run.slack.fault("ack", Fault.LOST_REQUEST, channel=ALICE_DM)
        await run.until(lambda: run.slack.sockets.is_open)
        await plain(run)
        (delivery,) = run.slack.deliveries.all
        await run.until(lambda: run.texts(ALICE_DM))
        assert delivery.acked_at is None
        run.slack.redeliver(delivery)
        await all_told(run)
        await to_its_end(run, PLAIN)
        assert delivery.attempts == 2
        check_chat(run.texts(ALICE_DM), PLAIN)


async def test_what_a_connection_swallowed_is_fetched_at_the_next_and_told_late_is_no_second_message(tmp_path):
    async with wired_slack(tmp_path, repeats, timing=AT_ONCE) as run:
        root = run.slack.user_says(ROOM, ALICE, "<@U0BOT> one")
        await run.until(lambda: run.texts(ROOM))
        await all_told(run)
        run.slack.fault("envelope", Fault.LOST_REQUEST, times=2)
        run.slack.user_says(ROOM, ALICE, "<@U0BOT> two", thread_ts=root)
        swallowed = run.slack.deliveries.all[-2:]
        run.slack.sockets.refresh()
        await run.until(lambda: len(run.texts(ROOM)) == 2)
        assert [delivery.acked_at for delivery in swallowed] == [None, None]
        run.slack.redeliver(*swallowed)
        await all_told(run)
        assert run.texts(ROOM, root) == ["You said one.", "You said two."]
        assert len(await run.turns_of_messages()) == 2


@pytest.mark.parametrize("trouble", ["told twice", "swallowed", "not acknowledged"])
async def test_a_press_that_is_told_twice_or_made_again_decides_once(tmp_path, trouble):
    """Whoever saw it fail presses again, and then another button: the first decision that arrived holds."""
    async with opened(tmp_path, CARD) as run:
        await plain(run)
        card = await card_of(run)
        buttons = dict(card.buttons)
        where, fault = {
            "told twice": ("envelope", Fault.DUPLICATED),
            "swallowed": ("envelope", Fault.LOST_REQUEST),
            "not acknowledged": ("ack", Fault.LOST_REQUEST),
        }[trouble]
        run.slack.fault(where, fault)
        run.slack.presses(ALICE, ALICE_DM, card.ts, buttons["Approve"])
        if trouble == "swallowed":
            await run.until(asked(times=STEPS_OF_A_PAUSE))
            assert cards(run)
            run.slack.presses(ALICE, ALICE_DM, card.ts, buttons["Approve"])
        await run.until(lambda: not cards(run))
        run.slack.presses(ALICE, ALICE_DM, card.ts, buttons["Deny"], stale=True)
        await run.until(lambda: told_to_alice(run, "Too late"))
        await to_its_end(run, CARD)
        check_chat(run.texts(ALICE_DM), CARD)
        assert [len(told_to_alice(run, told)) for told in ("Approved.", "Too late")] == [1, 1]


@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_that_was_shown_whole_by_a_call_whose_answer_was_lost_stands_once(tmp_path, streams):
    gate = asyncio.Event()
    async with wired_slack(tmp_path, Answer(text=["The whole answer.", " "], gates={1: gate}), timing=GROWING) as run:
        if not streams:
            run.slack.refuse_next("chat.startStream", "channel_type_not_supported")
        shown = run.slack.fault("chat.startStream" if streams else "chat.postMessage", Fault.LOST_RESPONSE)
        await plain(run)
        await run.until(shown.entered.is_set)
        await run.until(asked(times=STEPS_OF_A_PAUSE))
        gate.set()
        await run.until_settled()
        assert run.texts(ALICE_DM) == ["The whole answer."]
