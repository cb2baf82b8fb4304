import pytest

from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ConversationId
from core.contracts.permissions import Action, PersonRole, Subject
from core.permissions.rules import RuleError, make_rule, parse_rule


@pytest.mark.parametrize("text", ["shell: git status", "shell: npm run *", "write: notes/**", "todo", "mcp__github__*"])
def test_a_rule_is_written_as_it_is_read(text):
    assert parse_rule(text).text == text


def test_why_names_the_action_and_the_rule():
    assert make_rule(tool="shell", match="rm *", action=Action.DENY).name == "deny shell: rm *"


@pytest.mark.parametrize(
    ("tool", "match", "field"),
    [
        ("", "", "tool"),
        ("a b", "", "tool"),
        ("a:b", "", "tool"),
        ("shell", "a | b", "match"),
        ("write", "../x", "match"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_with_the_part_at_fault(tool, match, field):
    with pytest.raises(RuleError) as caught:
        make_rule(tool=tool, match=match, action=Action.ALLOW)
    assert caught.value.field == field


def test_a_rule_text_with_nothing_behind_its_colon_never_becomes_a_rule_for_the_whole_tool():
    with pytest.raises(RuleError):
        parse_rule("shell: ")


def test_a_rule_speaks_only_of_its_tool_channel_and_role(tmp_path):
    subject = Subject(
        agent_id=AgentId("a"),
        conversation_id=ConversationId("c"),
        mode=PermissionMode.ASK,
        workspace=tmp_path,
        channel="telegram",
        role=PersonRole.MEMBER,
    )
    assert make_rule(tool="mcp__*", action=Action.ALLOW).concerns("mcp__x", subject)
    assert make_rule(tool="read", action=Action.ALLOW, channel="telegram").concerns("read", subject)
    assert not make_rule(tool="read", action=Action.ALLOW, channel="slack").concerns("read", subject)
    assert not make_rule(tool="read", action=Action.ALLOW, role=PersonRole.OWNER).concerns("read", subject)
    assert not make_rule(tool="read", action=Action.ALLOW).concerns("write", subject)
