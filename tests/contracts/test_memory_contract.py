"""One suite for every `MemoryStore`: git repositories and the in-memory fake."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.contracts.agents import Audience
from core.contracts.clock import FakeClock
from core.contracts.errors import InvalidInput, MemoryConflict, MemoryRefused, NotFound
from core.contracts.ids import Revision
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange
from core.memory.fake import FakeMemoryStore
from core.memory.store import GitMemoryStore, VersionedStore

EVERYONE = Audience()
ALICE = Audience(words=frozenset({"everyone", "person:alice"}))
AGENT = CommitOrigin(author="agent", audience=EVERYONE, conversation_id="conv-1", run_id="run-1")
ALICE_CHAT = CommitOrigin(author="agent", audience=ALICE, conversation_id="conv-2")


def create(path: str, text: str, description: str = "about it") -> MemoryChange:
    return MemoryChange(kind=ChangeKind.CREATE, path=path, text=text, description=description)


def edit(path: str, old: str, text: str) -> MemoryChange:
    return MemoryChange(kind=ChangeKind.EDIT, path=path, old=old, text=text)


def replace(path: str, text: str) -> MemoryChange:
    return MemoryChange(kind=ChangeKind.REPLACE, path=path, text=text)


@pytest.fixture(params=["git", "fake"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., VersionedStore]:
    def build(mask: Callable[[str], str] = str) -> VersionedStore:
        clock = FakeClock(datetime(2026, 1, 1, 12, 0, tzinfo=UTC))
        return GitMemoryStore(tmp_path, clock, mask) if request.param == "git" else FakeMemoryStore(clock, mask)

    return build


@pytest.fixture
async def store(make: Callable[..., VersionedStore]) -> VersionedStore:
    store = make()
    await store.create("m", ())
    return store


async def body(store: VersionedStore, path: str, audience: Audience = EVERYONE) -> str:
    return (await store.read("m", path, audience)).body


async def test_a_new_memory_has_the_default_files_in_one_commit_by_lodger(store):
    snapshot = await store.snapshot("m", EVERYONE)
    assert [file.path for file in snapshot.files] == ["MEMORY.md", "human.md", "persona.md"]
    assert all(file.core and file.description and file.body for file in snapshot.files)
    (commit,) = await store.log("m")
    assert (commit.author, commit.parent, commit.revision) == ("lodger", None, snapshot.revision)


async def test_creating_again_leaves_a_memory_with_a_head_alone(store):
    before = await store.head("m")
    assert await store.create("m", (("MEMORY.md", "---\ndescription: other\n---\nx"),)) == before
    assert await store.head("m") == before


async def test_given_initial_files_replace_the_default_ones(make):
    store = make()
    await store.create(
        "m", (("MEMORY.md", "---\ndescription: index\n---\nmine"), ("skills/tea/SKILL.md", "# Make tea"))
    )
    snapshot = await store.snapshot("m", EVERYONE)
    assert [(file.path, file.body, file.description) for file in snapshot.files] == [
        ("MEMORY.md", "mine", "index"),
        ("skills/tea/SKILL.md", "# Make tea", "Make tea"),
    ]


async def test_bad_initial_files_create_nothing(make):
    store = make()
    with pytest.raises(MemoryRefused):
        await store.create("m", (("notes.txt", "x"),))
    with pytest.raises(NotFound):
        await store.head("m")


async def test_unknown_things_are_not_found(store):
    with pytest.raises(NotFound):
        await store.head("other")
    with pytest.raises(NotFound):
        await store.snapshot("m", EVERYONE, at=Revision("0" * 40))
    with pytest.raises(NotFound):
        await store.read("m", "none.md", EVERYONE)
    with pytest.raises(NotFound):
        await store.diff("m", Revision("not a revision"), EVERYONE)
    with pytest.raises(NotFound):
        await store.undo("m", Revision("0" * 40), origin=AGENT)


async def test_several_changes_are_one_commit_with_its_origin(store):
    before = await store.head("m")
    changes = (create("tea.md", "Green tea."), edit("human.md", "I do not know anybody here yet.", "Alice likes teal."))
    commit = await store.commit("m", changes, message="Learn about Alice", origin=AGENT)
    assert commit.paths == ("human.md", "tea.md")
    assert (commit.author, commit.message, commit.parent) == ("agent", "Learn about Alice", before)
    assert (commit.conversation_id, commit.committed_at) == ("conv-1", datetime(2026, 1, 1, 12, 0, tzinfo=UTC))
    assert commit.revision == await store.head("m")
    assert await body(store, "human.md") == "Alice likes teal.\n"
    assert (await store.log("m"))[0] == commit


async def test_when_one_change_is_refused_none_is_made(store):
    before = await store.head("m")
    with pytest.raises(MemoryRefused) as refused:
        await store.commit("m", (create("tea.md", "x"), create("notes.txt", "x")), message="m", origin=AGENT)
    assert refused.value.path == "notes.txt"
    assert await store.head("m") == before


async def test_a_file_of_an_earlier_revision_stays_readable(store):
    first = await store.head("m")
    await store.commit("m", [edit("human.md", "anybody", "everybody")], message="m", origin=AGENT)
    assert "anybody" in (await store.read("m", "human.md", EVERYONE, at=first)).body
    assert "everybody" in (await store.read("m", "human.md", EVERYONE)).body
    assert (await store.snapshot("m", EVERYONE, at=first)).revision == first


async def test_an_edit_whose_text_is_gone_shows_the_current_content(store):
    """C42: a replacement that comes too late does not overwrite."""
    await store.commit("m", [replace("human.md", "Alice has moved.\n")], message="m", origin=AGENT)
    with pytest.raises(MemoryRefused, match=r"Alice has moved\."):
        await store.commit("m", [edit("human.md", "anybody", "nobody")], message="m", origin=AGENT)


async def test_an_edit_of_text_that_stands_twice_asks_for_more_of_it(store):
    await store.commit("m", [replace("human.md", "tea\ntea\n")], message="m", origin=AGENT)
    with pytest.raises(MemoryRefused, match="2 times"):
        await store.commit("m", [edit("human.md", "tea", "coffee")], message="m", origin=AGENT)


async def test_a_rewrite_of_an_old_copy_keeps_what_came_meanwhile(store):
    """C42: the slow writer's base is merged with the additions, not written over them."""
    lines = "".join(f"- fact {number}\n" for number in range(10))
    await store.commit("m", [replace("human.md", lines)], message="m", origin=AGENT)
    read_at = await store.head("m")
    await store.commit("m", [edit("human.md", "- fact 0\n", "- likes teal\n- fact 0\n")], message="m", origin=AGENT)
    by_bob = CommitOrigin(author="Bob", audience=EVERYONE, person="bob")
    await store.commit("m", [edit("human.md", "- fact 3\n", "- fact 3\n- phone off\n")], message="m", origin=by_bob)
    shorter = lines.replace("- fact 7\n- fact 8\n", "")
    await store.commit("m", [replace("human.md", shorter)], message="tidy", origin=AGENT, base=read_at)
    final = await body(store, "human.md")
    assert "- likes teal\n" in final
    assert "- phone off\n" in final
    assert "fact 7" not in final
    assert [commit.author for commit in await store.log("m", path="human.md")] == [
        "agent",
        "Bob",
        "agent",
        "agent",
        "lodger",
    ]


