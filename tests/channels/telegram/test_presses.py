import asyncio

import pytest

from core.contracts.addresses import Button, CardContent, OutboundItem, PressBody
from tests.channels.telegram.conftest import ALICE

CARD = OutboundItem(
    id="t/1", address=ALICE, content=CardContent(text="Run?", rows=((Button(token="tok", label="Approve"),),))
)


class StuckSink:
    """A store that takes its time."""

    def __init__(self):
        self.entered = asyncio.Event()

    async def accept(self, event):
        self.entered.set()
        await asyncio.Event().wait()


async def pressed(world):
    card = int(await world.channel.deliver(CARD))
    return card, world.server.press(111, card, "tok")


@pytest.mark.parametrize("ahead", [0, 3])
async def test_a_press_is_answered_within_a_second_while_the_store_is_stuck_c27(world, ahead):
    sink = StuckSink()
    for number in range(ahead):
        world.server.user_says(111, f"message {number}")
    _, query = await pressed(world)
    world.tasks.append(asyncio.create_task(world.channel.run(sink)))
    await sink.entered.wait()
    await world.pass_time(1, step=0.1)

    assert world.server.answers == {query: ""}


async def test_the_hosts_text_is_the_answer_when_it_comes_in_time_c27(world):
    _, query = await pressed(world)
    world.run()
    await world.until(lambda: world.sink.events)
    await world.channel.acknowledge(world.sink.events[0].body, "Only Bob may approve this.")
    await world.pass_time(2, step=0.5)

    assert world.server.answers == {query: "Only Bob may approve this."}
    assert len(world.server.calls_of("answerCallbackQuery")) == 1


async def test_an_answer_that_comes_too_late_or_twice_raises_nothing_c27(world):
    _, query = await pressed(world)
    world.run()
    await world.until(lambda: world.sink.events)
    await world.pass_time(20, step=0.5)
    await world.channel.acknowledge(world.sink.events[0].body, "late")
    await world.channel.acknowledge(world.sink.events[0].body, "later")

    assert world.server.answers == {query: ""}


async def test_a_press_made_before_the_start_is_heard_though_it_cannot_be_answered_c27(world):
    await pressed(world)
    await world.pass_time(20)
    world.run()
    await world.until(lambda: world.sink.events)
    await world.pass_time(2, step=0.5)

    assert world.sink.events[0].body.token == "tok"
    assert world.server.answers == {}


async def test_a_long_notice_is_cut_to_what_an_answer_takes(world):
    _, query = await pressed(world)
    await world.channel.acknowledge(PressBody(token="tok", card="1", acknowledge=query), "x" * 500)

    assert world.server.answers == {query: "x" * 200}


async def test_no_answer_is_made_after_run_has_ended(world):
    await pressed(world)
    task = world.run()
    await world.until(lambda: world.sink.events)
    await world.stop(task)
    await world.pass_time(2, step=0.5)

    assert world.server.calls_of("answerCallbackQuery") == []
