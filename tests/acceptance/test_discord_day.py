"""A day of a project's Discord with twenty people, cuts and a restart; in the end all is accounted for."""

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

from channels.discord.commands import ASK_ABOUT_THIS
from channels.discord.inbound_interactions import QUESTION_FIELD
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
from tests.acceptance.wired_discord import ALICE_IDENTITY, discord_channel
from tests.platforms.discord_channels import Channel, Kind
from tests.platforms.discord_files import Upload
from tests.platforms.discord_guilds import ALICE, BOB, BOT, FORUM, GENERAL, GUILD, PEER_BOT, PRIVATE, RANDOM, User
from tests.platforms.discord_interactions import Interaction
from tests.platforms.discord_server import DiscordServer
from tests.platforms.model_script import Answer, Call
from tests.platforms.telegram_faults import Fault

BUILD = 9103
IDS = range(7200, 7200 + len(NAMES))
CARL, DORA, EMIL, FAY, GUS, HAL, IDA, JON, KIM, LEA, MAX, NED, ONA, PIA, REX, SUE, TOM, UTE = IDS
EVERYBODY = (ALICE, BOB, *IDS)
OWNERS = [ALICE_IDENTITY, f"discord:{BOB}"]
KNOWN = [f"discord:{user}" for user in (DORA, EMIL, KIM)]
"""Who may talk in private besides the owners."""

WANTED = {"make report": JON, "remove all": LEA, "ship to all": MAX}
LONG = "a job of an hour"
RAN = ["make report", "ship to staging", LONG, "deploy"]
OUTCOMES = {line: FakeOutcome(output=b"done") for line in RAN} | {LONG: FakeOutcome(takes=timedelta(hours=1))}
LOUD = f"@everyone @here <@&{GUILD}> <@{BOB}>"

NOTICES = [
    "Alice lets me work here",
    *["Approved by Alice at"] * 3,
    "Approved with changes by Bob at",
    "Denied by Alice at",
    "We have not met.",
    "You are Hal",
    "Only the person who asked",
    "Stopping.",
    "Stopped.",
    "Something went wrong",
    "",
]
"""What the bot says in the course of the day beside its answers; the last is the file it sends."""


@dataclass(frozen=True)
class Card:
    """A question with its buttons, as it was when somebody saw it."""

    channel: int
    id: int
    buttons: dict[str, str]