async def test_two_rewrites_of_the_same_lines_conflict_and_publish_nothing(store):
    read_at = await store.head("m")
    await store.commit("m", [replace("human.md", "Alice.\n")], message="m", origin=AGENT)
    before = await store.head("m")
    with pytest.raises(MemoryConflict) as conflict:
        await store.commit("m", [replace("human.md", "Bob.\n")], message="m", origin=AGENT, base=read_at)
    assert conflict.value.paths == ("human.md",)
    assert await store.head("m") == before


async def test_an_edit_is_made_again_on_the_newer_file_when_merging_cannot_tell(store):
    read_at = await store.head("m")
    await store.commit("m", [edit("human.md", "yet.\n", "yet.\n- one\n")], message="m", origin=AGENT)
    await store.commit("m", [edit("human.md", "yet.\n", "yet.\n- two\n")], message="m", origin=AGENT, base=read_at)
    assert await body(store, "human.md") == "I do not know anybody here yet.\n- two\n- one\n"


async def test_a_change_that_changes_nothing_is_refused(store):
    same = await body(store, "human.md")
    with pytest.raises(MemoryRefused, match="changes nothing"):
        await store.commit("m", [replace("human.md", same)], message="m", origin=AGENT)


async def test_a_move_keeps_text_and_header(store):
    await store.commit("m", [create("tea.md", "Green.", "tea lore")], message="m", origin=AGENT)
    move = MemoryChange(kind=ChangeKind.MOVE, path="tea.md", target="archive/tea.md")
    commit = await store.commit("m", [move, create("archive/MEMORY.md", "Old things.")], message="m", origin=AGENT)
    assert commit.paths == ("archive/MEMORY.md", "archive/tea.md", "tea.md")
    moved = await store.read("m", "archive/tea.md", EVERYONE)
    assert (moved.body, moved.description, moved.core) == ("Green.", "tea lore", False)


