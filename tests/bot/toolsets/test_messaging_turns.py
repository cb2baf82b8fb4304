"""Turns that send something besides their answer: asked about where it goes elsewhere, posted once, in order."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from bot.toolsets.messaging import ALWAYS_ASKED, MessagingPorts, messaging_tools
from bot.toolsets.outgoing_files import OutgoingFiles
from core.contracts.addresses import FileContent, MessageBody
from core.contracts.agents import PermissionMode
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE
from core.contracts.errors import StoreUnavailable
from core.contracts.messages import ReturnOutcome
from core.models.scripted import asks, says, tool_call
from core.permissions.policy import RulePolicy
from core.sandbox.paths import BeneathFiles
from core.tools.toolsets import StaticToolset
from core.turns.loop import TurnLoop
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, chat, hosting
from tests.bot.conversations.queueing import fresh_worker, open_conversation, queue
from tests.core.turns.dying import Dying

THERE, MIKES = chat("222"), chat("333")


def sends(call_id: str, text: str, to: str | None = None):
    arguments = {"text": text} if to is None else {"text": text, "to": to}
    return tool_call(call_id, "send_message", json.dumps(arguments))


@pytest.fixture
def opened(tmp_path):
    @asynccontextmanager
    async def open_host(*steps, mode=PermissionMode.ASK):
        async with hosting(tmp_path, *steps, mode=mode) as host:
            ports = host.app.worker._ports
            given = MessagingPorts(
                delivery=ports.delivery,
                channels=ports.channels,
                files=BeneathFiles,
                outgoing=OutgoingFiles(tmp_path / "outgoing"),
                mask=str,
            )
            services = replace(ports.loop._services, policy=RulePolicy(ALWAYS_ASKED))
            toolsets = {"default": StaticToolset("default", messaging_tools(given))}

            def worker(**dying):
                loop = TurnLoop(replace(services, **dying))
                return fresh_worker(host, loop=loop, toolsets=toolsets, **dying)

            yield host, worker

    return open_host


async def test_a_message_of_a_turn_is_posted_besides_its_answer(opened):
    async with opened(asks(sends("a", "Half done.")), says("Done.")) as (host, worker):
        await queue(host, "do it")
        await worker().advance(await host.conversation_id())
        await host.settle("outbox")
        assert sorted(host.texts()) == ["Done.", "Half done."]


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("name", ["start_call", "finish_call", "add_progress", "finish_turn"])
async def test_no_crash_posts_a_message_twice(opened, name, behind):
    script = (asks(sends("a", "Half done.")), says("Done."))
    async with opened(*script) as (host, worker):
        await queue(host, "do it")
        conversation_id = await host.conversation_id()
        with suppress(StoreUnavailable, ExceptionGroup):
            await worker(ledger=Dying(host.stores.ledger, name, behind=behind)).advance(conversation_id)
        await worker().advance(conversation_id)
        await host.settle("outbox")
        posted = host.texts().count("Half done.")
        assert (posted, host.texts().count("Done.")) in {(0, 1), (1, 1)}
        (result,) = await host.returns()
        assert posted or result.outcome is not ReturnOutcome.OK


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.UNRESTRICTED])
async def test_a_message_to_another_chat_waits_for_a_person_and_goes_there_once(opened, mode):
    """Invariant 12: nothing leaves for another place than the turn's without a decision."""
    async with opened(asks(sends("a", "Hello there.", THERE.key)), says("Sent."), mode=mode) as (host, worker):
        await open_conversation(host, THERE)
        await queue(host, "tell them")
        conversation_id = await host.conversation_id()
        await worker().advance(conversation_id)
        await host.settle("outbox")
        card = host.card_with("Approve")
        assert (host.texts(THERE), list(card.buttons)) == ([], ["Approve", "Deny"])
        assert THERE.key in card.text
        await host.app.api.decide((await host.open_approvals())[0].id, "approve", by="Alice")
        await worker().advance(conversation_id)
        await host.settle("outbox")
        assert host.texts(THERE) == ["Hello there."]
        assert host.texts(HERE)[-1] == "Sent."


async def test_where_nobody_can_be_asked_nothing_goes_elsewhere(opened):
    nowhere = replace(HERE, channel="headless")
    async with opened(asks(sends("a", "Hello there.", THERE.key)), says("I could not.")) as (host, worker):
        await open_conversation(host, THERE)
        await queue(host, "tell them", where=nowhere, bound=nowhere)
        await worker().advance(await host.conversation_id(nowhere))
        await host.settle("outbox")
        assert host.texts(THERE) == []
        assert [result.outcome for result in await host.returns(nowhere)] == [ReturnOutcome.DENIED]


async def test_two_conversations_whose_calls_have_one_id_send_their_own_files(tmp_path):
    """One chat has to wait while the other's file is copied: it must not get that one."""
    sending = asks(tool_call("call_0", "send_file", '{"path":"report.txt"}'))
    async with hosting(tmp_path, sending, says("Sent."), sending, says("Sent.")) as host:
        report = tmp_path / "workspace" / "report.txt"
        for who, where in ((ALICE, HERE), (MIKE, MIKES)):
            report.write_text(f"for {who.name}")
            await host.arrives(MessageBody(text="send it"), who=who, where=where)
            await host.settle(INBOX_QUEUE, CONVERSATION_QUEUE)
        await host.settle()
        sent = {m.address: m.data for m in host.channel.messages.values() if isinstance(m.content, FileContent)}
        assert sent == {HERE: b"for Alice", MIKES: b"for Mike"}
