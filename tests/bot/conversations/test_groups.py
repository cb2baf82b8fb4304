"""A group is admitted once, by an owner; before that the agent asks there and does nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.config.model import PermissionSettings
from bot.conversations.groups import NOT_AN_OWNER, GroupDesk
from core.contracts.addresses import MembershipBody, MessageBody, OutboundItem, PressBody, Privacy, TextContent
from core.contracts.delivery import InboxState
from core.contracts.errors import SendRejected, StoreUnavailable
from core.contracts.messages import ReturnOutcome
from core.contracts.people import PlaceState
from core.contracts.permissions import Action, PersonRole
from core.models.scripted import asks, says, tool_call
from core.permissions.rules import make_rule
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.grouping import (
    BOB,
    GROUP,
    PEER,
    TOPIC,
    admitted,
    arrives,
    comes,
    goes,
    mentions,
    place_of,
    presses,
    talks,
)
from tests.bot.conversations.hosting import ALICE, MIKE, OPAL, SAM, chat, hosting, make_settings

ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))
MADE = {"make x": FakeOutcome(output=b"made")}


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or [says("one"), says("two"), says("three")]), outcomes=MADE, **more)

    return open_host


def cards(host, where=GROUP) -> list[list[str]]:
    return [list(message.buttons) for message in host.seen(where)]


async def test_a_group_that_lets_the_agent_in_is_asked_about_there(opened):
    async with opened() as host:
        await comes(host)
        assert cards(host) == [["Allow here", "Leave"]]
        assert "owner" in host.texts(GROUP)[0]
        assert (await place_of(host)).state is PlaceState.ASKED


@pytest.mark.parametrize("who", [BOB, ALICE, MIKE], ids=["anybody", "an owner", "a member"])
async def test_until_an_owner_allows_it_there_is_one_card_and_no_run_however_much_is_said(opened, who):
    async with opened() as host:
        for text in ("hi", "/help", "hello?", "/pair ABC"):
            await mentions(host, text, who=who)
        await talks(host, "strange thing")
        await comes(host)
        assert cards(host) == [["Allow here", "Leave"]]
        assert host.model.requests == []


async def test_the_threads_of_a_group_are_asked_about_once(opened):
    async with opened() as host:
        for thread in ("7", "8", None):
            await mentions(host, "hi", where=chat("-100", thread))
        assert [len(cards(host, chat("-100", thread))) for thread in ("7", "8", None)] == [1, 0, 0]


@pytest.mark.parametrize("who", [MIKE, OPAL, BOB, SAM], ids=["member", "operator", "anybody", "stranger"])
@pytest.mark.parametrize("token", ["g:allow", "g:leave"])
async def test_only_an_owners_press_counts(opened, who, token):
    async with opened() as host:
        await comes(host)
        assert await presses(host, token, who=who) == NOT_AN_OWNER
        assert (await place_of(host)).state is PlaceState.ASKED
        assert (cards(host), host.channel.left) == ([["Allow here", "Leave"]], [])


async def test_what_an_owner_allows_is_on_record_and_the_card_says_who_did(opened):
    async with opened() as host:
        await comes(host)
        assert await presses(host, "g:allow") == "I work here now."
        assert (cards(host), host.texts(GROUP)) == ([[]], ["Alice lets me work here. Mention me, and I answer."])
        place = await place_of(host)
        assert (place.state, place.by) == (
            PlaceState.ADMITTED,
            (await host.stores.people.person_of(ALICE.identity)).id,
        )
        assert "group_admitted" in await host.audited()


@pytest.mark.parametrize("who", [BOB, SAM, MIKE, ALICE], ids=["anybody", "stranger", "member", "owner"])
async def test_in_an_admitted_group_everybody_may_talk_in_every_thread(opened, who):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", who=who)
        await mentions(host, "hi", who=who, where=TOPIC)
        assert (host.texts(GROUP), host.texts(TOPIC)) == (["one"], ["two"])


async def test_whoever_may_talk_in_a_group_may_not_in_a_direct_chat(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi")
        await host.says("hi", who=BOB, where=chat("555"))
        assert "We have not met" in host.texts(chat("555"))[0]


async def test_a_group_makes_nobody_more_than_a_member(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "/whoami")
        assert "member here" in host.texts(GROUP)[-1]
        await mentions(host, "/pair ABC")
        assert host.texts(GROUP)[-1] == "/pair is for an owner of this agent."
        person = await host.stores.people.person_of(BOB.identity)
        assert await host.app.worker._ports.access.role_of(person.id, at=GROUP) is PersonRole.MEMBER
        assert await host.app.worker._ports.access.role_of(person.id) is PersonRole.STRANGER


async def test_approvals_are_decided_by_buttons_in_a_group(opened):
    async with opened(ASKING, says("made")) as host:
        await admitted(host)
        await mentions(host, "make it")
        card = host.card_with("Approve", GROUP)
        assert await presses(host, card.buttons["Approve"], who=BOB) == "You may not decide this."
        assert await presses(host, card.buttons["Approve"], who=OPAL) == "Approved."
        assert host.commands == ["make x"]


async def test_what_was_said_before_the_group_was_admitted_is_never_told_to_the_agent(opened):
    async with opened() as host:
        await talks(host, "between ourselves")
        await host.clock.advance(timedelta(seconds=1))
        await admitted(host)
        await mentions(host, "hi")
        assert "between ourselves" not in repr(host.model.requests)


async def test_an_owner_can_send_the_agent_away(opened):
    async with opened() as host:
        await comes(host)
        assert await presses(host, "g:leave") == "I have left."
        assert host.channel.left == [GROUP]
        assert (await place_of(host)).state is PlaceState.LEFT
        assert "group_left" in await host.audited()


async def test_a_group_that_cannot_be_left_is_told_so_and_can_be_left_later(opened):
    async with opened() as host:
        await comes(host)
        host.channel.fail_next_leave(SendRejected("not enough rights"))
        assert "could not leave" in await presses(host, "g:leave")
        assert (await place_of(host)).state is PlaceState.REFUSED
        assert "Alice does not want me here, but I could not leave" in host.texts(GROUP)[0]
        await mentions(host, "hi")
        assert host.model.requests == []
        assert await presses(host, "g:leave") == "I have left."


@pytest.mark.parametrize(("first", "then"), [("g:allow", "g:leave"), ("g:leave", "g:allow")])
async def test_the_first_decision_stands(opened, first, then):
    async with opened() as host:
        await comes(host)
        await presses(host, first)
        before = await place_of(host)
        assert await presses(host, then) == "This was decided already."
        assert await place_of(host) == before


async def test_a_press_where_nobody_was_asked_is_unknown(opened):
    async with opened() as host:
        assert await presses(host, "g:allow") == "This button is not known here any more."
        assert await place_of(host) is None


async def test_a_removal_ends_the_admission_and_coming_back_asks_anew(opened):
    async with opened() as host:
        await admitted(host)
        await goes(host)
        assert (await place_of(host)).state is PlaceState.LEFT
        await host.clock.advance(timedelta(minutes=1))
        await comes(host)
        assert cards(host) == [["Allow here", "Leave"]]
        await mentions(host, "hi")
        assert host.model.requests == []
        await presses(host, "g:allow")
        await mentions(host, "hi")
        assert host.texts(GROUP)[-1] == "one"


async def test_a_message_from_before_the_removal_does_not_ask_anew_and_one_from_after_it_does(opened):
    """A platform may tell of messages late, and of being added again not at all."""
    async with opened() as host:
        await admitted(host)
        await goes(host)
        await mentions(host, "sent at the same time")
        assert cards(host) == []
        await host.clock.advance(timedelta(minutes=1))
        await mentions(host, "hello again")
        assert cards(host) == [["Allow here", "Leave"]]


async def test_a_removal_withdraws_what_waits_there_in_any_thread_and_nothing_elsewhere(opened):
    async with opened(ASKING, ASKING, ASKING) as host:
        await admitted(host)
        elsewhere = chat("-1001")
        await arrives(host, MembershipBody(present=True), where=elsewhere)
        await presses(host, "g:allow", where=elsewhere)
        for where in (GROUP, TOPIC, elsewhere):
            await mentions(host, "make it", where=where)
            await mentions(host, "and?", where=where)
        await goes(host)
        left = [
            (await host.stores.delivery.inbox_of(where.key))[-1 if where is TOPIC else -2].state
            for where in (GROUP, TOPIC)
        ]
        assert left == [InboxState.WITHDRAWN, InboxState.WITHDRAWN]
        assert len(await host.stores.delivery.queued(await host.conversation_id(elsewhere))) == 1
        assert len(await host.open_approvals()) == 3


async def test_an_approval_of_a_group_that_is_gone_is_decided_elsewhere(opened):
    async with opened(ASKING, says("made")) as host:
        await admitted(host)
        await mentions(host, "make it")
        await goes(host)
        (approval,) = await host.open_approvals()
        await host.says(f"/approvals {approval.id} approve")
        assert host.commands == ["make x"]


async def test_a_direct_chat_is_no_group(opened):
    async with opened() as host:
        await host.arrives(MembershipBody(present=True))
        await host.arrives(MembershipBody(present=False))
        await host.says("hi")
        assert host.texts() == ["one"]


async def test_a_bot_alone_does_not_have_the_group_asked_about(opened):
    async with opened() as host:
        await mentions(host, "hello", who=PEER)
        assert cards(host) == []


async def test_a_group_that_was_told_by_an_earlier_version_that_it_is_not_served_is_asked_about(opened):
    async with opened() as host:
        told = TextContent(markdown="I only work in direct chats for now; write to me there.")
        await host.stores.delivery.post([OutboundItem(id=f"group/{GROUP.key}", address=GROUP, content=told)])
        await mentions(host, "hi")
        assert cards(host) == [[], ["Allow here", "Leave"]]


class FailingAfter:
    """A store with a method that is carried out and does not return: a crash between two steps."""

    def __init__(self, inner, name: str) -> None:
        self._inner = inner
        self._name = name

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name != self._name:
            return method

        async def carried_out_and_lost(*args, **more):
            await method(*args, **more)
            raise StoreUnavailable("crashed here")

        return carried_out_and_lost


def desk(host, **stores) -> GroupDesk:
    """Return a desk of its own on the host's stores, or on others in their place."""
    ports = {name: getattr(host.stores, name) for name in ("people", "delivery", "transcripts")}
    return GroupDesk(**{**ports, **stores}, channels=host.app.channels, clock=host.clock)


