"""Messages that are edited, deleted or reacted to: never a second answer, and nothing is lost."""

from __future__ import annotations

import logging

import pytest

from core.contracts.addresses import Attachment, DeleteBody, EditBody, MessageBody, Privacy, ReactionBody
from core.contracts.delivery import InboxState
from core.contracts.messages import ReminderPart, visible_text
from core.models.scripted import asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.grouping import BOB, GROUP, TOPIC, admitted, arrives, mentions, talks
from tests.bot.conversations.hosting import HERE, MIKE, SAM, chat, hosting

ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        made = {"make x": FakeOutcome(output=b"made")}
        return hosting(tmp_path, *(steps or [says("one"), says("two"), says("three")]), outcomes=made, **more)

    return open_host


async def happens(host, body, *, where=HERE, **more) -> None:
    await host.arrives(body, where=where, **more)
    await host.settle()


async def states(host, where=HERE) -> list[InboxState]:
    return [row.state for row in await host.stores.delivery.inbox_of(where.key)]


def changes(host, kind: str = "changes") -> list[str]:
    """Return what the newest request tells, the oldest first."""
    parts = [part for message in host.model.requests[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ReminderPart) and part.kind == kind]


def asked(host) -> list[str]:
    return [visible_text(request.messages[-1].parts) for request in host.model.requests]


async def test_a_message_that_waits_is_replaced_by_its_edit(opened):
    async with opened(ASKING, says("made"), says("two"), says("three")) as host:
        await host.says("do it")
        await happens(host, MessageBody(text="and thn?"), who=MIKE, key="m")
        await happens(host, EditBody(message_key="m", text="and then?"), who=MIKE)
        await host.presses("Approve")
        assert asked(host)[-1] == "and then?"
        assert len(host.model.requests) == 3
        await host.says("next", who=MIKE)
        assert changes(host) == []


async def test_a_waiting_message_that_becomes_a_command_is_one(opened):
    """It is withdrawn, so that no turn is asked what "/whoami" means."""
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await happens(host, MessageBody(text="whoami"), who=MIKE, key="m")
        await happens(host, EditBody(message_key="m", text="/whoami"), who=MIKE)
        assert "You are Mike" in host.texts()[-1]
        assert (await states(host))[1] is InboxState.WITHDRAWN
        await host.presses("Approve")
        assert len(host.model.requests) == 2


async def test_a_message_that_became_a_command_and_is_edited_again_is_no_second_message(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await happens(host, MessageBody(text="whoami"), who=MIKE, key="m")
        await happens(host, EditBody(message_key="m", text="/whoami"), who=MIKE)
        await happens(host, EditBody(message_key="m", text="who am I?"), who=MIKE)
        await host.presses("Approve")
        assert len(host.model.requests) == 2


async def test_a_command_that_was_answered_is_not_answered_again_when_it_is_edited(opened):
    async with opened() as host:
        await host.says("/whoami", key="m")
        await happens(host, EditBody(message_key="m", text="/status"))
        await happens(host, EditBody(message_key="m", text="hello"))
        assert len(host.texts()) == 1
        assert host.model.requests == []


@pytest.mark.parametrize(("files", "state"), [((), InboxState.WITHDRAWN), (("cat.png",), InboxState.QUEUED)])
async def test_a_waiting_message_that_loses_its_words_waits_on_only_for_its_files(opened, files, state):
    async with opened(ASKING) as host:
        await host.says("do it")
        host.channel.files["h"] = b"abc"
        attachments = tuple(Attachment(handle="h", name=name, media_type="image/png") for name in files)
        await happens(host, MessageBody(text="look", attachments=attachments), who=MIKE, key="m")
        await happens(host, EditBody(message_key="m", text=" "), who=MIKE)
        assert (await states(host))[1] is state


async def test_an_edit_of_what_was_answered_is_told_with_the_next_turn_and_never_answered_by_itself(opened):
    """C05 B: recorded as a correction."""
    async with opened() as host:
        await host.says("<@U0BOT> hello", key="1700000010.000100")
        await happens(host, EditBody(message_key="1700000010.000100", text="<@U0BOT> hello again"))
        assert host.texts() == ["one"]
        assert len(host.model.requests) == 1
        await host.says("and?")
        (told,) = changes(host)
        assert "Alice (telegram:111), 2026-01-01 12:00, changed since. It was:\n> <@U0BOT> hello\n" in told
        assert told.endswith("It is now:\n> <@U0BOT> hello again")
        await host.says("and?")
        assert len(changes(host)) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(EditBody(message_key="m", text="see https://example.org/a"), id="A: a link preview"),
        pytest.param(EditBody(message_key="m", text="see https://example.org/a "), id="an embed"),
        pytest.param(EditBody(message_key="unknown", text="what?"), id="an unknown message"),
        pytest.param(DeleteBody(message_key="unknown"), id="C: an unknown message is deleted"),
        pytest.param(ReactionBody(message="unknown", emoji=("👀",)), id="E: a reaction to whatever"),
        pytest.param(ReactionBody(message="unknown", emoji=()), id="a reaction less"),
    ],
)
async def test_events_about_messages_that_say_nothing_new_do_nothing_at_all(opened, body, caplog):
    """C05 A, C, E, and the same of Telegram and Discord."""
    async with opened() as host:
        await host.says("see https://example.org/a", key="m")
        with caplog.at_level(logging.WARNING):
            await happens(host, body)
        assert caplog.records == []
        assert (host.texts(), len(host.model.requests)) == (["one"], 1)
        await host.says("next")
        assert (host.texts(), changes(host)) == (["one", "two"], [])


