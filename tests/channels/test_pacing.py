import asyncio
from datetime import timedelta

from channels.pacing import ChatPacer
from core.contracts.clock import FakeClock

SECOND = timedelta(seconds=1)


class Chat:
    """Calls under a pacer, with the time at which each went out."""

    def __init__(self):
        self.clock = FakeClock()
        self.pacer = ChatPacer(self.clock, lambda _chat: SECOND)
        self.log = []
        self.tasks = []

    async def start(self, name, *, chat="1", kind="final"):
        self.tasks.append(asyncio.create_task(self._call(name, chat, kind)))
        for _ in range(5):
            await asyncio.sleep(0)

    async def _call(self, name, chat, kind):
        turn = self.pacer.final(chat) if kind == "final" else self.pacer.preview(chat)
        async with turn:
            self.log.append((name, self.clock.monotonic()))

    async def finish(self, seconds):
        for _ in range(seconds * 10):
            await self.clock.advance(SECOND / 10)
        await asyncio.gather(*self.tasks)

    def times(self):
        return {name: round(at, 1) for name, at in self.log}


async def test_the_first_call_of_an_idle_chat_goes_out_at_once():
    chat = Chat()
    await chat.start("a")

    assert chat.log == [("a", 0.0)]


async def test_previews_keep_the_interval():
    chat = Chat()
    for name in ("a", "b", "c"):
        await chat.start(name, kind="preview")
    await chat.finish(3)

    assert chat.times() == {"a": 0.0, "b": 1.0, "c": 2.0}


async def test_a_final_may_run_one_call_ahead_and_the_next_pays_it_back():
    chat = Chat()
    await chat.start("preview", kind="preview")
    await chat.start("final")
    await chat.start("card")
    await chat.start("notice", kind="preview")
    await chat.finish(4)

    assert chat.times() == {"preview": 0.0, "final": 0.0, "card": 1.0, "notice": 3.0}


async def test_finals_go_in_the_order_they_came_at_the_pace():
    chat = Chat()
    for number in range(5):
        await chat.start(number)
    await chat.finish(5)

    assert [name for name, _ in chat.log] == [0, 1, 2, 3, 4]
    assert chat.log[-1][1] - chat.log[1][1] >= 2.9


async def test_a_final_overtakes_a_preview_that_waits():
    chat = Chat()
    await chat.start("first", kind="preview")
    await chat.start("waiting preview", kind="preview")
    await chat.start("final")
    await chat.finish(4)

    assert [name for name, _ in chat.log] == ["first", "final", "waiting preview"]


async def test_nothing_goes_out_before_the_time_the_platform_asked_for_c15():
    chat = Chat()
    chat.pacer.hold("1", 25 * SECOND)
    await chat.start("final")
    await chat.start("preview", kind="preview")
    await chat.clock.advance(24.9 * SECOND)
    assert chat.log == []
    assert chat.pacer.is_held("1")
    await chat.finish(3)

    assert chat.times() == {"final": 25.0, "preview": 26.0}


async def test_a_hold_that_is_prolonged_while_a_final_waits_binds_it_too():
    chat = Chat()
    chat.pacer.hold("1", 5 * SECOND)
    await chat.start("final")
    await chat.clock.advance(4 * SECOND)
    chat.pacer.hold("1", 10 * SECOND)
    chat.pacer.hold("1", SECOND)
    await chat.finish(11)

    assert chat.times() == {"final": 14.0}


async def test_other_chats_are_not_delayed_c15():
    chat = Chat()
    chat.pacer.hold("1", 60 * SECOND)
    await chat.start("held")
    await chat.start("free", chat="2")

    assert chat.log == [("free", 0.0)]
    await chat.finish(61)


async def test_calls_of_one_chat_never_overlap():
    clock = FakeClock()
    pacer = ChatPacer(clock, lambda _chat: timedelta(0))
    inside, most = 0, 0

    async def call(kind):
        nonlocal inside, most
        async with pacer.final("1") if kind else pacer.preview("1"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(call(number % 2) for number in range(20)))

    assert most == 1


async def test_a_cancelled_waiter_frees_its_place():
    chat = Chat()
    chat.pacer.hold("1", 5 * SECOND)
    await chat.start("cancelled")
    await chat.start("next")
    chat.tasks[0].cancel()
    await asyncio.wait({chat.tasks.pop(0)})
    await chat.finish(6)

    assert chat.times() == {"next": 5.0}


async def test_idle_chats_are_forgotten_and_held_ones_are_not():
    chat = Chat()
    chat.pacer.hold("held", timedelta(days=1))
    for number in range(3_000):
        await chat.start(number, chat=str(number))
        if number % 500 == 0:
            await chat.clock.advance(2 * SECOND)

    assert len(chat.pacer._lanes) <= 1_500
    assert chat.pacer.is_held("held")