@dataclass(repr=False)
class Project:
    """A Discord that outlives the hosts that work in it, and what was said there."""

    discord: DiscordServer
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
        """Run a host on the project's database for the length of the block."""
        channel, channels = discord_channel(self.discord, self.premises.clock)
        work = self.premises.host_at_work(channel, channels=channels, owners=OWNERS, people=KNOWN)
        async with work as self.host:
            await self.run.until(lambda: self.discord.gateway.is_live)
            yield
        self.host = None

    def says(
        self,
        channel: int,
        user: int,
        words: str,
        *,
        mention: bool = True,
        fate: Fate = Fate.ANSWERED,
        repeats: str = "",
        **more: Any,
    ) -> Said:
        """Let somebody write, with a tag, and note what has to become of it."""
        tag = f"q{len(self.said) + 1:03}"
        place = self.discord.directory.channel(channel)
        to = f"<@{BOT}> " if mention and place.kind is not Kind.DM else ""
        message = self.discord.user_says(channel, user, f"{to}{tag} {words}", **more)
        return self.noted(tag, message, message if place.kind is Kind.TEXT else channel, fate, repeats)

    def noted(self, tag: str, message: int, place: int, fate: Fate = Fate.ANSWERED, repeats: str = "") -> Said:
        said = Said(tag=tag, id=message, place=str(place), fate=fate, words=repeats)
        self.said.append(said)
        return said

    def opens_thread(self, user: int, channel: int, said: Said) -> int:
        """Let somebody open the thread of a message, and return its id."""
        discord = self.discord
        return discord.threads.open_at(
            discord.messages.find(discord.directory.channel(channel), said.id), "on", user
        ).id

    def shown(self) -> list[Shown]:
        channels = list(self.discord.messages.by_channel)
        return [Shown(place=str(c), text=message.text) for c in channels for message in self.discord.visible(c)]

    def texts(self, place: str) -> list[str]:
        return [message.text for message in self.discord.visible(int(place))]

    async def tells(self, place: str, part: str) -> None:
        """Wait until the bot says something in a place."""
        await self.run.until(lambda: any(part in text for text in self.texts(place)))

    async def answered(self, *said: Said) -> None:
        await self.run.until(lambda: all(any(f"Re {s.tag}:" in text for text in self.texts(s.place)) for s in said))

    async def settled(self) -> None:
        """Wait until the host has taken all that was said, and has nothing left to do."""
        await self.answered(self.says(self.discord.dm(ALICE), ALICE, "did you hear all?"))
        await self.run.until_settled()

    async def card(self, said: Said) -> Card:
        """Wait for the question below a message whether a call may run, with its buttons."""

        def cards() -> list[Card]:
            place = int(said.place)
            return [Card(place, m.id, m.buttons) for m in self.discord.visible(place) if "Approve" in m.buttons]

        await self.run.until(cards)
        return cards()[-1]

    async def presses(self, user: int, card: Card, label: str, told: str) -> None:
        """Press a button, perhaps of an old picture, and wait for what the presser is told of it."""
        press = self.discord.presses(user, card.channel, card.id, card.buttons[label], stale=True)
        await self.run.until(lambda: any(told in text for text in press.texts))
        assert press.modal is None

    async def fills_in(self, user: int, card: Card, label: str, values: dict[str, str]) -> None:
        """Open the form behind a button, and send it."""
        await self.sends_form(self.discord.presses(user, card.channel, card.id, card.buttons[label]), values)

    async def sends_form(self, asked: Interaction, values: dict[str, str]) -> None:
        await self.run.until(lambda: asked.modal)
        sent = self.discord.submits_modal(asked, values)
        await self.run.until(lambda: sent.texts)

    async def commands(self, user: int, channel: int, name: str, told: str) -> None:
        """Give a slash command, and wait for what its giver alone is told."""
        command = self.discord.runs_command(user, channel, name)
        await self.run.until(lambda: any(told in text for text in command.texts))
        assert command.is_private


@asynccontextmanager
async def project_of(directory: Path) -> AsyncIterator[Project]:
    premises = Premises(directory=directory, outcomes=OUTCOMES)
    async with DiscordServer(clock=premises.clock) as discord:
        guild = discord.directory.guilds[GUILD]
        for user, name in zip(IDS, NAMES, strict=True):
            discord.directory.users[user] = User(user, name.title())
            discord.directory.join(guild, user)
        discord.directory.add_channel(Channel(BUILD, Kind.TEXT, "build", GUILD))
        yield Project(discord=discord, premises=premises)


async def the_bot_is_let_in(project: Project) -> None:
    discord = project.discord
    await project.run.until(lambda: discord.visible(GENERAL))
    (asked,) = discord.visible(GENERAL)
    by_nobody = discord.presses(CARL, GENERAL, asked.id, asked.buttons["Allow here"])
    await project.run.until(lambda: "Only an owner of this agent decides that." in by_nobody.texts)
    discord.presses(ALICE, GENERAL, asked.id, asked.buttons["Allow here"])
    await project.run.until(lambda: not discord.visible(GENERAL)[0].buttons)


async def all_ask_at_once(project: Project) -> None:
    rooms = (GENERAL, RANDOM, BUILD)
    asked = [project.says(rooms[n % 3], user, "good morning") for n, user in enumerate(EVERYBODY)]
    asked += [project.says(project.discord.dm(user), user, "in private") for user in (ALICE, BOB, DORA, EMIL, KIM)]
    await project.answered(*asked)


async def threads_are_talked_in(project: Project) -> None:
    """Whoever is alone in a thread need not mention; among several people it takes a mention."""
    first = project.says(GENERAL, CARL, "what is new?")
    await project.answered(first)
    thread = int(first.place)
    await project.answered(project.says(thread, CARL, "and older?", mention=False))
    project.says(thread, DORA, "I think it is old", mention=False, fate=Fate.UNHEARD)
    project.says(thread, CARL, "so do I", mention=False, fate=Fate.UNHEARD)
    again = project.says(thread, DORA, "is it?")
    for channel in (GENERAL, RANDOM, BUILD):
        project.says(channel, ALICE, "talk among people", mention=False, fate=Fate.UNHEARD)
    opened = project.discord.says_in_new_thread(RANDOM, FAY, "a thread of ours", name="ours")
    post = project.discord.posts_in_forum(FORUM, GUS, "A question", f"<@{BOT}> q900 what is it?")
    posted = project.noted("q900", post, post)
    others = [project.says(PRIVATE, ALICE, "among keepers"), project.says(opened, FAY, "what do you think?"), posted]
    await project.answered(again, *others)