async def test_a_message_without_any_text_in_a_group_does_nothing_and_the_next_is_heard(opened, caplog):
    """C05 D."""
    async with opened() as host:
        await admitted(host)
        with caplog.at_level(logging.WARNING):
            await talks(host, "")
        assert (caplog.records, host.texts(GROUP), host.model.requests) == ([], [], [])
        await mentions(host, "hi")
        assert host.texts(GROUP) == ["one"]


async def test_talk_that_was_not_for_the_agent_does_not_become_so_by_an_edit(opened):
    async with opened() as host:
        await admitted(host)
        await talks(host, "lunch?", key="m")
        await arrives(host, EditBody(message_key="m", text="@agent lunch?"))
        assert host.model.requests == []


async def test_only_the_last_of_several_edits_is_told_with_what_was_known_before(opened):
    async with opened() as host:
        await host.says("a", key="m")
        for text in ("b", "c"):
            await happens(host, EditBody(message_key="m", text=text))
        await host.says("next")
        (told,) = changes(host)
        assert told.endswith("It was:\n> a\nIt is now:\n> c")
        await happens(host, EditBody(message_key="m", text="d"))
        await host.says("next")
        assert changes(host)[-1].endswith("It was:\n> c\nIt is now:\n> d")


async def test_an_edit_that_is_taken_back_is_no_news(opened):
    async with opened() as host:
        await host.says("a", key="m")
        for text in ("b", "a"):
            await happens(host, EditBody(message_key="m", text=text))
        await host.says("next")
        assert changes(host) == []


