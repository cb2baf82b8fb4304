"""The agent's own memory through its tools."""

import re

import pytest

from core.contracts.errors import MemoryConflict, MemoryRefused, NotFound, StorageFull, ToolError
from core.contracts.memory import ChangeKind, MemoryChange, MemoryFile
from core.contracts.tools import Access
from core.tools.memory import MemoryLogTool, MemoryReadTool, MemoryWriteTool, memory_changes
from tests.core.tools.fakes import FakeMemory, FakeRedactor, context_in, revision, text_of

KEY = "ghp_" + "A" * 36
ALICE = "person:alice"


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path)


@pytest.fixture
def alices_context(tmp_path):
    return context_in(tmp_path, words=(ALICE,))


def memory_of(*files):
    memory = FakeMemory()
    memory.add(1, *files)
    return memory


def reader_of(memory, **secrets):
    return MemoryReadTool(memory, FakeRedactor(**secrets))


def file(path, body="text\n", **fields):
    return MemoryFile(path=path, body=body, **fields)


async def approved(context):
    return context.call_id == "call_approved"


def change(kind, path="a.md", **fields):
    return {"kind": kind, "path": path, **fields}


async def test_a_file_is_read_with_what_it_is_for_and_how_full_it_is(context):
    tool = reader_of(
        memory_of(file("human.md", "Likes tea.\n", description="The person", limit_chars=500, read_only=True))
    )
    assert await text_of(tool, context, path="./human.md") == (
        "[human.md: 11 of 500 characters, read-only; The person]\nLikes tea."
    )


async def test_an_older_revision_can_be_read(context):
    memory = memory_of(file("a.md", "old"))
    memory.add(2, file("a.md", "new"))
    assert (await text_of(reader_of(memory), context, path="a.md")).endswith("\nnew")
    assert (await text_of(reader_of(memory), context, path="a.md", at=revision(1))).endswith("\nold")
    with pytest.raises(ToolError, match=r"no revision 'abc'.*memory_log"):
        await text_of(reader_of(memory), context, path="a.md", at="abc")


@pytest.mark.parametrize(
    "body", ["x" * 14_296, "word " * 60_000, "line\n" * 5_000, "é" * 300_000, "\U0001f600\n" * 40_000]
)
async def test_a_long_file_is_cut_with_a_mark_that_says_how_to_read_on_c48(context, body):
    shown = await text_of(reader_of(memory_of(file("a.md", body))), context, path="a.md")
    assert len(shown) <= 30_000
    assert max(map(len, shown.split("\n"))) <= 2_200
    assert re.search(r"\[(cut: characters 1 to 2,000 of|lines 1 to [\d,]+ of) .*read on with offset=\d+", shown)


async def test_the_rest_of_a_long_line_is_read_with_offset_and_column_c48(context):
    tool = reader_of(memory_of(file("a.md", "first\n" + "x" * 14_000 + "end")))
    shown = await text_of(tool, context, path="a.md")
    assert shown.endswith("[cut: characters 1 to 2,000 of 14,003; read on with offset=2 column=2001]")
    rest = await text_of(tool, context, path="a.md", offset=2, column=2_001)
    assert rest.partition("\n")[2] == "x" * 12_000 + "end"


async def test_odd_text_is_shown_without_what_cannot_be_stored_c45(context):
    files = (
        file("a.md", "Lives near Malm�\n- second line\n"),
        file("b.md", "nul\0 and half \ud83d"),
        file("empty.md", ""),
        file("x.md/inner.md"),
    )
    tool = reader_of(memory_of(*files))
    assert "- second line" in await text_of(tool, context, path="a.md")
    assert (await text_of(tool, context, path="b.md")).endswith("\nnul and half �")
    assert (await text_of(tool, context, path="empty.md")).endswith("\n(empty)")
    assert await text_of(tool, context, path="x.md") == "x.md/inner.md (5 characters)"


async def test_a_secret_is_masked_before_a_line_is_cut(context):
    tool = reader_of(memory_of(file("a.md", "x" * 1_980 + KEY + "y" * 500)), NAME=KEY)
    assert "ghp_" not in await text_of(tool, context, path="a.md")


async def test_a_directory_is_listed_by_latest_edit_then_name(context):
    memory = memory_of(
        file("MEMORY.md", description="Index"),
        file("human.md"),
        file("notes/MEMORY.md", description="Notes on trips"),
        file("notes/oslo.md", "abc", description="Oslo"),
        file("zoo.md"),
    )
    memory.history.clear()
    memory.add(2, *memory.revisions[revision(1)], paths=("notes/oslo.md",))
    memory.add(3, *memory.revisions[revision(1)], paths=("zoo.md",))
    assert await text_of(reader_of(memory), context) == (
        "zoo.md (5 characters)\n"
        "notes/ (2 files): Notes on trips\n"
        "MEMORY.md (5 characters): Index\n"
        "human.md (5 characters)"
    )
    assert await text_of(reader_of(memory), context, path="notes/") == (
        "notes/oslo.md (3 characters): Oslo\nnotes/MEMORY.md (5 characters): Notes on trips"
    )


async def test_what_is_for_another_audience_does_not_exist(context, alices_context):
    memory = memory_of(file("a.md"), file("people/alice.md", audience=ALICE))
    with pytest.raises(ToolError, match=r"no 'people/alice.md' in your memory"):
        await text_of(reader_of(memory), context, path="people/alice.md")
    assert await text_of(reader_of(memory), context) == "a.md (5 characters)"
    assert "people/ (1 files)" in await text_of(reader_of(memory), alices_context)


