from pathlib import Path

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ConversationId
from core.contracts.permissions import Subject
from core.contracts.tools import Access
from core.permissions.modes import mode_allows


def subject(workspace, mode):
    return Subject(agent_id=AgentId("a"), conversation_id=ConversationId("c"), mode=mode, workspace=workspace)


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.STRICT])
def test_asking_modes_let_nothing_through_by_themselves(tmp_path, mode):
    assert not mode_allows("write", Access(writes=(tmp_path / "a",)), subject(tmp_path, mode))


def test_unrestricted_lets_through_even_what_cannot_be_known(tmp_path):
    assert mode_allows("mcp__x", None, subject(tmp_path, PermissionMode.UNRESTRICTED))


@pytest.mark.parametrize(
    ("tool", "access"),
    [
        ("mcp__write", Access(writes=(Path("a"),))),
        ("write", None),
        ("write", Access(reads=(Path("a"),))),
        ("write", Access(writes=(Path("a"), Path("../b")))),
        ("write", Access(writes=(Path("a"),), command="x")),
        ("write", Access(writes=(Path("a"),), network=("b.net",))),
        ("write", Access(writes=(Path(".git/hooks/x"),))),
    ],
)
def test_accept_edits_lets_through_nothing_but_edits_of_the_workspace(tmp_path, tool, access):
    assert not mode_allows(tool, access, subject(tmp_path, PermissionMode.ACCEPT_EDITS))


@pytest.mark.parametrize("tool", ["write", "edit", "apply_patch"])
def test_accept_edits_lets_edits_of_the_workspace_run(tmp_path, tool):
    access = Access(reads=(tmp_path / "a",), writes=(tmp_path / "a",))
    assert mode_allows(tool, access, subject(tmp_path, PermissionMode.ACCEPT_EDITS))