async def test_a_message_that_waits_is_withdrawn_when_it_is_deleted(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await happens(host, MessageBody(text="and then?"), who=MIKE, key="m")
        await happens(host, DeleteBody(message_key="m"), who=MIKE)
        await host.presses("Approve")
        assert len(host.model.requests) == 2
        assert (await states(host))[1] is InboxState.WITHDRAWN


async def test_a_deletion_of_what_was_answered_is_told_with_the_next_turn(opened):
    """C05 C."""
    async with opened() as host:
        await host.says("my old address", key="m")
        await happens(host, EditBody(message_key="m", text="my new address"))
        await happens(host, DeleteBody(message_key="m"))
        assert host.texts() == ["one"]
        await host.says("next")
        (told,) = changes(host)
        assert told.endswith("Alice (telegram:111), 2026-01-01 12:00, deleted since:\n> my old address")


async def test_a_reaction_to_a_message_of_the_agent_is_told_with_the_next_turn(opened):
    async with opened() as host:
        await host.says("hi")
        answer = host.seen()[-1].external_id
        await happens(host, ReactionBody(message=answer, emoji=("👍", "🎉")))
        assert len(host.model.requests) == 1
        await host.says("next")
        (told,) = changes(host)
        assert told.endswith("Alice (telegram:111), 2026-01-01 12:00, reacted with 👍 🎉 to your message:\n> one")


async def test_a_reaction_that_came_and_went_is_no_news_and_one_that_was_told_and_went_is(opened):
    async with opened(*[says("ok")] * 4) as host:
        await host.says("hi")
        answer = host.seen()[-1].external_id
        for emoji in (("👍",), ()):
            await happens(host, ReactionBody(message=answer, emoji=emoji))
        await host.says("next")
        assert changes(host) == []
        await happens(host, ReactionBody(message=answer, emoji=("👍",)))
        await host.says("next")
        await happens(host, ReactionBody(message=answer, emoji=()))
        await host.says("next")
        assert "took back a reaction to your message" in changes(host)[-1]


async def test_a_reaction_that_names_no_thread_is_told_in_the_thread_of_its_message(opened):
    """Telegram does not say in which topic a message stands."""
    async with opened() as host:
        await admitted(host)
        await mentions(host, "hi", where=TOPIC)
        answer = host.seen(TOPIC)[-1].external_id
        for _ in range(2):
            await arrives(host, ReactionBody(message=answer, emoji=("👍",)), key="reaction")
        await mentions(host, "next")
        assert changes(host) == []
        await mentions(host, "next", where=TOPIC)
        assert len(changes(host)) == 1


async def test_a_thumbs_up_decides_nothing(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        card = host.card_with("Approve")
        await happens(host, ReactionBody(message=card.external_id, emoji=("👍",)))
        assert len(await host.open_approvals()) == 1
        assert host.commands == []


async def test_what_became_of_messages_of_an_earlier_conversation_is_not_told_in_a_new_one(opened):
    async with opened() as host:
        await host.says("secret plan", key="m")
        await host.says("/new")
        await happens(host, EditBody(message_key="m", text="no plan"))
        await host.says("hi")
        assert "plan" not in repr(host.model.requests[-1].messages)


async def test_a_message_that_the_agent_never_got_is_not_told_when_it_changes(opened):
    async with opened() as host:
        await host.says("/whoami", key="m")
        await happens(host, DeleteBody(message_key="m"))
        await host.says("hi")
        assert changes(host) == []


async def test_a_change_of_overheard_talk_is_told_as_it_reads_now(opened):
    async with opened() as host:
        await admitted(host)
        await talks(host, "lunch at 12", key="m")
        await talks(host, "a secret", key="n")
        await arrives(host, EditBody(message_key="m", text="lunch at 1"))
        await arrives(host, DeleteBody(message_key="n"))
        await mentions(host, "when?")
        (heard,) = changes(host, "overheard")
        assert heard.endswith("\n> lunch at 1")
        assert "a secret" not in heard
        await arrives(host, EditBody(message_key="m", text="lunch at 2"))
        await mentions(host, "when?")
        assert changes(host)[-1].endswith("It was:\n> lunch at 1\nIt is now:\n> lunch at 2")


async def test_an_edit_by_somebody_who_is_not_let_in_reaches_nobody(opened):
    async with opened() as host:
        where = chat("444")
        await host.arrives(MessageBody(text="hi"), who=SAM, where=where, key="m")
        await host.arrives(EditBody(message_key="m", text="/help"), who=SAM, where=where)
        await host.settle()
        assert len(host.texts(where)) == 1
        await host.arrives(MessageBody(text="hi"), who=BOB, where=GROUP, privacy=Privacy.PRIVATE_GROUP, key="g")
        await arrives(host, EditBody(message_key="g", text="/help"))
        assert len(host.texts(GROUP)) == 1


async def test_a_waiting_message_that_became_a_command_runs_no_other_when_it_is_edited_again(opened):
    async with opened() as host:
        await host.says("/pause")
        await happens(host, MessageBody(text="note"), key="m")
        for text in ("/remember a", "/remember b"):
            await happens(host, EditBody(message_key="m", text=text))
        assert sum("Remembered" in text for text in host.texts()) == 1
