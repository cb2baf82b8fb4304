"""What follows when a handler has failed again and again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.app import _give_up
from core.contracts.addresses import Address, MessageBody
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE, InboxState, OutboxState, chat_key
from core.contracts.errors import StorageFull, StoreUnavailable
from core.models.scripted import says
from core.turns.outcomes import OUTCOMES, TurnOutcome
from tests.bot.conversations.hosting import HERE, SECRET, hosting

QUEUES = (CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE)
FULL = StorageFull("no space left")


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps):
        return hosting(tmp_path, *steps)

    return open_host


async def test_an_error_of_the_store_gives_nothing_up(opened):
    """Nothing could be recorded: the engine rests and tries again, and what waits stays as it is."""
    errors = [
        FULL,
        StoreUnavailable("locked"),
        ExceptionGroup("turn", [FULL]),
        ExceptionGroup("turn", [ValueError("first"), ExceptionGroup("step", [FULL])]),
    ]
    async with opened(says("Hello")) as host:
        await host.says("/help")
        await host.arrives(MessageBody(text="hi"))
        conversation_id = await host.conversation_id()
        before = len(host.seen())
        for error in errors:
            for queue in QUEUES:
                key = {CONVERSATION_QUEUE: conversation_id, INBOX_QUEUE: HERE.key, OUTBOX_QUEUE: chat_key(HERE)}[queue]
                with pytest.raises(type(error)) as raised:
                    await _give_up(host.app)(queue, key, error)
                assert raised.value is error
        assert len(host.seen()) == before
        await host.settle()
        assert host.texts()[-1] == "Hello"


async def test_a_conversation_that_is_given_up_ends_in_a_visible_error_without_secrets(opened):
    async with opened(says("Hello")) as host:
        await host.says("/help")
        await host.arrives(MessageBody(text="hi"))
        failure = ExceptionGroup("turn", [KeyError(SECRET)])
        await _give_up(host.app)(CONVERSATION_QUEUE, await host.conversation_id(), failure)
        await _give_up(host.app)(CONVERSATION_QUEUE, await host.conversation_id(), KeyError(SECRET))
        await host.settle()
        assert OUTCOMES[TurnOutcome.ERROR].notice in host.texts()
        assert SECRET not in " ".join(host.texts())
        assert SECRET not in (await host.latest_turn()).error


async def test_an_event_that_is_given_up_is_put_aside_and_its_sender_is_told(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="/help"))
        await _give_up(host.app)(INBOX_QUEUE, HERE.key, RuntimeError("a command breaks"))
        await host.settle()
        assert host.texts() == ["I could not handle this message. My operator can see why."]
        assert [row.state for row in await host.stores.delivery.inbox_of(HERE.key)] == [InboxState.DONE]


async def test_a_message_that_is_given_up_is_failed_with_a_masked_reason(opened):
    async with opened() as host:
        await host.arrives(MessageBody(text="/help"))
        await host.settle(INBOX_QUEUE)
        (waiting,) = await host.stores.delivery.outgoing(chat_key(HERE))
        await _give_up(host.app)(OUTBOX_QUEUE, chat_key(HERE), RuntimeError(f"bad {SECRET}"))
        await host.settle()
        row = await host.stores.delivery.outbox_row(waiting.item.id)
        assert (row.state, row.error) == (OutboxState.FAILED, "bad [secret password]")
        assert [text for text in host.texts() if not text.startswith("I gave up on")] == []


async def test_an_unknown_queue_is_nobodys_business(opened):
    async with opened() as host:
        await _give_up(host.app)("elsewhere", Address(channel="x", account="y", chat="z").key, RuntimeError("bug"))
        assert host.seen() == []


class Struggling:
    """A router that breaks twice before it can give something up."""

    def __init__(self, inner) -> None:
        self._inner, self._failures = inner, 2

    async def give_up(self, key: str) -> None:
        if self._failures:
            self._failures -= 1
            raise RuntimeError
        await self._inner.give_up(key)


async def test_owners_are_told_once_however_often_giving_up_fails(opened):
    """It is tried again each time, later and later."""
    async with opened() as host:
        await host.says("/help")
        host.channel.messages.clear()
        gave_up = _give_up(replace(host.app, router=Struggling(host.app.router)))
        for _ in range(2):
            with pytest.raises(RuntimeError):
                await gave_up(INBOX_QUEUE, HERE.key, ValueError("bug"))
            await host.passes(timedelta(seconds=8))
        assert host.texts() == []
        await gave_up(INBOX_QUEUE, HERE.key, ValueError("bug"))
        await host.settle()
        assert [text for text in host.texts() if "I gave up on something in inbox" in text] == host.texts()[:1]
