"""A day of a Slack team of twenty: rooms, threads, direct messages, a restart; in the end all is accounted for."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from channels.slack.acts import ASK, QUESTION
from core.sandbox.fake import FakeOutcome
from tests.acceptance.day_kit import (
    BROKEN,
    NAMES,
    DayHost,
    Fate,
    Mind,
    Premises,
    Said,
    Shown,
    account,
    books_of,
    held,
    shell,
    spoiled,
)
from tests.acceptance.wired_slack import ALICE_IDENTITY, slack_channel
from tests.platforms.model_script import Answer, Call
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_message import Message
from tests.platforms.slack_server import SlackServer
from tests.platforms.slack_workspace import ALICE, BOB, EXTERNAL, GUEST, OTHER_BOT_USER, PRIVATE, ROOM, SHARED, TRIO

BUILD, DESIGN = "C0BUILD", "C0DESIGN"
CARL, DORA, EMIL, FAY, GUS, HAL, IDA, JON, KIM = (f"U0{name}" for name in NAMES[:9])
LEA, MAX, NED, ONA, PIA, REX, SUE, TOM, UTE = (f"U0{name}" for name in NAMES[9:])
OWNERS = [ALICE_IDENTITY, f"slack:T0TEAM/{BOB}"]
EVERYBODY = (ALICE, BOB, *(f"U0{name}" for name in NAMES))

WANTED = {"make report": JON, "remove all": LEA, "ship to all": MAX}


@dataclass(frozen=True)
class Card:
    """A question with its buttons, as it was when somebody saw it."""

    channel: str
    ts: str
    buttons: dict[str, str]


@dataclass(repr=False)
class Team:
    """A workspace that outlives the hosts that work in it, and what was said in it."""

    slack: SlackServer
    premises: Premises
    said: list[Said] = field(default_factory=list)
    host: DayHost | None = None

    @property
    def run(self) -> DayHost:
        assert self.host is not None, "no host runs"
        return self.host

    @property
    def mind(self) -> Mind:
        return self.premises.mind

    @asynccontextmanager
    async def host_at_work(self) -> AsyncIterator[None]:
        """Run a host on the team's database for the length of the block."""
        channel, channels = slack_channel(self.slack, self.premises.clock)
        async with self.premises.host_at_work(channel, channels=channels, owners=OWNERS) as self.host:
            yield
        self.host = None

    def says(
        self,
        channel: str,
        user: str,
        words: str,
        *,
        thread: str | None = None,
        mention: bool = True,
        fate: Fate = Fate.ANSWERED,
        repeats: str = "",
        **more: Any,
    ) -> Said:
        """Let somebody write, with a tag, and note what has to become of it."""
        tag = f"q{len(self.said) + 1:03}"
        to = "<@U0BOT> " if mention and not channel.startswith("D") else ""
        ts = self.slack.user_says(channel, user, f"{to}{tag} {words}", thread_ts=thread, **more)
        said = Said(tag=tag, id=ts, place=f"{channel}/{thread or ts}", fate=fate, words=repeats)
        self.said.append(said)
        return said

    def shown(self) -> list[Shown]:
        return [
            Shown(place=f"{channel}/{message.thread_ts or message.ts}", text=message.text)
            for channel in self.slack.workspace.channels
            for message in self.slack.visible(channel)
        ]

    def is_answered(self, *said: Said) -> bool:
        shown = self.shown()
        return all(any(f"Re {one.tag}:" in m.text and m.place == one.place for m in shown) for one in said)

    async def answered(self, *said: Said) -> None:
        await self.run.until(lambda: self.is_answered(*said))

    def texts(self, place: str) -> list[str]:
        return [message.text for message in self.shown() if message.place == place]

    async def commands(self, user: str, channel: str, command: str, told: str) -> None:
        """Give a slash command, and wait for what its giver alone is told."""
        before = len(self.slack.ephemeral(channel, user))
        self.slack.runs_command("/lodger", command, user, channel)
        await self.run.until(lambda: any(told in m.text for m in self.slack.ephemeral(channel, user)[before:]))

    async def settled(self) -> None:
        """Wait until the host has taken all that was said, and has nothing left to do."""
        await self.run.until(lambda: not self.slack.deliveries.unacked() and not self.slack.deliveries.waiting)
        await self.run.until_settled()

    async def card(self, said: Said) -> Card:
        """Wait for the question below a message whether a call may run, with its buttons."""
        channel, _, thread = said.place.partition("/")

        def cards() -> list[Message]:
            return [m for m in self.slack.visible(channel, thread) if "Approve" in m.buttons]

        await self.run.until(cards)
        card = cards()[-1]
        return Card(channel=channel, ts=card.ts, buttons=card.buttons)

    async def presses(self, user: str, card: Card, label: str, told: str = "") -> None:
        """Press a button, perhaps of an old picture, and wait for what the presser is told of it."""
        before = len(self.slack.ephemeral(card.channel, user))
        self.slack.presses(user, card.channel, card.ts, card.buttons[label], stale=True)
        if told:
            seen = self.slack.ephemeral
            await self.run.until(lambda: any(told in m.text for m in seen(card.channel, user)[before:]))

    async def fills_in(self, user: str, card: Card, label: str, values: dict[str, str]) -> None:
        """Open the form behind a button, and send it."""
        await self.presses(user, card, label)
        await self.run.until(lambda: self.slack.views.opened(user))
        self.slack.submits(user, values)
        await self.run.until(lambda: not self.slack.views.opened(user))

    def dm(self, user: str) -> str:
        return self.slack.workspace.direct(user).id


