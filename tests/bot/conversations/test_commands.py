"""The one table of commands: who may give which, and what each answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config.model import GroupTalk
from bot.conversations.command_calls import Who
from bot.conversations.commands import COMMANDS, menus, parse_command
from channels.contract import MenuScope
from core.contracts.addresses import MessageBody, Sender
from core.contracts.agents import PermissionMode
from core.contracts.delivery import INBOX_QUEUE
from core.models.scripted import asks, says, tool_call
from core.sandbox.fake import FakeOutcome
from tests.bot.conversations.grouping import BOB, GROUP, admitted, mentions, talks
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, OPAL, SAM, hosting, make_settings

ASKING = asks(tool_call("a", "shell", '{"command":"make x"}'))
MADE = {"make x": FakeOutcome(output=b"made")}


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or (says("ok"), says("ok"))), outcomes=MADE, **more)

    return open_host


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("/new", ("new", "")),
        ("  /NEW  ", ("new", "")),
        ("/new@LodgerBot", ("new", "")),
        ("/mode@LodgerBot ask", ("mode", "ask")),
        ("/remember I like  green tea ", ("remember", "I like  green tea")),
        ("/remember\nline one two\nline three", ("remember", "line one two\nline three")),
        ("/remember one\ntwo three", ("remember", "one\ntwo three")),
        ("/memory\tlog", ("memory", "log")),
        ("/memory_log", ("memory_log", "")),
        ("/привет", ("привет", "")),
    ],
)
def test_a_command_is_a_slash_a_name_and_the_rest(text, parsed):
    assert parse_command(text) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "/", "hello", "hello /new", "/etc/hosts", "/etc/hosts is a file", "/2 is a half", "/new!", "//new", "/ new",
     "/usr/bin/env python", "/a.b", "/_", "/new/old", "\\new"],
)  # fmt: skip
def test_everything_else_is_something_to_say(text):
    assert parse_command(text) is None


@given(st.text())
def test_parsing_never_fails_and_only_slashes_are_commands(text):
    parsed = parse_command(text)
    assert parsed is None or text.strip().startswith("/")


def test_the_table_is_keyed_by_the_names_its_rows_have():
    assert {name: command.name for name, command in COMMANDS.items()} == {name: name for name in COMMANDS}
    assert all(command.usage.startswith(name) for name, command in COMMANDS.items())
    assert all(command.help for command in COMMANDS.values())


@pytest.mark.parametrize("name", list(COMMANDS))
async def test_every_command_answers_an_owner_at_once_and_never_starts_a_turn(opened, name):
    async with opened() as host:
        await host.says(f"/{name}")
        (answer,) = host.texts()
        assert answer
        assert "is for an" not in answer
        assert host.model.requests == []


@pytest.mark.parametrize("who", [MIKE, OPAL], ids=["member", "operator"])
@pytest.mark.parametrize("name", list(COMMANDS))
async def test_in_a_group_a_command_is_refused_to_whoever_ranks_below_its_who(opened, name, who):
    async with opened() as host:
        await admitted(host)
        await mentions(host, f"/{name}", who=who)
        (answer,) = host.texts(GROUP)
        refused = "is for an" in answer or answer == "Nothing is running."
        rank = {MIKE: Who.MEMBER, OPAL: Who.OPERATOR}[who]
        assert refused == (rank < COMMANDS[name].who or name == "cancel")
        assert host.model.requests == []


@pytest.mark.parametrize("name", list(COMMANDS))
async def test_in_the_own_chat_a_person_may_also_pause_resume_and_set_the_queue_mode(opened, name):
    async with opened() as host:
        await host.says(f"/{name}", who=MIKE)
        (answer,) = host.texts()
        needed = COMMANDS[name].who
        assert ("is for an" in answer) == (needed > Who.MEMBER and name not in {"pause", "resume", "queue", "cancel"})


@pytest.mark.parametrize("name", list(COMMANDS))
async def test_a_stranger_gives_no_command(opened, name):
    async with opened() as host:
        await host.says(f"/{name}", who=SAM)
        (answer,) = host.texts()
        assert "We have not met" in answer


async def test_an_unknown_command_is_answered(opened):
    async with opened() as host:
        await host.says("/nonsense and more")
        assert host.texts() == ["There is no command /nonsense. /help lists them."]


async def test_a_path_is_a_question_for_the_agent(opened):
    async with opened(says("It maps names.")) as host:
        await host.says("/etc/hosts is what?")
        assert host.texts() == ["It maps names."]


async def test_help_lists_what_one_may_give_and_no_more(opened):
    async with opened() as host:
        await host.says("/help", who=MIKE)
        await host.says("/help")
        for_member, for_owner = host.texts()
        assert "/pair" not in for_member
        assert "/pair CODE" in for_owner
        assert "/remember TEXT" in for_member
        assert "/cancel" in for_member
        assert "/queue [steer|after_turn|interrupt]" in for_member


async def test_help_in_a_group_leaves_out_what_only_operators_may_there_and_says_how_groups_and_files_work(opened):
    async with opened() as host:
        await admitted(host)
        await mentions(host, "/help", who=MIKE)
        (text,) = host.texts(GROUP)
        assert "/queue [" not in text
        assert "mention me or reply to me" in text
        assert "files" in text


def test_menus_offer_in_each_place_what_people_may_give_there():
    direct, group, owners = menus(COMMANDS.values(), owners={"telegram:2", "telegram:1"})
    assert [menu.scope for menu in (direct, group, owners)] == list(MenuScope)
    assert owners.identities == ("telegram:1", "telegram:2")
    assert {name for name, _ in owners.commands} == set(COMMANDS) - {"start"}
    assert {name for name, _ in direct.commands} == set(COMMANDS) - {"start", "pair", "reload"}
    assert {name for name, _ in group.commands} == set(COMMANDS) - {"start", "pair", "reload", "queue"}
    assert all(help_ == COMMANDS[name].help for menu in (direct, group, owners) for name, help_ in menu.commands)


async def test_new_leaves_the_old_conversation_and_keeps_it(opened):
    async with opened(says("one"), says("two")) as host:
        await host.says("remember blue")
        before = await host.conversation_id()
        await host.says("/new")
        after = await host.conversation_id()
        await host.says("which colour?")
        assert before != after
        assert "blue" not in repr(host.model.requests[1].messages)
        assert len(await host.backend.list_messages(before)) == 2


async def test_what_is_written_right_behind_new_belongs_to_the_new_conversation(opened):
    async with opened(says("one"), says("two")) as host:
        await host.says("remember blue")
        before = await host.conversation_id()
        await host.arrives(MessageBody(text="/new"))
        await host.arrives(MessageBody(text="hello"))
        await host.settle()
        assert len(await host.backend.list_messages(before)) == 2
        assert len(await host.transcript()) == 2


async def test_new_stops_the_own_turn_of_the_old_conversation(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        await host.says("/new")
        assert await host.open_approvals() == ()
        assert host.commands == []


async def test_new_does_not_stop_what_somebody_else_asked_for(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await host.says("/new", who=MIKE)
        assert len(await host.open_approvals()) == 1
        await host.presses("Approve")
        assert host.commands == ["make x"]


async def test_cancel_with_nothing_running_says_so(opened):
    async with opened() as host:
        await host.says("/cancel")
        assert host.texts() == ["Nothing is running."]


async def test_only_who_asked_or_an_operator_cancels(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        await host.says("/cancel", who=MIKE)
        assert "Only the person who asked" in host.texts()[-1]
        assert len(await host.open_approvals()) == 1
        await host.says("/cancel", who=OPAL)
        assert await host.open_approvals() == ()


async def test_a_member_cancels_what_they_asked_for(opened):
    async with opened(ASKING) as host:
        await host.says("do it", who=MIKE)
        await host.says("/cancel", who=MIKE)
        assert await host.open_approvals() == ()


async def test_status_says_what_goes_on_and_what_is_awaited(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        await host.says("and?")
        await host.says("/status")
        status = host.texts()[-1]
        assert "parked" in status
        assert "1 queued" in status
        assert "Waiting for a decision on shell" in status


@pytest.mark.parametrize(
    ("who", "mode", "allowed"),
    [
        (MIKE, "ask", False),
        (MIKE, "unrestricted", False),
        (OPAL, "accept_edits", True),
        (OPAL, "unrestricted", False),
        (ALICE, "unrestricted", True),
        (ALICE, "STRICT", True),
    ],
)
async def test_who_may_set_which_mode(opened, who, mode, allowed):
    async with opened() as host:
        await host.says("/help", who=who)
        await host.says(f"/mode {mode}", who=who)
        conversation = await host.backend.get_conversation(await host.conversation_id())
        assert conversation.permission_mode == (PermissionMode(mode.lower()) if allowed else None)
        assert ("mode_set" in await host.audited()) is allowed


async def test_an_unknown_mode_is_answered_with_those_there_are(opened):
    async with opened() as host:
        await host.says("/mode yolo")
        assert "There is no mode 'yolo'" in host.texts()[-1]
        assert "accept_edits" in host.texts()[-1]


async def test_a_mode_that_was_set_counts_for_the_next_call(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("/mode unrestricted")
        await host.says("do it")
        assert host.commands == ["make x"]


async def test_what_a_person_has_remembered_is_a_commit_in_their_name(opened):
    async with opened(says("tea")) as host:
        await host.says("/remember I like green tea", who=MIKE)
        await host.says("/remember and honey", who=MIKE)
        newest = (await host.memory.log(host.agent.memory_id))[0]
        assert newest.author == "Mike"
        await host.says("/memory show notes.md")
        assert "- I like green tea\n- and honey" in host.texts()[-1]
        await host.says("what do I like?")
        assert "green tea" in host.model.requests[-1].system


async def test_memory_shows_its_files_its_log_and_a_diff_and_undoes(opened):
    async with opened() as host:
        await host.says("/remember I like green tea")
        revision = (await host.memory.head(host.agent.memory_id))[:10]
        await host.says("/memory")
        assert "notes.md" in host.texts()[-1]
        await host.says("/memory log")
        assert "Alice: Remember: I like green tea" in host.texts()[-1]
        await host.says(f"/memory diff {revision}")
        assert "+- I like green tea" in host.texts()[-1]
        await host.says(f"/memory undo {revision}")
        assert "Undone by Alice" in host.texts()[-1]
        await host.says("/memory show notes.md")
        assert "There is no 'notes.md'" in host.texts()[-1]


@pytest.mark.parametrize(
    "words",
    ["show", "show ../../etc/passwd", "show nothing.md", "diff zzz", "undo zzz", "undo", "purge everything", "diff ''"],
)
async def test_a_wrong_word_behind_memory_is_answered(opened, words):
    async with opened() as host:
        await host.says(f"/memory {words}")
        assert host.texts()[-1].startswith(("Use: ", "There is no "))


async def test_a_memory_that_admission_refuses_is_told_with_the_reason(opened):
    async with opened() as host:
        await host.says("/remember " + "very much " * 3_000)
        assert host.texts()[-1].startswith("Not remembered: ")
        assert len(await host.memory.log(host.agent.memory_id)) == 1


async def test_whoami_says_name_identity_and_role(opened):
    async with opened() as host:
        for who, role in ((ALICE, "owner"), (OPAL, "operator"), (MIKE, "member")):
            await host.says("/whoami", who=who)
            assert host.texts()[-1] == f"You are {who.name} ({who.identity}), {role} here."


async def test_whoami_names_the_roles_that_the_platform_gives_there(opened):
    async with opened() as host:
        await admitted(host)
        roles = ("telegram:owner", "telegram:administrator")
        await mentions(host, "/whoami", who=replace(BOB, roles=roles))
        told = host.texts(GROUP)[-1]
        assert told.splitlines()[1:] == ["Platform roles here: telegram:owner, telegram:administrator."]


async def test_why_names_the_rule_and_the_decision_of_each_call(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        await host.presses("Approve")
        await host.says("/why")
        assert host.texts()[-1].startswith("shell: ask by ")
        assert "approved by Alice; done" in host.texts()[-1]


async def test_approvals_are_listed_and_decided_by_command(opened):
    async with opened(ASKING, says("made")) as host:
        await host.says("do it")
        (approval,) = await host.open_approvals()
        await host.says("/approvals")
        assert approval.id in host.texts()[-1]
        assert "make x" in host.texts()[-1]
        await host.says(f"/approvals {approval.id} approve", who=MIKE)
        assert "You may not decide this." in host.texts()[-1]
        await host.says(f"/approvals {approval.id} approve")
        assert host.commands == ["make x"]


async def test_a_denial_by_command_carries_its_reason_to_the_model(opened):
    async with opened(ASKING, says("then not")) as host:
        await host.says("do it")
        (approval,) = await host.open_approvals()
        await host.says(f"/approvals {approval.id} deny use make y")
        assert "use make y" in (await host.returns())[0].parts[0].text


@pytest.mark.parametrize("words", ["apr-unknown approve", "apr-unknown", "apr-unknown maybe"])
async def test_a_wrong_approval_is_answered(opened, words):
    async with opened() as host:
        await host.says(f"/approvals {words}")
        assert host.texts()[-1].startswith(("There is no approval", "Use: /approvals"))


async def test_a_command_is_answered_while_its_conversation_is_busy(opened):
    async with opened(ASKING) as host:
        await host.says("do it")
        await host.arrives(MessageBody(text="/whoami"))
        await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        assert "You are Alice" in host.texts()[-1]


async def test_what_is_not_addressed_gives_no_command_where_every_message_is_heard(tmp_path):
    """It may come from nobody whose rights can be looked at, such as an anonymous administrator."""
    settings = make_settings(tmp_path)
    hears_all = replace(settings, access=replace(settings.access, groups=GroupTalk.ALL))
    async with hosting(tmp_path, says("one"), says("two"), settings=hears_all) as host:
        await admitted(host)
        await mentions(host, "hello")
        before = await host.conversation_id(GROUP)
        await talks(host, "/new", who=Sender(identity="telegram:-100", name="anonymous admin"))
        assert await host.conversation_id(GROUP) == before
        assert host.texts(GROUP) == ["one", "two"]


@pytest.mark.parametrize("command", ["/new", "/pause", "/mode strict"])
async def test_what_is_forwarded_gives_no_command_and_is_something_to_say(opened, command):
    async with opened() as host:
        await host.says("hello")
        before = await host.backend.get_conversation(await host.conversation_id())
        await host.arrives(MessageBody(text=command, forwarded_from="Sam"))
        await host.settle()
        now = await host.backend.get_conversation(await host.conversation_id())
        assert (now.id, now.paused, now.permission_mode) == (before.id, before.paused, before.permission_mode)
        assert len(host.model.requests) == 2


async def test_a_member_of_a_group_does_not_undo_what_an_owner_had_remembered(opened):
    async with opened() as host:
        await admitted(host)
        await host.says("/remember the door code is kept at the desk")
        (commit,) = await host.memory.log(host.agent.memory_id, limit=1)
        await mentions(host, f"/memory undo {commit.revision}", who=BOB)
        assert (await host.memory.log(host.agent.memory_id, limit=1)) == (commit,)
