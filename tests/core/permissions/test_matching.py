import pytest

from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ConversationId
from core.contracts.permissions import Action, Subject
from core.contracts.tools import Access
from core.permissions.matching import Case, Match, covers, meets, target_names
from core.permissions.rules import make_rule


@pytest.fixture
def case(tmp_path):
    subject = Subject(
        agent_id=AgentId("a"), conversation_id=ConversationId("c"), mode=PermissionMode.ASK, workspace=tmp_path
    )
    return lambda tool, access: Case(tool=tool, access=access, subject=subject)


def allow(tool, match=""):
    return make_rule(tool=tool, match=match, action=Action.ALLOW)


def deny(tool, match=""):
    return make_rule(tool=tool, match=match, action=Action.DENY)


def test_a_rule_without_pattern_covers_and_meets_every_call_of_its_tool(case):
    unknown = case("mcp__x", None)
    assert covers(allow("mcp__x"), unknown)
    assert meets(deny("mcp__x"), unknown) is Match.YES
    assert not covers(allow("mcp__y"), unknown)
    assert meets(deny("mcp__y"), unknown) is Match.NO


def test_a_pattern_covers_nothing_that_is_unknown_and_cannot_be_ruled_out_there(case):
    unknown = case("mcp__x", None)
    assert not covers(allow("mcp__x", "**"), unknown)
    assert meets(deny("mcp__x", "**"), unknown) is Match.MAYBE


def test_a_glob_covers_no_command_and_no_call_that_touches_nothing(case):
    assert not covers(allow("*", "**"), case("shell", Access(command="ls")))
    assert not covers(allow("other", "**"), case("other", Access()))


def test_everything_that_a_call_touches_has_a_name(case, tmp_path):
    access = Access(
        reads=(tmp_path / "a",), writes=(tmp_path / "b" / ".." / "c",), network=("h.net",), memory_writes=("m.md",)
    )
    assert target_names(case("x", access)) == tuple(frozenset({name}) for name in ("a", "c", "h.net", "m.md"))


def test_a_linked_path_has_both_its_names(case, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert target_names(case("x", Access(reads=(tmp_path / "link",)))) == (frozenset({"link", "real"}),)


def test_a_shell_rule_meets_a_call_without_a_line_perhaps(case):
    assert meets(deny("shell", "rm *"), case("shell", Access())) is Match.MAYBE
    assert meets(deny("shell", "rm *"), case("shell", Access(command="rm x"))) is Match.YES
    assert meets(deny("shell", "rm *"), case("shell", Access(command="ls x"))) is Match.NO
