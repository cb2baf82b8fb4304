"""Messages that wait for a conversation, put there as a router does: what tests of queues drive."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

from bot.conversations.worker import ConversationWorker
from core.contracts.addresses import Address, InboundEvent, MessageBody, Privacy, Sender
from core.contracts.agents import Audience
from core.contracts.delivery import Binding, InboxRow
from core.contracts.ids import ConversationId
from core.contracts.messages import Role, visible_text
from core.models.scripted import tool_call
from tests.bot.conversations.hosting import ALICE, HERE, Hosted

_KEYS = itertools.count(1)


def looks(call_id: str):
    """Return a call that runs without a question: behind it stands a tool boundary."""
    return tool_call(call_id, "memory_read", "{}")


async def open_conversation(host: Hosted, where: Address = HERE) -> ConversationId:
    """Bind an address to a new conversation."""
    conversation = await host.backend.create_conversation(host.agent.id, Audience())
    binding = Binding(address=where, agent_id=host.agent.id, conversation_id=conversation.id)
    await host.stores.delivery.bind(binding)
    return conversation.id


async def queue(
    host: Hosted,
    text: str,
    *,
    who: Sender = ALICE,
    where: Address = HERE,
    bound: Address = HERE,
    privacy: Privacy = Privacy.DIRECT,
    album: str | None = None,
    waited: timedelta = timedelta(0),
    key: str = "",
) -> str:
    """Let a message wait for the conversation that `bound` holds; return its key."""
    if await host.stores.delivery.binding(bound.key) is None:
        await open_conversation(host, bound)
    number = next(_KEYS)
    event = InboundEvent(
        address=where,
        key=key or f"queued-{number}",
        sender=who,
        body=MessageBody(text=text, album=album),
        privacy=privacy,
        sent_at=host.clock.now() - waited,
        external_id=f"m{number}",
    )
    conversation_id = (await host.stores.delivery.binding(bound.key)).conversation_id
    await host.stores.delivery.accept(event, conversation_id=conversation_id)
    return event.key


async def row_of(host: Hosted, key: str, where: Address = HERE) -> InboxRow:
    (row,) = [row for row in await host.stores.delivery.inbox_of(where.key) if row.event.key == key]
    return row


async def still_queued(host: Hosted, bound: Address = HERE) -> list[str]:
    rows = await host.stores.delivery.queued(await host.conversation_id(bound))
    return [row.event.body.text for row in rows]


async def heard(host: Hosted, bound: Address = HERE) -> list[str]:
    """Return what people said, by user message of the transcript."""
    return [visible_text(message.parts) for message in await host.transcript(bound) if message.role is Role.USER]


def fresh_worker(host: Hosted, **ports) -> ConversationWorker:
    """Return a worker as the next process has it, with other ports where given."""
    return ConversationWorker(replace(host.app.worker._ports, **ports))