@pytest.mark.parametrize(("store", "step"), [("delivery", "post"), ("people", "set_place")])
async def test_asking_that_is_cut_off_between_two_steps_is_done_again_without_a_second_card(opened, store, step):
    async with opened() as host:
        await host.arrives(MessageBody(text="hi"), who=BOB, where=GROUP, privacy=Privacy.PRIVATE_GROUP)
        (row,) = await host.stores.delivery.new_events(GROUP.key)
        cut_off = desk(host, **{store: FailingAfter(getattr(host.stores, store), step)})
        with pytest.raises(StoreUnavailable):
            await cut_off.admits(row)
        await host.settle()
        assert cards(host) == [["Allow here", "Leave"]]
        assert (await place_of(host)).state is PlaceState.ASKED


@pytest.mark.parametrize(
    ("store", "step", "allow", "state"),
    [
        ("people", "set_place", True, PlaceState.ADMITTED),
        ("people", "record", True, PlaceState.ADMITTED),
        ("delivery", "amend", True, PlaceState.ADMITTED),
        ("people", "set_place", False, PlaceState.LEFT),
        ("people", "record", False, PlaceState.LEFT),
    ],
)
async def test_a_decision_that_is_cut_off_between_two_steps_is_done_again(opened, store, step, allow, state):
    async with opened() as host:
        await comes(host)
        token = "g:allow" if allow else "g:leave"
        await host.arrives(PressBody(token=token, card="1"), where=GROUP, privacy=Privacy.PRIVATE_GROUP)
        (row,) = await host.stores.delivery.new_events(GROUP.key)
        who = await host.app.router._ports.access.standing_at(row.event)
        cut_off = desk(host, **{store: FailingAfter(getattr(host.stores, store), step)})
        with pytest.raises(StoreUnavailable):
            await cut_off.decide(row.event, who, allow=allow)
        await host.settle()
        assert (await place_of(host)).state is state
        assert host.channel.acknowledgements[-1][1] in {"I work here now.", "I have left."}
        assert host.channel.left == ([] if allow else [GROUP] * len(host.channel.left))


@pytest.mark.parametrize("who", [MIKE, BOB], ids=["listed", "there alone"])
async def test_a_rule_for_members_binds_everybody_in_an_admitted_group(tmp_path, who):
    deny = make_rule(tool="read", action=Action.DENY, role=PersonRole.MEMBER)
    settings = make_settings(tmp_path, permissions=PermissionSettings(rules=(deny,)))
    asking = asks(tool_call("a", "read", '{"path":"plan.txt"}'))
    async with hosting(tmp_path, asking, says("I may not."), settings=settings) as host:
        (tmp_path / "workspace" / "plan.txt").write_text("internal")
        await admitted(host)
        await mentions(host, "read it", who=who)
        assert [found.outcome for found in await host.returns(GROUP)] == [ReturnOutcome.DENIED]
