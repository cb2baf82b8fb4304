from pathlib import Path

import pytest

from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ConversationId
from core.contracts.permissions import Subject
from core.contracts.tools import Access
from core.permissions.guards import MEMORY_GUARD, WORKSPACE_GUARD, guard, is_in_workspace, is_obeyed


@pytest.fixture
def subject(tmp_path):
    workspace, data = tmp_path / "ws", tmp_path / "data"
    for folder in (workspace / "sub", data / "overflow" / "mine", data / "memory"):
        folder.mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("x")
    return Subject(
        agent_id=AgentId("a"),
        conversation_id=ConversationId("c"),
        mode=PermissionMode.UNRESTRICTED,
        workspace=workspace,
        forbidden=(data, data / "overflow"),
        granted=(data / "overflow" / "mine",),
    )


def refused(subject, path):
    reading = guard(Access(reads=(Path(path),)), subject)
    writing = guard(Access(writes=(Path(path),)), subject)
    assert (reading is None) == (writing is None)
    return reading is not None and reading.rule == WORKSPACE_GUARD


@pytest.mark.parametrize("name", ["", "a.txt", "sub/new/deep.txt", "sub/../a.txt", "~", "x/~/y"])
def test_a_path_in_the_workspace_passes(subject, name):
    assert not refused(subject, subject.workspace / name)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "/",
        "~/x",
        "~root/x",
        "/proc/self/root/etc/passwd",
        "a\0b",
    ],
)
def test_a_path_that_leads_out_is_refused(subject, path):
    assert refused(subject, path)


def test_a_neighbour_whose_name_begins_like_the_workspace_is_outside(subject):
    assert refused(subject, Path(f"{subject.workspace}-other/x"))


def test_links_count_as_where_they_lead(subject, tmp_path):
    (subject.workspace / "out").symlink_to(tmp_path / "secret.txt")
    (subject.workspace / "up").symlink_to(tmp_path)
    (subject.workspace / "in").symlink_to(subject.workspace / "sub")
    assert refused(subject, subject.workspace / "out")
    assert refused(subject, subject.workspace / "up" / "new.txt")
    assert not refused(subject, subject.workspace / "in" / "new.txt")


def test_a_link_loop_is_refused(subject):
    (subject.workspace / "loop").symlink_to(subject.workspace / "loop")
    assert refused(subject, subject.workspace / "loop" / "x")


def test_a_workspace_that_is_itself_a_link_still_holds_its_files(subject, tmp_path):
    (tmp_path / "alias").symlink_to(subject.workspace)
    aliased = Subject(
        agent_id=subject.agent_id,
        conversation_id=subject.conversation_id,
        mode=subject.mode,
        workspace=tmp_path / "alias",
    )
    assert not refused(aliased, tmp_path / "alias" / "a.txt")
    assert not refused(aliased, subject.workspace / "a.txt")


def test_the_data_directory_is_refused_but_for_what_is_granted_inside_it(subject, tmp_path):
    data = tmp_path / "data"
    assert refused(subject, data)
    assert refused(subject, data / "memory" / "x")
    assert refused(subject, data / "overflow" / "other" / "x")
    assert not refused(subject, data / "overflow" / "mine" / "x")


def test_a_forbidden_place_inside_the_workspace_is_refused_with_every_folder_that_holds_it(tmp_path):
    subject = Subject(
        agent_id=AgentId("a"),
        conversation_id=ConversationId("c"),
        mode=PermissionMode.UNRESTRICTED,
        workspace=tmp_path,
        forbidden=(tmp_path / "deep" / "vault",),
    )
    assert refused(subject, tmp_path / "deep" / "vault" / "x")
    assert refused(subject, tmp_path / "deep")
    assert refused(subject, tmp_path)
    assert not refused(subject, tmp_path / "other")


@pytest.mark.parametrize("name", ["../other/MEMORY.md", "/etc/passwd", "a/../../b", "~/x", "a\0"])
def test_a_memory_file_of_somebody_else_is_refused(subject, name):
    assert guard(Access(memory_writes=("MEMORY.md", name)), subject).rule == MEMORY_GUARD


def test_own_memory_passes(subject):
    assert guard(Access(memory_reads=True, memory_writes=("people/x.md",)), subject) is None


def test_a_granted_path_is_not_in_the_workspace(subject, tmp_path):
    assert is_in_workspace(subject.workspace / "a", subject)
    assert not is_in_workspace(tmp_path / "data" / "overflow" / "mine" / "x", subject)


@pytest.mark.parametrize("name", [".git/config", "sub/.GIT/hooks/x", ".gitconfig", "HEAD", "sub/head", ".ssh/config"])
def test_files_that_other_programs_obey_are_known(subject, name):
    assert is_obeyed(subject.workspace / name, subject)


def test_a_link_to_a_file_that_programs_obey_is_obeyed_too(subject):
    (subject.workspace / ".git").mkdir()
    (subject.workspace / "g").symlink_to(subject.workspace / ".git")
    assert is_obeyed(subject.workspace / "g" / "config", subject)


@pytest.mark.parametrize("name", ["a.txt", ".gitignore", "heads/x"])
def test_ordinary_files_are_not_obeyed(subject, name):
    assert not is_obeyed(subject.workspace / name, subject)
