"""What page and command line get of a host."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.contracts.addresses import CardContent, TextContent
from core.contracts.agents import Audience
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ApprovalId
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.contracts.permissions import ApprovalState
from core.models.scripted import asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.hosting import HERE, SAM, SECRET, chat, hosting

MADE = {"make x": FakeOutcome(output=b"made")}
ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps):
        return hosting(tmp_path, *steps, outcomes=MADE)

    return open_host


async def test_agents_and_their_conversations_are_listed(opened):
    async with opened(says("ok")) as host:
        await host.says("hi")
        (agent,) = await host.app.api.agents()
        (conversation,) = await host.app.api.conversations(agent.id)
        assert conversation.id == await host.conversation_id()
        assert [m.seq for m in await host.app.api.messages(conversation.id)] == [1, 2]
        assert [m.seq for m in await host.app.api.messages(conversation.id, after_seq=1)] == [2]


async def test_a_conversation_that_does_not_exist_is_not_found(opened):
    async with opened() as host:
        with pytest.raises(NotFound):
            await host.app.api.messages("conv-x")


async def test_the_history_of_a_chat_is_what_was_said_and_shown_in_its_order(opened):
    async with opened(says("Hello"), ASKING) as host:
        await host.says("hi")
        await host.clock.advance(timedelta(seconds=1))
        await host.says("do it")
        told = await host.app.api.history(HERE.key)
        assert [entry.name for entry in told] == ["Alice", "", "Alice", ""]
        assert told[1].content == TextContent(markdown="Hello")
        assert isinstance(told[3].content, CardContent)
        assert await host.app.api.history(chat("999").key) == ()


async def test_history_messages_and_approvals_hold_no_secret(opened):
    """Invariant 10."""
    leaking = asks(tool_call("a", "shell", f'{{"command":"make {SECRET}"}}'), text=f"it is {SECRET}")
    async with opened(leaking) as host:
        await host.says("what is it?")
        told = [
            *await host.app.api.history(HERE.key),
            *await host.app.api.messages(await host.conversation_id()),
            *await host.app.api.open_approvals(),
        ]
        assert SECRET not in repr(told)
        assert SECRET not in repr(host.channel.messages)
        assert "[secret password]" in repr(told)


async def test_an_owner_decides(opened):
    async with opened(ASKING, says("Made.")) as host:
        await host.says("do it")
        (approval,) = await host.app.api.open_approvals()
        assert await host.app.api.decide(approval.id, "approve", by="Alice") == "Approved."
        await host.settle()
        assert host.commands == ["make x"]
        assert await host.app.api.open_approvals() == ()


async def test_a_denial_carries_its_reason(opened):
    async with opened(ASKING, says("Then not.")) as host:
        await host.says("do it")
        (approval,) = await host.app.api.open_approvals()
        await host.app.api.decide(approval.id, "deny", by="Alice", feedback="use make y")
        await host.settle()
        assert "use make y" in (await host.returns())[0].parts[0].text


async def test_choices_that_are_none_change_nothing(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        (approval,) = await host.app.api.open_approvals()
        for choice in ("", "yes", "y", "APPROVE"):
            with pytest.raises(InvalidInput):
                await host.app.api.decide(approval.id, choice, by="Alice")
        with pytest.raises(NotFound):
            await host.app.api.decide(ApprovalId("apr-x"), "approve", by="Alice")
        assert (await host.app.api.open_approvals())[0].state is ApprovalState.OPEN


async def test_people_are_let_in(opened):
    async with opened() as host:
        await host.says("hi", who=SAM, where=chat("444"))
        (pairing,) = await host.app.api.pairings()
        assert pairing.name == "Sam"
        assert "may talk to me now" in await host.app.api.pair(pairing.code, by="Alice")
        assert await host.app.api.pairings() == ()
        assert [entry.what for entry in await host.app.api.audit()] == ["paired"]


async def test_memory_is_shown_compared_and_undone(opened):
    async with opened() as host:
        await host.says("/remember I like green tea")
        api = host.app.api
        assert "notes.md" in [file.path for file in await api.memory_files("lodger")]
        newest = (await api.memory_log("lodger"))[0]
        assert "+- I like green tea" in await api.memory_diff("lodger", newest.revision[:10])
        assert "Undone by Alice" in await api.memory_undo("lodger", newest.revision[:10], by="Alice")
        assert "notes.md" not in [file.path for file in await api.memory_files("lodger")]


async def test_unknown_agents_and_revisions_are_not_found(opened):
    async with opened() as host:
        api = host.app.api
        for missing in (
            api.memory_files("nobody"),
            api.memory_log("nobody"),
            api.memory_diff("lodger", "0000000"),
            api.memory_diff("lodger", ""),
            api.memory_undo("lodger", "0000000", by="Alice"),
        ):
            with pytest.raises(NotFound):
                await missing


async def test_memory_of_somebody_else_is_not_shown(opened):
    """Invariant 16: files, history and diffs."""
    async with opened() as host:
        private = Audience(words=frozenset({"everyone", "person:p9"}))
        change = MemoryChange(
            kind=ChangeKind.CREATE,
            path="secret.md",
            text="---\ndescription: about p9\naudience: person:p9\n---\nThe party is on Sunday.\n",
        )
        origin = CommitOrigin(author="agent", audience=private, conversation_id="conv-elsewhere")
        commit = await host.memory.commit(host.agent.memory_id, [change], message="note the party", origin=origin)
        api = host.app.api
        told = [
            await api.memory_files("lodger"),
            await api.memory_log("lodger"),
            await api.memory_diff("lodger", commit.revision),
        ]
        assert "party" not in repr(told)


async def test_readiness_is_that_of_the_host(opened):
    async with opened() as host:
        assert await host.app.api.readiness() == await host.app.health.checks()