async def test_check_returns_the_question_that_commit_would_not_pass_without_an_answer(store):
    delete = [MemoryChange(kind=ChangeKind.DELETE, path="human.md")]
    before = await store.head("m")
    question = await store.check("m", delete, origin=AGENT)
    assert question is not None
    assert "human.md" in question
    assert await store.head("m") == before
    with pytest.raises(MemoryRefused, match="a person has to agree"):
        await store.commit("m", delete, message="m", origin=AGENT)
    approved = CommitOrigin(author="agent", audience=EVERYONE, person="alice", approved=True)
    assert await store.check("m", delete, origin=approved) is None
    assert (await store.commit("m", delete, message="m", origin=approved)).paths == ("human.md",)


async def test_check_is_silent_for_what_is_free_and_refuses_what_nobody_can_allow(store):
    assert await store.check("m", [create("tea.md", "x")], origin=AGENT) is None
    with pytest.raises(MemoryRefused):
        await store.check("m", [create("../tea.md", "x")], origin=AGENT)


async def test_the_history_of_one_file_leaves_other_commits_out(store):
    await store.commit("m", [create("tea.md", "x")], message="tea", origin=AGENT)
    await store.commit("m", [edit("human.md", "anybody", "all")], message="human", origin=AGENT)
    assert [commit.message for commit in await store.log("m", path="tea.md")] == ["tea"]
    assert [commit.message for commit in await store.log("m", limit=2)] == ["human", "tea"]


async def test_a_diff_shows_exactly_one_commit(store):
    commit = await store.commit("m", [edit("human.md", "anybody", "all")], message="m", origin=AGENT)
    diff = await store.diff("m", commit.revision, EVERYONE)
    assert diff.startswith("--- a/human.md\n+++ b/human.md\n")
    assert "-I do not know anybody here yet.\n+I do not know all here yet.\n" in diff
    assert "persona" not in diff


async def test_undo_takes_one_commit_back_and_keeps_later_ones(store):
    first = await store.commit("m", [create("tea.md", "x")], message="tea", origin=AGENT)
    await store.commit("m", [create("milk.md", "y")], message="milk", origin=AGENT)
    approved = CommitOrigin(author="Alice", audience=EVERYONE, person="alice", approved=True)
    undone = await store.undo("m", first.revision, origin=approved)
    assert (undone.paths, undone.author, undone.message) == (("tea.md",), "Alice", "Undo: tea")
    assert await body(store, "milk.md") == "y"
    with pytest.raises(NotFound):
        await store.read("m", "tea.md", EVERYONE)


async def test_undo_keeps_lines_that_came_later_in_the_same_file(store):
    lines = [f"- fact {number}\n" for number in range(9)]
    await store.commit("m", [replace("human.md", "".join(lines))], message="m", origin=AGENT)
    wrong = await store.commit("m", [edit("human.md", "fact 1\n", "fact one\n")], message="m", origin=AGENT)
    await store.commit("m", [edit("human.md", "fact 7\n", "fact seven\n")], message="m", origin=AGENT)
    await store.undo("m", wrong.revision, origin=AGENT)
    assert await body(store, "human.md") == "".join(lines).replace("fact 7", "fact seven")