async def words_change_while_they_wait(project: Project) -> None:
    """C05: what waits is changed or withdrawn; what was taken stays as it was said."""
    gate, discord = asyncio.Event(), project.discord
    first = project.says(BUILD, EMIL, "long work", repeats="long work")
    project.mind.on(first.tag, held(gate))
    await project.run.until(lambda: project.mind.asked(first.tag))
    thread = project.opens_thread(EMIL, BUILD, first)
    changed = project.says(thread, FAY, "the wrong words", repeats="the right words")
    gone = project.says(thread, GUS, "never mind", fate=Fate.WITHDRAWN)
    command = project.says(thread, HAL, "status", fate=Fate.WITHDRAWN)
    unheard = project.says(thread, IDA, "you there", mention=False, fate=Fate.UNHEARD)
    discord.user_edits(thread, changed.id, f"<@{BOT}> {changed.tag} the right words")
    discord.user_deletes(thread, gone.id)
    discord.user_edits(thread, unheard.id, f"<@{BOT}> {unheard.tag} you there")
    discord.user_edits(BUILD, first.id, f"<@{BOT}> {first.tag} other work")
    discord.user_edits(thread, command.id, f"<@{BOT}> /whoami")
    await project.tells(first.place, "You are")
    gate.set()
    await project.answered(first, changed)
    discord.user_edits(thread, changed.id, f"<@{BOT}> {changed.tag} other words yet")
    discord.user_deletes(thread, changed.id)
    discord.embeds_added(BUILD, first.id)
    await project.settled()


async def words_enter_running_work(project: Project) -> None:
    """What the requester adds enters the turn; what somebody else says waits for its own."""
    started = project.says(RANDOM, IDA, "begin")
    await project.answered(started)
    gate, thread = asyncio.Event(), int(started.place)
    first = project.says(thread, IDA, "look around")
    project.mind.on(first.tag, held(gate, Call(f"call-{first.tag}", "react", '{"emoji": "👍"}')))
    await project.run.until(lambda: project.mind.asked(first.tag))
    added = project.says(thread, IDA, "only the short ones", mention=False)
    other = project.says(thread, JON, "a question of mine")
    heard = project.says(project.discord.dm(BOB), BOB, "heard?")
    await project.answered(heard)
    gate.set()
    await project.answered(first, added, other)
    assert project.mind.asked(added.tag)[0] in project.mind.asked(first.tag)
    assert project.mind.asked(other.tag)[0] not in project.mind.asked(first.tag)
    (message,) = [m for m in project.discord.visible(thread, everyone=True) if m.id == first.id]
    await project.run.until(lambda: message.reactions == {"👍": [BOT]})


async def calls_are_decided(project: Project) -> None:
    """Only who may decide does; a decision counts once."""
    asked = {line: project.says(GENERAL, user, f"please {line}") for line, user in WANTED.items()}
    for line, said in asked.items():
        project.mind.on(said.tag, shell(said.tag, line))
    made, removed, shipped = [await project.card(said) for said in asked.values()]
    for wrong in (KIM, JON):
        await project.presses(wrong, made, "Approve", "You may not decide this.")
        await project.presses(wrong, made, "Deny…", "You may not decide this.")
    (asking,) = project.discord.visible(GENERAL)
    forged = Card(GENERAL, asking.id, made.buttons)
    await project.presses(ALICE, forged, "Approve", "This button does not belong to this chat.")
    project.discord.fault("INTERACTION_CREATE", Fault.DUPLICATED)
    await project.presses(ALICE, made, "Approve", "Approved.")
    await project.presses(BOB, made, "Approve", "Too late")
    await project.presses(BOB, made, "Deny", "Too late")
    await project.fills_in(ALICE, removed, "Deny…", {"reason": "keep them"})
    await project.fills_in(BOB, shipped, "Edit…", {"command": "ship to staging"})
    await project.answered(*asked.values())
    assert "keep them" in json.dumps(project.mind.asked(asked["remove all"].tag)[-1])