async def test_changes_become_one_commit_of_the_agent_for_the_audience_of_the_conversation(context):
    memory = memory_of(file("a.md"))
    tool = MemoryWriteTool(memory, approved)
    arguments = {
        "message": "tea",
        "changes": [
            change("create", "b.md", text="Tea", description="Drinks"),
            change("edit", old="x", text=""),
            change("move", "c.md", target="d.md"),
            change("delete", "e.md"),
        ],
    }
    assert tool.access(arguments, context) == Access(memory_writes=("b.md", "a.md", "c.md", "d.md", "e.md"))
    assert await text_of(tool, context, **arguments) == f"Committed {revision(99)}: b.md, a.md, c.md, e.md."
    ((changes, message, origin),) = memory.committed
    assert changes[0] == MemoryChange(kind=ChangeKind.CREATE, path="b.md", text="Tea", description="Drinks")
    assert changes == memory_changes(arguments)
    assert (message, origin.author, origin.audience) == ("tea", "agent", context.audience)
    assert (origin.conversation_id, origin.person, origin.approved) == ("conv-1", "person-alice", False)


async def test_a_persons_approval_travels_with_the_commit(tmp_path):
    memory = memory_of()
    context = context_in(tmp_path, call_id="call_approved")
    await text_of(MemoryWriteTool(memory, approved), context, message="m", changes=[change("delete")])
    assert memory.committed[0][2].approved is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([], "`changes`"),
        ([change("create")], "`changes.0`: create needs `text`"),
        ([change("edit", text="x")], "edit needs `old`"),
        ([change("edit")], "edit needs `old` and `text`"),
        ([change("delete"), change("move")], "`changes.1`: move needs `target`"),
        ([change("replace", text="x", old="y")], "use edit"),
        ([change("rename")], "`changes.0.kind`"),
        ([change("delete", path="")], "`changes.0.path`"),
    ],
)
async def test_a_change_that_lacks_something_is_refused_with_its_place(context, changes, words):
    memory = memory_of()
    tool = MemoryWriteTool(memory, approved)
    with pytest.raises(ToolError, match=re.escape(words)):
        await text_of(tool, context, message="m", changes=changes)
    with pytest.raises(ToolError):
        tool.access({"message": "m", "changes": changes}, context)
    assert memory.committed == []


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (MemoryRefused(path="a.md", rule="no description", fix="Add one."), "a.md: no description. Add one."),
        (MemoryConflict(("a.md",)), "a.md changed at the same time. Read again"),
        (NotFound("memory file", "a.md"), "no memory file 'a.md'"),
        (StorageFull("disk"), "no space left"),
    ],
)
async def test_a_refused_commit_is_told_with_what_to_do(context, failure, words):
    memory = memory_of()
    memory.failure = failure
    with pytest.raises(ToolError, match=re.escape(words)) as refusal:
        await text_of(MemoryWriteTool(memory, approved), context, message="m", changes=[change("delete")])
    assert str(refusal.value).startswith("Nothing was committed")


async def test_the_log_shows_commits_newest_first(context):
    memory = memory_of(file("a.md"))
    memory.add(2, file("a.md"), file("b.md"), paths=("b.md",), message="add b\n\nlong reason")
    assert await text_of(MemoryLogTool(memory), context) == (
        f"{revision(2)} 2026-01-01 12:02Z agent: add b [b.md]\n{revision(1)} 2026-01-01 12:01Z agent: note [a.md]"
    )
    assert (await text_of(MemoryLogTool(memory), context, path="a.md")).startswith(revision(1))
    assert (await text_of(MemoryLogTool(memory), context, limit=1)).startswith(revision(2))
    assert await text_of(MemoryLogTool(memory), context, path="zzz") == "(no commits)"


async def test_the_log_withholds_what_was_written_for_another_audience(context, alices_context):
    memory = memory_of(file("a.md"))
    private = file("people/alice.md", audience=ALICE)
    memory.add(2, file("a.md"), private, paths=("people/alice.md",), message="alice is ill")
    memory.add(3, file("a.md"), private, paths=("a.md", "people/alice.md"), message="both")
    memory.add(4, file("a.md"), paths=("people/alice.md",), message="forget it")
    shown = await text_of(MemoryLogTool(memory), context)
    assert "alice" not in shown
    assert "forget" not in shown
    assert "(message withheld) [a.md]" in shown
    everything = await text_of(MemoryLogTool(memory), alices_context)
    assert [line.partition("agent: ")[2] for line in everything.split("\n")] == [
        "forget it [people/alice.md]",
        "both [a.md, people/alice.md]",
        "alice is ill [people/alice.md]",
        "note [a.md]",
    ]


async def test_a_deleted_file_stays_in_the_log_of_those_who_could_see_it(context):
    memory = memory_of(file("a.md"), file("b.md"))
    memory.add(2, file("a.md"), paths=("b.md",), message="drop b")
    assert "drop b [b.md]" in await text_of(MemoryLogTool(memory), context)


def test_memory_tools_declare_no_files_of_the_workspace(context):
    memory = memory_of()
    assert reader_of(memory).access({}, context) == Access(memory_reads=True)
    assert MemoryLogTool(memory).access({}, context) == Access(memory_reads=True)
