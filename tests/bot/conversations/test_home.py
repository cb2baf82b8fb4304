"""Home screens: what each person sees on the agent's own page, what they decide there, and when it is drawn."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.config.model import AccessSettings, DirectMessages
from bot.conversations.cards import approval_token
from bot.conversations.home import REMEMBERED, is_own_home
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import Address, HomeBody, InboundEvent, MessageBody, PressBody, Privacy, Sender
from core.contracts.agents import EVERYONE, Audience
from core.contracts.clock import FakeClock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, place_key
from core.contracts.errors import SendRejected, StoreUnavailable
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.people import Place, PlaceState
from core.contracts.permissions import ApprovalState
from core.memory.fake import FakeMemoryStore
from core.models.scripted import ScriptedStep, asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from core.stores.connection import Database
from tests.bot.conversations.grouping import BOB, GROUP, admitted, mentions
from tests.bot.conversations.hosting import ALICE, CHANNEL, MIKE, OPAL, SAM, SECRET, chat, hosting, make_settings

MADE = {"make x": FakeOutcome(output=b"made x"), "make y": FakeOutcome(output=b"made y")}
ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))
WITH_FORMS = replace(FAKE_CAPABILITIES, forms=True, code_limit=8_000)
GREETING, DECISIONS, DOINGS, MEMORY = "lodger", "Waiting for your decision", "What I do for you now", "What I remember"
SPACE = "T0TEAM"
ELSEWHERE = chat("333")
"""Where Mike talks to the agent."""


class Screens(FakeChannel):
    """A channel with home screens that fail as often as `broken` says, and that counts who was drawn."""

    def __init__(self) -> None:
        super().__init__(CHANNEL, capabilities=WITH_FORMS)
        self.broken = 0
        self.drawn: list[str] = []

    async def show_home(self, person, sections):
        self.drawn.append(person)
        if self.broken:
            self.broken -= 1
            raise SendRejected("no screen today")
        await super().show_home(person, sections)


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, access=None, **more):
        settings = make_settings(tmp_path)
        if access is not None:
            settings = replace(settings, access=replace(access, owners=settings.access.owners))
        return hosting(tmp_path, *steps, outcomes=MADE, channel=Screens(), settings=settings, **more)

    return open_host


def user(who: Sender) -> str:
    return who.identity.partition(":")[2]


def home_of(who: Sender) -> Address:
    return chat(f"home:{user(who)}")


async def opens(host, who: Sender = ALICE, **more) -> dict:
    """Let somebody open their screen; return what then stands there."""
    await host.arrives(HomeBody(), who=who, where=replace(home_of(who), **more))
    await host.settle()
    return shown(host, who)


def shown(host, who: Sender = ALICE) -> dict:
    return {section.title: section for section in host.channel.homes.get(user(who), ())}


def buttons(section) -> dict[str, str]:
    return {button.label: button.token for card in section.cards for row in card.rows for button in row}


async def presses(host, token: str, *values, who: Sender = ALICE, where: Address | None = None) -> str:
    """Let a button of a home screen be pressed, or its form be sent; return what its presser is told."""
    before = len(host.channel.acknowledgements)
    body = PressBody(token=token, card="", acknowledge="q", values=values)
    await host.arrives(body, who=who, where=where or home_of(who))
    await host.settle()
    return host.channel.acknowledgements[before:][-1][1]


@asynccontextmanager
async def drawing(host):
    """Let screens be drawn again as they change."""
    task = asyncio.create_task(host.app.draw_homes())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def keeps(host, headers: dict[str, str], *words: str) -> None:
    """Let files with these headers come into the agent's memory, seen by those whom `words` name."""
    changes = [
        MemoryChange(kind=ChangeKind.CREATE, path=path, text=f"---\n{header}\n---\nThe party is on Sunday.\n")
        for path, header in headers.items()
    ]
    origin = CommitOrigin(author="agent", audience=Audience(words=frozenset({EVERYONE, *words})), approved=True)
    await host.memory.commit(host.agent.memory_id, changes, message="note it", origin=origin)


async def space_is(host, state: PlaceState) -> None:
    """Let an owner admit, or put out, everybody of a workspace."""
    key = place_key(replace(home_of(BOB), space=SPACE))
    await host.stores.people.set_place(Place(key=key, state=state, by=None, at=host.clock.now()))


async def person_id(host, who: Sender) -> str:
    return (await host.stores.people.ensure_person(who.identity, who.name)).id


