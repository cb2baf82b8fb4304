"""Owners are told where they can still be reached."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.alerts import OwnerAlerts
from bot.conversations.access import LOCAL_OWNER
from channels.fake import FakeChannel
from channels.feed import FeedChannel
from core.contracts.addresses import Address, TextContent
from core.contracts.agents import EVERYONE, Audience
from core.contracts.delivery import Binding, chat_key
from tests.core.stores.samples import AGENT, World, agent, conversation, open_world

ALICE = "telegram:111"


@pytest.fixture
async def world(tmp_path):
    async with open_world(tmp_path / "host.db") as opened:
        await opened.stores.transcripts.insert_agent(agent())
        yield opened


def alerts(world: World, *owners: str) -> OwnerAlerts:
    channels = {
        "telegram": FakeChannel(name="telegram"),
        "slack": FakeChannel(name="slack"),
        "web": FeedChannel("web", world.clock),
    }
    return OwnerAlerts(
        people=world.stores.people,
        delivery=world.stores.delivery,
        channels=channels,
        local={"web"},
        owners=lambda: owners,
        clock=world.clock,
    )


async def talks_alone(world: World, identity: str, channel: str, chat: str = "111") -> Address:
    """Let a person have a direct chat of their own."""
    person = await world.stores.people.ensure_person(identity, "Alice")
    held = replace(
        conversation(f"conv-{channel}-{chat}"), audience=Audience(words=frozenset({EVERYONE, f"person:{person.id}"}))
    )
    await world.stores.transcripts.insert_conversation(held)
    address = Address(channel=channel, account="bot", chat=chat)
    await world.stores.delivery.bind(Binding(address=address, agent_id=AGENT, conversation_id=held.id))
    return address


async def told(world: World, address: Address) -> list[str]:
    rows = await world.stores.delivery.outgoing(chat_key(address))
    return [row.item.content.markdown for row in rows if isinstance(row.item.content, TextContent)]


async def test_an_owner_is_told_on_another_channel_than_the_one_in_trouble(world: World):
    here = await talks_alone(world, ALICE, "telegram")
    await world.stores.people.link("slack:U1", (await world.stores.people.ensure_person(ALICE, "")).id)
    there = await talks_alone(world, ALICE, "slack", "D1")
    assert await alerts(world, ALICE).tell("deaf", "I do not hear telegram.", not_on="telegram") == 1
    assert await told(world, there) == ["I do not hear telegram."]
    assert await told(world, here) == []


async def test_a_platform_is_preferred_to_this_machines_own_page(world: World):
    await talks_alone(world, ALICE, "web", "main")
    there = await talks_alone(world, ALICE, "slack", "D1")
    assert await alerts(world, ALICE).tell("x", "Look.") == 1
    assert await told(world, there) == ["Look."]


async def test_whoever_sits_at_this_machine_is_told_on_the_page(world: World):
    page = await talks_alone(world, LOCAL_OWNER, "web", "main")
    assert await alerts(world).tell("x", "Look.", not_on="telegram") == 1
    assert await told(world, page) == ["Look."]


async def test_an_owner_nobody_has_heard_of_is_no_failure(world: World):
    assert await alerts(world, ALICE, "slack:U9").tell("x", "Look.") == 0


async def test_a_store_that_fails_stops_nobody(world: World):
    await world.stores.database.close()
    assert await alerts(world, ALICE).tell("x", "Look.") == 0


async def test_two_troubles_of_one_kind_within_a_second_are_both_told(world):
    home = await talks_alone(world, ALICE, "telegram")
    desk = alerts(world, ALICE)

    await desk.tell("reload", "The first is refused.")
    await world.clock.advance(timedelta(milliseconds=300))
    await desk.tell("reload", "The second is refused.")

    assert await told(world, home) == ["The first is refused.", "The second is refused."]