@asynccontextmanager
async def team_of(directory: Path) -> AsyncIterator[Team]:
    premises = Premises(directory=directory, outcomes=OUTCOMES)
    async with SlackServer(clock=premises.clock) as slack:
        for name in NAMES:
            slack.workspace.add_person(f"U0{name}", name.lower())
        for channel in (BUILD, DESIGN):
            slack.workspace.add_channel(channel, members=("U0BOT", *EVERYBODY))
        yield Team(slack=slack, premises=premises)


async def all_ask_at_once(team: Team) -> None:
    rooms = (ROOM, BUILD, DESIGN)
    asked = [team.says(rooms[n % 3], user, "good morning") for n, user in enumerate(EVERYBODY)]
    asked += [team.says(team.dm(user), user, "and in private") for user in EVERYBODY[:5]]
    await team.answered(*asked)


async def threads_are_talked_in(team: Team) -> None:
    """Whoever is alone in a thread need not mention; among several people it takes a mention."""
    first = team.says(ROOM, CARL, "what is new?")
    await team.answered(first)
    alone = team.says(ROOM, CARL, "and older?", thread=first.id, mention=False)
    await team.answered(alone)
    team.says(ROOM, DORA, "I think it is old", thread=first.id, mention=False, fate=Fate.UNHEARD)
    team.says(ROOM, CARL, "so do I", thread=first.id, mention=False, fate=Fate.UNHEARD)
    again = team.says(ROOM, DORA, "is it?", thread=first.id)
    for channel in (ROOM, BUILD, DESIGN, TRIO):
        team.says(channel, ALICE, "talk among people", mention=False, fate=Fate.UNHEARD)
    others = [team.says(PRIVATE, ALICE, "between us"), team.says(TRIO, BOB, "the three of us")]
    private = team.says(team.dm(EMIL), EMIL, "a plan")
    await team.answered(again, private, *others)
    await team.answered(team.says(team.dm(EMIL), EMIL, "its end", thread=private.id))


async def words_change_while_they_wait(team: Team) -> None:
    """C05: what waits is changed or withdrawn; what was taken stays as it was said."""
    gate = asyncio.Event()
    first = team.says(BUILD, EMIL, "long work", repeats="long work")
    team.mind.on(first.tag, held(gate))
    await team.run.until(lambda: team.mind.asked(first.tag))
    changed = team.says(BUILD, FAY, "the wrong words", thread=first.id, repeats="the right words")
    gone = team.says(BUILD, GUS, "never mind", thread=first.id, fate=Fate.WITHDRAWN)
    command = team.says(BUILD, HAL, "status", thread=first.id, fate=Fate.WITHDRAWN)
    unheard = team.says(BUILD, IDA, "you there", thread=first.id, mention=False, fate=Fate.UNHEARD)
    team.slack.user_edits(BUILD, changed.id, f"<@U0BOT> {changed.tag} the right words")
    team.slack.user_deletes(BUILD, gone.id)
    team.slack.user_edits(BUILD, command.id, "<@U0BOT> /whoami")
    team.slack.user_edits(BUILD, unheard.id, f"<@U0BOT> {unheard.tag} you there")
    team.slack.user_edits(BUILD, first.id, f"<@U0BOT> {first.tag} other work")
    await team.run.until(lambda: any("You are" in text for text in team.texts(first.place)))
    gate.set()
    await team.answered(first, changed)
    team.slack.user_edits(BUILD, changed.id, f"<@U0BOT> {changed.tag} other words yet")
    team.slack.user_deletes(BUILD, changed.id)
    team.slack.link_unfurls(BUILD, first.id)
    await team.settled()