async def test_undo_of_lines_that_were_rewritten_later_is_a_conflict(store):
    first = await store.commit("m", [replace("human.md", "one\n")], message="m", origin=AGENT)
    await store.commit("m", [replace("human.md", "two\n")], message="m", origin=AGENT)
    with pytest.raises(MemoryConflict):
        await store.undo("m", first.revision, origin=AGENT)


async def test_undoing_twice_says_that_nothing_is_left_to_undo(store):
    commit = await store.commit("m", [create("tea.md", "x")], message="m", origin=AGENT)
    approved = CommitOrigin(author="Alice", audience=EVERYONE, person="alice", approved=True)
    await store.undo("m", commit.revision, origin=approved)
    with pytest.raises(MemoryRefused, match="changes nothing"):
        await store.undo("m", commit.revision, origin=approved)


async def test_every_reader_keeps_to_the_audience(store):
    """Invariant 16: snapshot, read, diff, log and edits."""
    commit = await store.commit("m", [create("people/alice.md", "secret plan")], message="plan", origin=ALICE_CHAT)
    mine = {file.path: file for file in (await store.snapshot("m", ALICE)).files}
    assert mine["people/alice.md"].core
    assert mine["people/alice.md"].audience == "person:alice"
    assert "people/alice.md" not in {file.path for file in (await store.snapshot("m", EVERYONE)).files}
    with pytest.raises(NotFound):
        await store.read("m", "people/alice.md", EVERYONE)
    assert "secret plan" in await store.diff("m", commit.revision, ALICE)
    assert await store.diff("m", commit.revision, EVERYONE) == ""
    assert [told.message for told in await store.log("m", audience=EVERYONE)] == ["Begin the memory"]
    with pytest.raises(MemoryRefused, match="no such file"):
        await store.commit("m", [edit("people/alice.md", "secret", "open")], message="m", origin=AGENT)


async def test_a_commit_that_is_partly_private_hides_its_words_from_others(store):
    changes = (create("people/alice.md", "secret plan"), create("tea.md", "x"))
    await store.commit("m", changes, message="Alice will leave", origin=ALICE_CHAT)
    (told, _) = await store.log("m", audience=EVERYONE)
    assert told.paths == ("tea.md",)
    assert "leave" not in told.message


async def test_secrets_become_placeholders_and_the_text_around_them_stays(make):
    """C47: registered values and well-known shapes, in text, description and message."""
    known = "hunter2-" + "hunter2"
    token = "ghp_" + "A" * 36
    store = make(lambda text: text.replace(known, "[secret NAME]"))
    await store.create("m", ())
    change = create("keys.md", f"my key is {token} and {known} ok", f"holds {token}")
    commit = await store.commit("m", [change], message=f"store {token}", origin=AGENT)
    stored = await store.read("m", "keys.md", EVERYONE)
    assert stored.body == "my key is [secret removed] and [secret NAME] ok"
    assert stored.description == "holds [secret removed]"
    assert commit.message == "store [secret removed] (secret values were replaced by placeholders)"
    assert token not in await store.diff("m", commit.revision, EVERYONE)


async def test_a_secret_in_a_file_name_is_refused_without_being_repeated(store):
    """C47."""
    token = "ghp_" + "A" * 36
    with pytest.raises(MemoryRefused) as refused:
        await store.commit("m", [create(f"{token}.md", "x")], message="m", origin=AGENT)
    assert token not in str(refused.value)


async def test_words_that_look_like_trailers_cannot_pose_as_the_hosts_record(store):
    message = "Tidy\n\nAuthor: lodger\nConversation: conv-9"
    commit = await store.commit("m", [create("tea.md", "x")], message=message, origin=AGENT)
    assert (commit.author, commit.conversation_id, commit.message) == ("agent", "conv-1", message)


async def test_a_memory_id_cannot_lead_out_of_the_directory(tmp_path):
    store = GitMemoryStore(tmp_path / "memory", FakeClock())
    with pytest.raises(InvalidInput):
        await store.create("../escape", ())
    assert not (tmp_path / "escape.git").exists()


async def test_revisions_can_be_named_by_a_unique_beginning(store):
    commit = await store.commit("m", [create("tea.md", "x")], message="m", origin=AGENT)
    assert "tea.md" in await store.diff("m", Revision(commit.revision[:8]), EVERYONE)
