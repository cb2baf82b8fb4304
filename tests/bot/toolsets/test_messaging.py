"""What an agent puts into a chat besides its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from bot.toolsets.messaging import ALWAYS_ASKED, FILE_LIMIT_BYTES, MessagingPorts, messaging_tools
from bot.toolsets.outgoing_files import OutgoingFiles
from channels.fake import FakeChannel
from core.contracts.addresses import Address, InboundEvent, MessageBody, OutboundItem, Privacy, Sender
from core.contracts.agents import PermissionMode
from core.contracts.delivery import Binding, OutboxState, chat_key
from core.contracts.errors import ToolError
from core.contracts.ids import AgentId, CallId, ConversationId, PersonId, TurnId
from core.contracts.permissions import Action, Grant, Subject
from core.contracts.tools import ToolContext
from core.permissions.policy import RulePolicy
from core.sandbox.paths import BeneathFiles
from core.tools.schema import schemas_json
from tests.core.stores.samples import START, World, open_world, seed, turn
from tests.core.tools.fakes import call_of, context_in, text_of

HERE = Address(channel="fake", account="bot", chat="1")
THERE = Address(channel="fake", account="bot", chat="2")
SECRET = "hunter" + "2" * 8


@dataclass
class Desk:
    """The tools, and what stands around them."""

    world: World
    context: ToolContext
    channel: FakeChannel
    tools: dict

    async def uses(self, name: str, **arguments) -> str:
        return await text_of(self.tools[name], self.context, **arguments)

    async def posted(self, address: Address = HERE) -> list[OutboundItem]:
        return [row.item for row in await self.world.stores.delivery.outgoing(chat_key(address))]

    def verdict(self, name: str, *, mode=PermissionMode.ASK, grants=(), **arguments):
        access = self.tools[name].access(arguments, self.context)
        subject = Subject(
            agent_id=self.context.agent_id,
            conversation_id=self.context.conversation_id,
            mode=mode,
            workspace=self.context.workspace,
            requester=self.context.requester,
        )
        return RulePolicy(ALWAYS_ASKED).verdict(call_of(name), access, subject, grants)

    def can(self, **abilities: bool) -> None:
        self.channel._capabilities = replace(self.channel.capabilities, **abilities)


@pytest.fixture
async def desk(tmp_path):
    async with open_world(":memory:") as world:
        channel = FakeChannel("fake", clock=world.clock)
        ports = MessagingPorts(
            delivery=world.stores.delivery,
            channels={"fake": channel},
            files=BeneathFiles,
            outgoing=OutgoingFiles(tmp_path / "outgoing"),
            mask=lambda text: text.replace(SECRET, "[secret password]"),
        )
        await seed(world)
        event = InboundEvent(
            address=HERE,
            key="event-1",
            sender=Sender(identity="fake:1", name="Alice"),
            body=MessageBody(text="hi"),
            privacy=Privacy.DIRECT,
            sent_at=START,
            external_id="m7",
        )
        await world.stores.delivery.accept(event, conversation_id=ConversationId("conv-1"))
        await world.stores.ledger.begin_turn(turn(), inbox_ids=[1], live=None)
        tools = {tool.schema.name: tool for tool in messaging_tools(ports)}
        context = replace(context_in(tmp_path), origin=HERE, readable=(tmp_path / "attachments" / "conv-1",))
        yield Desk(world, context, channel, tools)


def bound(address: Address) -> Binding:
    return Binding(address=address, agent_id=AgentId("agent-1"), conversation_id=ConversationId("conv-2"))


def test_the_schemas_are_short(desk):
    assert len(schemas_json([tool.schema for tool in desk.tools.values()])) <= 1_000


async def test_a_message_is_posted_into_the_chat_that_the_turn_came_from(desk):
    """Invariant 12."""
    assert "on its way" in await desk.uses("send_message", text="half done")
    (item,) = await desk.posted()
    assert (item.id, item.content.markdown) == ("turn-1/tool/call_1", "half done")


async def test_the_same_call_posts_once(desk):
    for text in ("half done", "half done", "other"):
        await desk.uses("send_message", text=text)
    assert [item.content.markdown for item in await desk.posted()] == ["half done"]


async def test_a_long_message_is_several_and_a_secret_at_an_edge_is_masked_as_a_whole(desk):
    """Invariant 10."""
    await desk.uses("send_message", text="x" * 1_994 + " " + SECRET + " end")
    told = [item.content.markdown for item in await desk.posted()]
    assert len(told) == 2
    assert "hunter" not in "".join(told)


async def test_an_empty_message_is_refused(desk):
    with pytest.raises(ToolError, match="empty"):
        await desk.uses("send_message", text=" \n")


async def test_a_message_to_another_chat_goes_there_and_nowhere_else(desk):
    await desk.world.stores.delivery.bind(bound(THERE))
    await desk.uses("send_message", text="hello there", to=THERE.key)
    assert [item.content.markdown for item in await desk.posted(THERE)] == ["hello there"]
    assert await desk.posted() == []


async def test_an_unknown_chat_is_refused_with_how_chats_are_named(desk):
    with pytest.raises(ToolError) as refused:
        await desk.uses("send_message", text="hello", to="fake/bot/999")
    assert "channel/account/chat" in str(refused.value)
    assert HERE.key in str(refused.value)
    assert await desk.posted() == []


async def test_a_chat_of_a_channel_that_this_host_has_not_is_unknown(desk):
    gone = replace(THERE, channel="slack")
    await desk.world.stores.delivery.bind(bound(gone))
    with pytest.raises(ToolError, match="No chat"):
        await desk.uses("send_message", text="hello", to=gone.key)


@pytest.mark.parametrize("mode", PermissionMode)
def test_the_own_chat_needs_no_question_and_another_one_always_does(desk, mode):
    assert desk.verdict("send_message", mode=mode, text="x").action is Action.ALLOW
    assert desk.verdict("send_message", mode=mode, text="x", to=HERE.key).action is Action.ALLOW
    assert desk.verdict("react", mode=mode, emoji="👍").action is Action.ALLOW
    assert desk.verdict("send_message", mode=mode, text="x", to=THERE.key).action is Action.ASK


def test_no_grant_and_no_button_makes_writing_elsewhere_a_matter_of_course(desk):
    grant = Grant(
        rule="send_message", agent_id=AgentId("agent-1"), conversation_id=None, requester=None, given_by=PersonId("p1")
    )
    verdict = desk.verdict("send_message", grants=(grant,), text="x", to=THERE.key)
    assert (verdict.action, verdict.remember) == (Action.ASK, "")


async def test_a_file_is_sent_as_it_was_when_it_was_judged(desk):
    (desk.context.workspace / "report.pdf").write_bytes(b"%PDF")
    assert "4 bytes" in await desk.uses("send_file", path="report.pdf", caption="Here.")
    (desk.context.workspace / "report.pdf").write_bytes(b"changed")
    (item,) = await desk.posted()
    await desk.channel.deliver(item)
    (message,) = desk.channel.messages.values()
    assert (message.text, message.data) == ("report.pdf\n\nHere.", b"%PDF")
    assert item.content.media_type == "application/pdf"


@pytest.mark.parametrize("folder", ["overflow", "attachments"])
async def test_files_of_the_conversation_may_be_sent_and_those_of_another_may_not(desk, tmp_path, folder):
    for conversation in ("conv-1", "conv-2"):
        (tmp_path / folder / conversation).mkdir(parents=True)
        (tmp_path / folder / conversation / "a.txt").write_bytes(b"long")
    await desk.uses("send_file", path=str(tmp_path / folder / "conv-1" / "a.txt"))
    with pytest.raises(ToolError, match="outside"):
        await desk.uses("send_file", path=str(tmp_path / folder / "conv-2" / "a.txt"))
    assert len(await desk.posted()) == 1


async def test_a_link_that_leads_out_of_the_workspace_is_not_followed(desk, tmp_path):
    (tmp_path / "passwd").write_bytes(b"root")
    (desk.context.workspace / "link.txt").symlink_to(tmp_path / "passwd")
    with pytest.raises(ToolError, match="out of the workspace"):
        await desk.uses("send_file", path="link.txt")
    assert await desk.posted() == []


@pytest.mark.parametrize(("data", "reason"), [(b"", "empty"), (b"x" * (FILE_LIMIT_BYTES + 1), "larger")])
async def test_a_file_that_is_empty_or_too_large_is_refused(desk, data, reason):
    (desk.context.workspace / "a.bin").write_bytes(data)
    with pytest.raises(ToolError, match=reason):
        await desk.uses("send_file", path="a.bin")


@pytest.mark.parametrize("before", [0, (1 << 20) - 5, (1 << 21) + 7])
async def test_a_file_with_a_secret_in_it_stays_here(desk, before):
    """Invariant 10, also where the secret lies across two parts that are looked at."""
    (desk.context.workspace / "env").write_bytes(b"\xff" * before + SECRET.encode() + b"\n")
    with pytest.raises(ToolError, match="secret"):
        await desk.uses("send_file", path="env")


async def test_a_file_that_is_not_there_or_is_no_file_is_told(desk):
    (desk.context.workspace / "folder").mkdir()
    for path in ("missing.txt", "folder", ".", ""):
        with pytest.raises(ToolError):
            await desk.uses("send_file", path=path)


def test_sending_a_file_is_reading_it(desk):
    assert desk.verdict("send_file", path="report.pdf").action is Action.ALLOW
    assert desk.verdict("send_file", path="report.pdf", mode=PermissionMode.STRICT).action is Action.ASK
    assert desk.verdict("send_file", path="/etc/passwd", mode=PermissionMode.UNRESTRICTED).action is Action.DENY


async def test_a_reaction_stands_on_the_message_that_the_turn_answers(desk):
    await desk.uses("react", emoji="👍")
    (item,) = await desk.posted()
    assert (item.content.emoji, item.reply_to) == ("👍", "m7")


async def test_a_reaction_may_stand_on_another_message(desk):
    await desk.uses("react", emoji="👀", message="m9")
    (item,) = await desk.posted()
    assert item.reply_to == "m9"


async def test_a_reaction_needs_a_message(desk):
    desk.context = replace(desk.context, turn_id=TurnId("turn-2"))
    with pytest.raises(ToolError, match="no message"):
        await desk.uses("react", emoji="👍")


async def test_what_a_chat_cannot_show_is_told_to_the_model(desk):
    desk.can(files=False, reactions=False)
    (desk.context.workspace / "a.txt").write_bytes(b"data")
    with pytest.raises(ToolError, match="no files"):
        await desk.uses("send_file", path="a.txt")
    with pytest.raises(ToolError, match="no reactions"):
        await desk.uses("react", emoji="👍")


@pytest.mark.parametrize("origin", [None, replace(HERE, channel="headless")])
async def test_where_nobody_reads_a_chat_it_says_where_things_would_appear(desk, origin):
    desk.context = replace(desk.context, origin=origin)
    (desk.context.workspace / "a.txt").write_bytes(b"data")
    for name, arguments in (
        ("send_message", {"text": "x"}),
        ("send_file", {"path": "a.txt"}),
        ("react", {"emoji": "x"}),
    ):
        told = await desk.uses(name, **arguments)
        assert told.startswith("Nothing was sent: this turn has no chat.")
    assert await desk.posted() == []


async def test_calls_of_different_turns_with_one_id_send_their_own_files(desk):
    """Some models count their calls from 0 in every conversation."""
    (desk.context.workspace / "a.txt").write_bytes(b"first")
    await desk.uses("send_file", path="a.txt")
    (desk.context.workspace / "a.txt").write_bytes(b"second")
    desk.context = replace(desk.context, turn_id=TurnId("turn-2"))
    await desk.uses("send_file", path="a.txt")
    for item in await desk.posted():
        await desk.channel.deliver(item)
    assert [message.data for message in desk.channel.messages.values()] == [b"first", b"second"]


async def test_two_calls_are_two_items_in_their_order(desk):
    await desk.uses("send_message", text="one")
    desk.context = replace(desk.context, call_id=CallId("call_2"))
    await desk.uses("send_message", text="two")
    assert [item.content.markdown for item in await desk.posted()] == ["one", "two"]
    rows = await desk.world.stores.delivery.outbox_of(HERE.key)
    assert {(row.turn_id, row.state) for row in rows} == {("turn-1", OutboxState.PENDING)}