async def test_an_opened_screen_says_who_one_is_what_waits_what_runs_and_what_is_remembered(opened):
    async with opened() as host:
        screen = await opens(host)
        assert list(screen) == [GREETING, DECISIONS, DOINGS, MEMORY]
        assert screen[GREETING].text.endswith("You are owner here.")
        assert (screen[DECISIONS].text, screen[DECISIONS].cards) == ("Nothing waits.", ())
        assert screen[DOINGS].text == "Nothing."
        assert "persona.md" in screen[MEMORY].text


async def test_opening_a_screen_posts_nothing_asks_no_model_and_binds_no_conversation(opened):
    async with opened() as host:
        await opens(host)
        assert host.channel.messages == {}
        assert host.model.requests == []
        assert await host.stores.delivery.binding(home_of(ALICE).key) is None


async def test_who_may_not_talk_is_told_how_to_be_let_in_and_nothing_else(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        screen = await opens(host, SAM)
        assert list(screen) == [GREETING]
        assert screen[GREETING].text == (
            "We have not met. Write to me in a direct message: I answer with a code for my owner."
        )
        assert screen[GREETING].cards == ()


async def test_where_there_are_no_codes_none_is_promised(opened):
    async with opened(access=AccessSettings(direct_messages=DirectMessages.ALLOWLIST)) as host:
        (section,) = (await opens(host, SAM)).values()
        assert section.text == "I do not know you. My owner can add you to the allow list."


async def test_an_approval_is_decided_on_a_screen_as_on_its_card(opened):
    async with opened(ASKING, says("made x")) as host:
        await host.says("do it")
        screen = await opens(host)
        (card,) = screen[DECISIONS].cards
        assert "May I run shell?" in card.text
        assert "Asked in a direct chat on telegram." in card.text
        assert card.code == "make x"
        assert screen[DECISIONS].text == ""
        assert await presses(host, buttons(screen[DECISIONS])["Approve"]) == "Approved."
        assert host.commands == ["make x"]
        assert shown(host)[DECISIONS].text == "Nothing waits."
        assert host.seen()[0].text.startswith("Approved by Alice")
        assert host.seen()[0].buttons == {}
        assert await host.audited() == ["approval_approved"]


async def test_a_call_is_denied_with_a_reason_and_changed_in_the_forms_of_a_screen(opened):
    async with opened(ASKING, ASKING, says("made y")) as host:
        await host.says("do it")
        token = buttons((await opens(host))[DECISIONS])["Deny…"]
        assert await presses(host, token) == ""
        assert [form.token for _, form in host.channel.forms] == [token]
        assert await presses(host, token, ("reason", "use make y")) == "Denied."
        assert "They said: use make y" in (await host.returns())[0].parts[0].text
        token = buttons((await opens(host))[DECISIONS])["Edit…"]
        assert await presses(host, token, ("command", "make y")) == "Approved with your changes."
        assert host.commands == ["make y"]
        assert shown(host)[DECISIONS].cards == ()


async def test_a_press_that_comes_too_late_changes_nothing_and_the_screen_is_drawn_anew(opened):
    async with opened(ASKING, says("no")) as host:
        await host.says("do it")
        token = buttons((await opens(host))[DECISIONS])["Approve"]
        await host.presses("Deny", who=OPAL)
        assert await presses(host, token) == "Too late: It was denied by Opal."
        assert host.commands == []
        assert shown(host)[DECISIONS].text == "Nothing waits."


async def test_who_may_not_decide_sees_no_card_and_no_press_of_theirs_counts(opened):
    async with opened(ASKING) as host:
        await host.says("do it", who=MIKE, where=ELSEWHERE)
        (approval,) = await host.open_approvals()
        screen = await opens(host, MIKE)
        assert (screen[DECISIONS].text, screen[DECISIONS].cards) == ("Nothing waits.", ())
        assert "make x" not in repr(screen)
        for choice in "ycwnre":
            assert await presses(host, approval_token(approval, choice), who=MIKE) == "You may not decide this."
        assert (await host.open_approvals()) == (approval,)
        assert await host.audited() == ["approval_refused"] * 6
        assert (host.commands, host.channel.forms) == ([], [])


async def test_an_operator_decides_for_once_and_for_a_conversation_but_not_for_good(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        tokens = buttons((await opens(host, OPAL))[DECISIONS])
        always = next(token for label, token in tokens.items() if label.startswith("Always"))
        assert await presses(host, always, who=OPAL) == "You may approve this once, but not for longer."
        assert await presses(host, tokens["Approve"], who=OPAL) == "Approved."


@pytest.mark.parametrize("who", [OPAL, MIKE, SAM], ids=["an operator", "a member", "a stranger"])
@pytest.mark.parametrize("values", [(), (("command", "make y"),)], ids=["a press", "a form"])
async def test_the_screen_of_somebody_else_is_no_place_to_decide(opened, who, values):
    async with opened(ASKING) as host:
        await host.says("do it")
        (approval,) = await host.open_approvals()
        token = approval_token(approval, "e" if values else "y")
        told = await presses(host, token, *values, who=who, where=home_of(ALICE))
        assert told == "This button does not belong to this chat."
        assert (await host.stores.ledger.approval(approval.id)).state is ApprovalState.OPEN
        assert await host.audited() == ["approval_refused"]
        assert host.channel.homes == {}


@pytest.mark.parametrize(
    ("identity", "address", "is_own"),
    [
        ("telegram:111", chat("home:111"), True),
        ("slack:T0TEAM/U0A", Address(channel="slack", account="T0TEAM", chat="home:U0A"), True),
        ("slack:T0TEAM/U0A", Address(channel="slack", account="T0TEAM", chat="home:U0B"), False),
        ("slack:T0TEAM/U0A", Address(channel="slack", account="T0TEAM", chat="home:T0TEAM/U0A"), False),
        ("slack:T0TEAM/U0A", Address(channel="telegram", account="bot", chat="home:U0A"), False),
        ("telegram:111", chat("111"), False),
        ("telegram:", chat("home:"), False),
    ],
)
def test_a_screen_is_of_whoever_has_its_id_on_its_platform(identity, address, is_own):
    event = InboundEvent(
        address=address,
        key="k",
        sender=Sender(identity=identity, name="A"),
        body=HomeBody(),
        privacy=Privacy.DIRECT,
        sent_at=FakeClock().now(),
    )
    assert is_own_home(event) is is_own


async def test_what_only_one_person_may_see_of_memory_is_on_nobody_elses_screen(opened):
    """Invariant 16."""
    async with opened() as host:
        word = f"person:{await person_id(host, MIKE)}"
        await keeps(host, {"party.md": f"description: for Mike\naudience: {word}"}, word)
        assert "party.md" in (await opens(host, MIKE))[MEMORY].text
        for who in (ALICE, OPAL):
            assert "party" not in repr(await opens(host, who))
            assert "for Mike" not in repr(shown(host, who))


async def test_memory_is_a_tree_of_names_sizes_and_descriptions_without_contents_and_hidden_files(opened):
    async with opened() as host:
        await keeps(
            host,
            {
                "notes/MEMORY.md": "description: notes",
                "notes/party.md": "description: what comes\nlimit: 5000",
                "notes/secret.md": "description: unseen\nhidden: true",
            },
        )
        lines = (await opens(host))[MEMORY].text.splitlines()
        assert lines[0] == lines[-1] == "```"
        start = lines.index("notes/")
        assert lines[start + 1 : start + 3] == [
            "  MEMORY.md  (24 of 20,000 characters)  notes",
            "  party.md  (24 of 5,000 characters)  what comes",
        ]
        assert "Sunday" not in repr(lines)
        assert "unseen" not in repr(lines)


async def test_of_many_files_a_hundred_are_shown_and_the_rest_is_counted(opened):
    async with opened() as host:
        await keeps(host, {f"many/{name}.md": "description: one of many" for name in ("MEMORY", *range(119))})
        held = len((await host.memory.snapshot(host.agent.memory_id, Audience())).files)
        lines = (await opens(host))[MEMORY].text.splitlines()
        assert held > 120
        assert lines[-2] == f"… and {held - 100} more: /memory lists all."
        assert len([line for line in lines if "characters" in line]) == 100


async def test_nothing_in_a_description_ends_the_block_it_stands_in(opened):
    async with opened() as host:
        await keeps(host, {"notes.md": "description: 'a ```` b'"})
        text = (await opens(host))[MEMORY].text
        assert text.startswith("`````\n")
        assert text.endswith("\n`````")


async def test_a_secret_is_masked_on_a_screen(opened):
    """Invariant 10."""
    async with opened(asks(tool_call("a", "shell", json.dumps({"command": f"login {SECRET}"})))) as host:
        await host.says("do it")
        (card,) = (await opens(host))[DECISIONS].cards
        assert card.code == "login [secret password]"
        assert SECRET not in repr(host.channel.homes)


async def test_a_call_that_no_card_holds_is_not_decided_where_its_end_is_not_seen(opened):
    long = "echo " + "a" * WITH_FORMS.code_limit
    async with opened(asks(tool_call("a", "shell", json.dumps({"command": long})))) as host:
        await host.says("do it")
        (card,) = (await opens(host))[DECISIONS].cards
        assert card.text.endswith("It is too long to be shown here: decide it where I asked.")
        assert card.rows == ()


async def test_what_has_expired_is_offered_to_nobody_any_more(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        await host.clock.advance(timedelta(hours=25))
        await host.arrives(HomeBody(), where=home_of(ALICE))
        await host.settle(INBOX_QUEUE)
        assert len(await host.open_approvals()) == 1
        assert shown(host)[DECISIONS].cards == ()


async def test_a_turn_is_shown_to_who_asked_for_it_alone_while_it_runs_and_waits(opened):
    step = ScriptedStep(pieces=("Working", " on it"), gate=asyncio.Event(), calls=ASKING.calls)
    async with opened(step, says("made")) as host:
        await host.arrives(MessageBody(text="do it"), who=MIKE, where=ELSEWHERE)
        async with asyncio.TaskGroup() as group:
            group.create_task(host.settle(INBOX_QUEUE, CONVERSATION_QUEUE))
            await host.until(lambda: host.model.requests)
            for who in (MIKE, ALICE):
                await host.arrives(HomeBody(), who=who, where=home_of(who))
                await host.ring(INBOX_QUEUE, home_of(who).key)
            assert shown(host, MIKE)[DOINGS].text == (
                "- Working, step 1, in a direct chat on telegram, since 01 Jan 12:00"
            )
            assert shown(host)[DOINGS].text == "Nothing."
            step.gate.set()
        await host.settle()
        assert "- Waiting for a decision, in a direct chat" in (await opens(host, MIKE))[DOINGS].text
        assert (await opens(host))[DOINGS].text == "Nothing."
        await host.presses("Approve", where=ELSEWHERE)
        assert (await opens(host, MIKE))[DOINGS].text == "Nothing."


async def test_a_turn_that_waits_since_an_earlier_start_is_shown_as_well(opened):
    kept = {"database": Database.open(":memory:"), "memory": FakeMemoryStore()}
    async with opened(ASKING, **kept) as first:
        await first.says("do it")
    async with opened(**kept) as second:
        assert "- Waiting for a decision" in (await opens(second))[DOINGS].text
    await kept["database"].close()


async def test_what_was_asked_in_a_group_says_in_which(opened):
    async with opened(ASKING) as host:
        await admitted(host)
        await mentions(host, "do it", who=ALICE)
        screen = await opens(host)
        assert "Asked in -100 on telegram." in screen[DECISIONS].cards[0].text
        assert f"in {GROUP.chat} on telegram, since" in screen[DOINGS].text


async def test_open_screens_are_drawn_again_when_something_is_asked_and_when_it_is_decided(opened):
    async with opened(ASKING, says("made")) as host, drawing(host):
        await opens(host)
        await host.says("do it", who=MIKE, where=ELSEWHERE)
        await host.until(lambda: shown(host)[DECISIONS].cards)
        await host.presses("Approve", who=OPAL, where=ELSEWHERE)
        await host.until(lambda: not shown(host)[DECISIONS].cards)
        assert set(host.channel.drawn) == {user(ALICE)}


async def test_open_screens_are_drawn_again_when_a_question_ends_undecided(opened):
    async with opened(ASKING, says("then not")) as host, drawing(host):
        await host.says("do it")
        assert (await opens(host))[DECISIONS].cards
        await host.passes(timedelta(hours=25))
        await host.until(lambda: not shown(host)[DECISIONS].cards)


async def test_who_has_lost_the_right_to_talk_loses_what_their_open_screen_showed(opened):
    async with opened(ASKING) as host, drawing(host):
        await space_is(host, PlaceState.ADMITTED)
        assert MEMORY in await opens(host, BOB, space=SPACE)
        await space_is(host, PlaceState.REFUSED)
        await host.says("do it")
        await host.until(lambda: list(shown(host, BOB)) == [GREETING])
        assert "We have not met." in shown(host, BOB)[GREETING].text


async def test_who_may_talk_as_one_of_a_workspace_is_drawn_again_as_one(opened):
    async with opened(ASKING) as host, drawing(host):
        await space_is(host, PlaceState.ADMITTED)
        await opens(host, BOB, space=SPACE)
        await host.says("do it")
        await host.until(lambda: host.channel.drawn == [user(BOB)] * 2)
        assert list(shown(host, BOB)) == [GREETING, DECISIONS, DOINGS, MEMORY]
        assert shown(host, BOB)[DECISIONS].cards == ()


async def test_who_has_become_a_guest_is_drawn_as_one_from_their_next_opening_on(opened):
    async with opened(ASKING) as host, drawing(host):
        await space_is(host, PlaceState.ADMITTED)
        await opens(host)
        assert MEMORY in await opens(host, BOB, space=SPACE)
        assert list(await opens(host, replace(BOB, is_guest=True), space=SPACE)) == [GREETING]
        await host.says("do it")
        await host.until(lambda: shown(host)[DECISIONS].cards)
        await host.until(lambda: host.channel.drawn.count(user(ALICE)) == 2)
        assert list(shown(host, BOB)) == [GREETING]


async def test_the_screen_of_a_stranger_is_drawn_when_it_is_opened_and_not_again(opened):
    async with opened(ASKING) as host, drawing(host):
        await opens(host, SAM)
        await opens(host)
        await host.says("do it")
        await host.until(lambda: host.channel.drawn.count(user(ALICE)) == 2)
        assert host.channel.drawn.count(user(SAM)) == 1


async def test_of_many_screens_those_that_were_opened_last_are_drawn_again(opened):
    async with opened(ASKING, access=AccessSettings(direct_messages=DirectMessages.OPEN)) as host:
        people = [Sender(identity=f"{CHANNEL}:9{number:03}", name="Somebody") for number in range(REMEMBERED - 1)]
        for who in (ALICE, MIKE, *people[1:], ALICE):
            await opens(host, who)
        await opens(host, people[0])
        host.channel.drawn.clear()
        async with drawing(host):
            await host.says("do it")
            await host.until(lambda: user(people[0]) in host.channel.drawn)
        assert host.channel.drawn == [user(who) for who in (*people[1:], ALICE, people[0])]


async def test_a_screen_that_cannot_be_drawn_is_logged_and_the_event_is_done(opened, caplog):
    async with opened() as host:
        host.channel.broken = 1
        assert await opens(host) == {}
        (record,) = [record for record in caplog.records if record.message == "home_not_drawn"]
        assert (record.levelname, record.channel) == ("WARNING", CHANNEL)
        assert await host.stores.delivery.new_events(home_of(ALICE).key) == ()
        assert host.channel.messages == {}
        assert DECISIONS in await opens(host)


async def test_a_screen_that_could_not_be_drawn_is_tried_again_with_the_next_change(opened):
    async with opened(ASKING, says("made")) as host, drawing(host):
        host.channel.broken = 2
        await opens(host)
        await host.says("do it")
        await host.until(lambda: len(host.channel.drawn) == 2)
        assert shown(host) == {}
        await host.presses("Approve")
        await host.until(lambda: DECISIONS in shown(host))


async def test_one_screen_that_fails_keeps_no_other_from_being_drawn(opened):
    async with opened(ASKING) as host, drawing(host):
        await opens(host, OPAL)
        await opens(host)
        host.channel.broken = 1
        await host.says("do it")
        await host.until(lambda: shown(host)[DECISIONS].cards)
        assert shown(host, OPAL)[DECISIONS].cards == ()


async def test_a_decision_counts_even_where_the_screen_cannot_be_drawn_behind_it(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        token = buttons((await opens(host))[DECISIONS])["Approve"]
        host.channel.broken = 1
        assert await presses(host, token) == "Approved."
        assert host.commands == ["make x"]


async def test_a_store_that_cannot_be_read_is_a_failure_of_the_one_drawing(opened, caplog):
    class Unread(FakeMemoryStore):
        fails = False

        async def snapshot(self, memory_id, audience, *, at=None):
            if self.fails:
                raise StoreUnavailable("gone")
            return await super().snapshot(memory_id, audience, at=at)

    memory = Unread()
    async with opened(memory=memory) as host:
        memory.fails = True
        assert await opens(host) == {}
        assert "home_not_drawn" in caplog.messages
        memory.fails = False
        assert MEMORY in await opens(host)


async def test_where_a_channel_has_no_screens_an_opening_is_logged_and_done(opened, caplog):
    async with opened() as host:
        where = Address(channel="terminal", account="local", chat="home:owner")
        await host.arrives(HomeBody(), who=Sender(identity="local:owner", name="Alice"), where=where)
        await host.settle()
        assert "home_not_drawn" in caplog.messages
        assert await host.stores.delivery.new_events(where.key) == ()