async def commands_are_given(project: Project) -> None:
    gate = asyncio.Event()
    await project.commands(NED, GENERAL, "status", "Agent lodger")
    await project.commands(ONA, GENERAL, "whoami", "You are Ona")
    stopped = project.says(BUILD, ONA, "go on for ever", fate=Fate.STOPPED)
    project.mind.on(stopped.tag, held(gate))
    await project.run.until(lambda: project.mind.asked(stopped.tag))
    thread = project.opens_thread(PIA, BUILD, stopped)
    project.discord.user_says(thread, PIA, f"<@{BOT}> /cancel")
    await project.tells(stopped.place, "Only the person who asked")
    project.discord.user_says(thread, ONA, f"<@{BOT}> /cancel")
    await project.tells(stopped.place, "Stopped.")
    gate.set()


async def a_message_is_asked_about(project: Project) -> None:
    """From a message's menu: the answer stands in the thread of the message that is asked about."""
    about = project.discord.user_says(BUILD, SUE, "the lift is out of order")
    said = project.noted("q901", about, about)
    asked = project.discord.uses_message_command(TOM, BUILD, ASK_ABOUT_THIS, about)
    await project.sends_form(asked, {QUESTION_FIELD: "q901 since when?"})
    await project.answered(said)


async def files_come_and_go(project: Project) -> None:
    (project.premises.directory / "workspace" / "made.txt").write_text("made by the agent")
    notes = Upload("notes.txt", b"the word is teal", "text/plain")
    came = project.says(BUILD, REX, "read this", files=(notes,))
    wanted = project.says(BUILD, SUE, "send me yours")
    project.mind.on(wanted.tag, Answer(calls=[Call(f"call-{wanted.tag}", "send_file", '{"path": "made.txt"}')]))
    await project.answered(came, wanted)
    assert "notes.txt" in json.dumps(project.mind.asked(came.tag)[0])


async def much_goes_wrong(project: Project) -> None:
    """Duplicates, wrong order, lost answers, cut, closed and void sessions, a broken model."""
    discord, gateway = project.discord, project.discord.gateway
    discord.fault("MESSAGE_CREATE", Fault.DUPLICATED, times=3)
    twice = [project.says(GENERAL, user, "twice") for user in (TOM, UTE, KIM)]
    discord.fault("MESSAGE_CREATE", Fault.REORDERED)
    twice += [project.says(GENERAL, user, "in another order") for user in (HAL, IDA)]
    await project.answered(*twice)
    discord.fault("create_message", Fault.LOST_RESPONSE, times=2)
    lost = [project.says(RANDOM, user, "lost answers") for user in (LEA, MAX, NED)]
    await project.answered(*lost)
    for ends in (gateway.cut, gateway.ask_reconnect, gateway.invalidate, gateway.close):
        ends()
        during = [project.says(GENERAL, user, "in the dark") for user in (ONA, PIA, REX)]
        await project.answered(*during)
    broken = project.says(BUILD, GUS, "break", fate=Fate.FAILED)
    project.mind.on(broken.tag, BROKEN)
    await project.tells(broken.place, "Something went wrong")


async def others_and_loud_words(project: Project) -> None:
    """Bots and strangers get no turn; nobody is called by an answer; reactions decide nothing."""
    discord = project.discord
    project.says(GENERAL, PEER_BOT, "beep", fate=Fate.UNHEARD)
    stranger = project.says(discord.dm(TOM), TOM, "may I?", fate=Fate.UNHEARD)
    loud = project.says(RANDOM, UTE, f"wake {LOUD}")
    project.mind.on(loud.tag, Answer(text=f"Re {loud.tag}: {LOUD}"))
    await project.answered(loud)
    await project.tells(stranger.place, "We have not met.")
    answer = discord.visible(int(loud.place))[-1]
    discord.user_reacts(int(loud.place), answer.id, TOM, "✅")
    discord.people.unreacts(int(loud.place), answer.id, TOM, "✅")
    discord.user_reacts(int(loud.place), answer.id, UTE, "🔥")
    await project.settled()
    seen = project.says(int(loud.place), UTE, "did you see?", mention=False)
    await project.answered(seen)
    assert "reacted with" in json.dumps(project.mind.asked(seen.tag))