async def words_enter_running_work(team: Team) -> None:
    """What the requester adds enters the turn; what somebody else says waits for its own."""
    gate = asyncio.Event()
    first = team.says(DESIGN, IDA, "look around")
    team.mind.on(first.tag, held(gate, Call(f"call-{first.tag}", "react", '{"emoji": "👍"}')))
    await team.run.until(lambda: team.mind.asked(first.tag))
    added = team.says(DESIGN, IDA, "only the short ones", thread=first.id, mention=False)
    other = team.says(DESIGN, JON, "a question of mine", thread=first.id)
    await team.run.until(lambda: not team.slack.deliveries.unacked())
    gate.set()
    await team.answered(first, added, other)
    assert team.mind.asked(added.tag)[0] in team.mind.asked(first.tag)
    assert team.mind.asked(other.tag)[0] not in team.mind.asked(first.tag)
    message = team.slack.workspace.channels[DESIGN].messages[first.id]
    await team.run.until(lambda: message.reactions == {"+1": ["U0BOT"]})


async def calls_are_decided(team: Team) -> None:
    """Only who may decide does; a decision counts once."""
    asked = {line: team.says(ROOM, user, f"please {line}") for line, user in WANTED.items()}
    for line, said in asked.items():
        team.mind.on(said.tag, shell(said.tag, line))
    made, removed, shipped = [await team.card(said) for said in asked.values()]
    for wrong in (KIM, JON):
        await team.presses(wrong, made, "Approve", "You may not decide this.")
        await team.presses(wrong, made, "Deny…", "You may not decide this.")
        assert team.slack.views.opened(wrong) is None
    elsewhere = team.slack.visible(BUILD)[-1]
    forged = Card(channel=BUILD, ts=elsewhere.ts, buttons=made.buttons)
    await team.presses(ALICE, forged, "Approve", "This button does not belong to this chat.")
    team.slack.fault("envelope", Fault.DUPLICATED)
    await team.presses(ALICE, made, "Approve", "Approved.")
    await team.presses(BOB, made, "Approve", "Too late")
    await team.presses(BOB, made, "Deny", "Too late")
    await team.fills_in(ALICE, removed, "Deny…", {"reason": "keep them"})
    await team.fills_in(BOB, shipped, "Edit…", {"command": "ship to staging"})
    await team.answered(*asked.values())
    assert "keep them" in json.dumps(team.mind.asked(asked["remove all"].tag)[-1])
    await team.settled()


async def commands_are_given(team: Team) -> None:
    gate = asyncio.Event()
    await team.commands(NED, ROOM, "status", "Agent lodger")
    await team.commands(GUEST, ROOM, "whoami", "I do not know you")
    stopped = team.says(BUILD, ONA, "go on for ever", fate=Fate.STOPPED)
    team.mind.on(stopped.tag, held(gate))
    await team.run.until(lambda: team.mind.asked(stopped.tag))
    team.slack.user_says(BUILD, PIA, "<@U0BOT> /cancel", thread_ts=stopped.id)
    await team.run.until(lambda: any("Only the person who asked" in text for text in team.texts(stopped.place)))
    team.slack.user_says(BUILD, ONA, "<@U0BOT> /cancel", thread_ts=stopped.id)
    await team.run.until(lambda: any("Stopped." in text for text in team.texts(stopped.place)))
    gate.set()
    await team.settled()


async def a_message_is_asked_about(team: Team) -> None:
    """From a message's menu: the answer stands in the thread of the message that is asked about."""
    about = team.slack.user_says(BUILD, SUE, "the lift is out of order")
    said = Said(tag="q901", id=about, place=f"{BUILD}/{about}")
    team.said.append(said)
    team.slack.uses_shortcut(ASK, TOM, BUILD, about)
    await team.run.until(lambda: team.slack.views.opened(TOM))
    team.slack.submits(TOM, {QUESTION: "q901 since when?"})
    await team.answered(said)