@dataclass
class LeftOpen:
    """What a host leaves behind when it stops in the middle of its work."""

    said: list[Said]
    card: Card
    gate: asyncio.Event
    lost: Interaction | None = None
    """The press that came while no host ran."""


async def work_is_left_open(project: Project) -> LeftOpen:
    """Answers half written, a message queued behind one, a question nobody decided, a command that runs."""
    gate, discord = asyncio.Event(), project.discord
    writing = [project.says(GENERAL, CARL, "half an answer"), project.says(discord.dm(DORA), DORA, "half an answer")]
    for said in writing:
        project.mind.on(said.tag, held(gate), held(gate))
    undecided, runs = project.says(BUILD, FAY, "deploy"), project.says(BUILD, GUS, "a long job")
    project.mind.on(undecided.tag, shell(undecided.tag, "deploy"))
    project.mind.on(runs.tag, shell(runs.tag, LONG))
    await project.presses(ALICE, await project.card(runs), "Approve", "Approved.")
    card = await project.card(undecided)
    thread = project.opens_thread(CARL, GENERAL, writing[0])
    waits = project.says(thread, EMIL, "behind it")
    await project.answered(project.says(discord.dm(BOB), BOB, "heard?"))
    await project.run.until(
        lambda: project.run.host.sandbox.running and all(project.mind.asked(s.tag) for s in writing)
    )
    return LeftOpen(said=[*writing, waits, undecided, runs], card=card, gate=gate)


async def nobody_is_there(project: Project, left: LeftOpen) -> None:
    """While no host runs people go on: they ask, change their minds, press and react."""
    discord = project.discord
    left.said += [project.says(RANDOM, user, "anybody there?") for user in (HAL, IDA, JON)]
    left.said += [project.says(discord.dm(user), user, "anybody there?") for user in (KIM, ALICE)]
    project.says(RANDOM, LEA, "it is away", mention=False, fate=Fate.UNHEARD)
    lost = discord.presses(ALICE, left.card.channel, left.card.id, left.card.buttons["Approve"])
    gone = project.says(RANDOM, MAX, "too late", fate=Fate.WITHDRAWN)
    changed = project.says(RANDOM, NED, "wrong", repeats="right")
    left.said.append(changed)
    discord.user_edits(RANDOM, changed.id, f"<@{BOT}> {changed.tag} right")
    discord.user_deletes(RANDOM, gone.id)
    await project.premises.clock.advance(timedelta(minutes=3))
    assert lost.failed
    left.lost = lost


async def work_goes_on(project: Project, left: LeftOpen) -> None:
    left.gate.set()
    await project.answered(*left.said[5:])
    assert not any(f"Re {left.said[3].tag}" in text for text in project.texts(left.said[3].place))
    await project.presses(KIM, left.card, "Approve", "You may not decide this.")
    await project.presses(ALICE, left.card, "Approve", "Approved.")
    await project.answered(*left.said)
    await project.settled()


def calls_at_large(project: Project) -> list[str]:
    """Return what the bot wrote that notified more people than it was meant for."""
    written = [m for c in list(project.discord.messages.by_channel) for m in project.discord.visible(c)]
    return [m.text for m in written if m.mentions.everyone or m.mentions.roles or m.mentions.users]


async def test_a_project_s_day_is_accounted_for_to_the_last_message(tmp_path):
    async with project_of(tmp_path) as project:
        async with project.host_at_work():
            await the_bot_is_let_in(project)
            await all_ask_at_once(project)
            await threads_are_talked_in(project)
            await words_change_while_they_wait(project)
            await words_enter_running_work(project)
            await calls_are_decided(project)
            left = await work_is_left_open(project)
        await nobody_is_there(project, left)
        async with project.host_at_work():
            await work_goes_on(project, left)
            await commands_are_given(project)
            await a_message_is_asked_about(project)
            await files_come_and_go(project)
            await much_goes_wrong(project)
            await others_and_loud_words(project)
            await all_ask_at_once(project)
            await project.settled()
            books, shown = await books_of(project.run), project.shown()
            assert account(project.said, shown, books, notices=NOTICES) == []
            assert all(account(project.said, wrong, books, notices=NOTICES) for wrong in spoiled(shown))
        assert Counter(project.premises.ran) == Counter(RAN)
        assert calls_at_large(project) == []
        assert [act for act in project.discord.interactions.made if act.failed] == [left.lost]