async def files_come_and_go(team: Team) -> None:
    workspace = team.premises.directory / "workspace"
    (workspace / "made.txt").write_text("made by the agent")
    notes = team.slack.files.keep(b"the word is teal", "notes.txt", user=REX)
    came = team.says(BUILD, REX, "read this", files=(notes,))
    wanted = team.says(BUILD, SUE, "send me yours")
    team.mind.on(wanted.tag, Answer(calls=[Call(f"call-{wanted.tag}", "send_file", '{"path": "made.txt"}')]))
    await team.answered(came, wanted)
    assert "notes.txt" in json.dumps(team.mind.asked(came.tag)[0])
    await team.settled()
    sent = [(m.thread_ts, f.data) for m in team.slack.visible(BUILD) for f in m.files]
    assert sent == [(wanted.id, b"made by the agent")]


async def much_goes_wrong(team: Team) -> None:
    """Duplicates, lost answers, cut and refreshed sockets, a flood, a broken model."""
    team.slack.fault("envelope", Fault.DUPLICATED, times=6)
    team.slack.fault("ack", Fault.LOST_REQUEST, times=2)
    twice = [team.says(ROOM, user, "twice") for user in (TOM, UTE, KIM)]
    await team.answered(*twice)
    team.slack.redeliver()
    team.slack.fault("chat.postMessage", Fault.LOST_RESPONSE, times=2)
    lost = [team.says(DESIGN, user, "lost answers") for user in (LEA, MAX, NED)]
    await team.answered(*lost)
    sockets = team.slack.sockets
    sockets.cut()
    during = [team.says(ROOM, user, "in the dark") for user in (ONA, PIA, REX)]
    await team.run.until(lambda: not sockets.is_open)
    during += [team.says(DESIGN, user, "in the dark") for user in (SUE, TOM, UTE)]
    await team.run.until(lambda: sockets.is_open)
    team.slack.redeliver()
    await team.answered(*during)
    sockets.refresh()
    team.slack.flood("chat.postMessage", 3.0)
    flooded = [team.says(BUILD, user, "in a flood") for user in (SUE, TOM, UTE)]
    broken = team.says(BUILD, GUS, "break", fate=Fate.FAILED)
    team.mind.on(broken.tag, BROKEN)
    await team.answered(*flooded)
    await team.settled()


async def others_and_loud_words(team: Team) -> None:
    """Guests, strangers and bots get no turn; nobody is called by an answer; reactions decide nothing."""
    guest = team.says(ROOM, GUEST, "may I?", fate=Fate.UNHEARD)
    stranger = team.says(SHARED, EXTERNAL, "may I?", fate=Fate.UNHEARD)
    team.says(ROOM, OTHER_BOT_USER, "beep", fate=Fate.UNHEARD)
    loud = team.says(DESIGN, UTE, f"wake {LOUD}")
    team.mind.on(loud.tag, Answer(text=f"Re {loud.tag}: {LOUD}"))
    await team.answered(loud)
    for asked in (guest, stranger):
        await team.run.until(lambda asked=asked: len(team.texts(asked.place)) == 1)
        assert "I do not know you" in team.texts(asked.place)[0]
    answer = team.slack.visible(DESIGN, loud.id)[-1]
    team.slack.user_reacts(DESIGN, TOM, answer.ts, "white_check_mark")
    team.slack.user_reacts(DESIGN, TOM, answer.ts, "white_check_mark", removed=True)
    team.slack.user_reacts(DESIGN, UTE, answer.ts, "fire")
    await team.settled()
    seen = team.says(DESIGN, UTE, "did you see?", thread=loud.id, mention=False)
    await team.answered(seen)
    assert "reacted with" in json.dumps(team.mind.asked(seen.tag))


@dataclass
class LeftOpen:
    """What a host leaves behind when it stops in the middle of its work."""

    said: list[Said]
    card: Card
    gate: asyncio.Event


async def work_is_left_open(team: Team) -> LeftOpen:
    """Answers half written, messages queued behind them, a question nobody decided, a command that runs."""
    gate = asyncio.Event()
    writing = [team.says(ROOM, CARL, "half an answer"), team.says(team.dm(DORA), DORA, "half an answer")]
    for said in writing:
        team.mind.on(said.tag, held(gate), held(gate))
    waits = team.says(ROOM, EMIL, "behind it", thread=writing[0].id, repeats="behind it all")
    undecided, runs = team.says(BUILD, FAY, "deploy"), team.says(BUILD, GUS, "a long job")
    team.mind.on(undecided.tag, shell(undecided.tag, "deploy"))
    team.mind.on(runs.tag, shell(runs.tag, LONG))
    await team.presses(ALICE, await team.card(runs), "Approve", "Approved.")
    card = await team.card(undecided)
    await team.run.until(lambda: team.run.host.sandbox.running and all(team.mind.asked(s.tag) for s in writing))
    await team.run.until(lambda: not team.slack.deliveries.unacked())
    return LeftOpen(said=[*writing, waits, undecided, runs], card=card, gate=gate)


async def nobody_is_there(team: Team, left: LeftOpen) -> None:
    """While no host runs people go on: they ask, change their minds, press and react."""
    waits = left.said[2]
    team.slack.user_edits(ROOM, waits.id, f"<@U0BOT> {waits.tag} behind it all")
    left.said += [team.says(DESIGN, user, "anybody there?") for user in (HAL, IDA, JON)]
    left.said += [team.says(team.dm(user), user, "anybody there?") for user in (KIM, ALICE)]
    team.says(DESIGN, LEA, "it is away", mention=False, fate=Fate.UNHEARD)
    team.slack.presses(ALICE, left.card.channel, left.card.ts, left.card.buttons["Approve"])
    gone = team.says(DESIGN, MAX, "too late", fate=Fate.WITHDRAWN)
    changed = team.says(DESIGN, NED, "wrong", repeats="right")
    left.said.append(changed)
    team.slack.user_edits(DESIGN, changed.id, f"<@U0BOT> {changed.tag} right")
    team.slack.user_deletes(DESIGN, gone.id)
    team.slack.deliveries.waiting[:] = [d for d in team.slack.deliveries.waiting if d.event["channel"] != DESIGN]
    await team.premises.clock.advance(timedelta(minutes=3))


async def work_goes_on(team: Team, left: LeftOpen) -> None:
    deliveries = team.slack.deliveries
    await team.run.until(lambda: not deliveries.waiting and not deliveries.unacked())
    left.gate.set()
    assert not any(f"Re {left.said[3].tag}" in text for text in team.texts(left.said[3].place))
    await team.presses(KIM, left.card, "Approve", "You may not decide this.")
    await team.presses(ALICE, left.card, "Approve", "Approved.")
    await team.answered(*left.said)
    await team.settled()


LONG = "a job of an hour"
RAN = ["make report", "ship to staging", LONG, "deploy"]
OUTCOMES = {line: FakeOutcome(output=b"done") for line in RAN} | {LONG: FakeOutcome(takes=timedelta(hours=1))}
LOUD = "<!channel> <!here> <!everyone> <!subteam^S0OPS> <@U0BOB> @channel @everyone"

NOTICES = [
    *["Approved by alice at"] * 3,
    "Approved with changes by bob at",
    "Denied by alice at",
    *["I do not know you"] * 2,
    "You are hal",
    "Only the person who asked",
    "Stopping.",
    "Stopped.",
    "Something went wrong",
    "",
]
"""What the bot says in the course of the day beside its answers; the last is the file it sends."""


def mentions_of(team: Team) -> list[str]:
    """Return what the bot wrote that calls people at large: in texts, and in blocks as Slack reads them."""
    live = ("<!channel", "<!here", "<!everyone", "<!subteam", "<@", '"broadcast"', '"usergroup"')
    written = [json.dumps([m.text, m.blocks]) for c in team.slack.workspace.channels for m in team.slack.visible(c)]
    return [text for text in written if any(call in text for call in live)]


async def test_a_team_s_day_is_accounted_for_to_the_last_message(tmp_path):
    async with team_of(tmp_path) as team:
        async with team.host_at_work():
            await all_ask_at_once(team)
            await threads_are_talked_in(team)
            await words_change_while_they_wait(team)
            await words_enter_running_work(team)
            await calls_are_decided(team)
            left = await work_is_left_open(team)
        await nobody_is_there(team, left)
        async with team.host_at_work():
            await work_goes_on(team, left)
            await commands_are_given(team)
            await a_message_is_asked_about(team)
            await files_come_and_go(team)
            await much_goes_wrong(team)
            await others_and_loud_words(team)
            await all_ask_at_once(team)
            await team.settled()
            books, shown = await books_of(team.run), team.shown()
            assert account(team.said, shown, books, notices=NOTICES) == []
            assert all(account(team.said, wrong, books, notices=NOTICES) for wrong in spoiled(shown))
        assert Counter(team.premises.ran) == Counter(RAN)
        assert mentions_of(team) == []
        acts = [act for act in team.slack.deliveries.all if act.kind != "events_api" and not act.is_lost]
        assert [act for act in acts if act.acked_at is None] == []
