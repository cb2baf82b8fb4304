"""Reading, writing and editing files of the workspace."""

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.errors import ToolError
from core.tools.files import EditArguments, EditTool, ReadTool, WriteTool, replaced
from core.tools.versions import ReadVersions
from tests.core.tools.fakes import FakeRedactor, PathlibFiles, context_in, text_of

KEY = "ghp_" + "A" * 36


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path)


class Tools:
    def __init__(self, files=PathlibFiles, **secrets):
        versions, redactor = ReadVersions(), FakeRedactor(**secrets)
        self.read = ReadTool(files, versions, redactor)
        self.write = WriteTool(files, versions, redactor)
        self.edit = EditTool(files, versions)


async def test_a_file_is_read_with_line_numbers_by_either_form_of_path(context):
    (context.workspace / "a.md").write_text("one\ntwo\n")
    assert await text_of(Tools().read, context, path="a.md") == "1\tone\n2\ttwo"
    assert await text_of(Tools().read, context, path=str(context.workspace / "x/../a.md")) == "1\tone\n2\ttwo"


async def test_a_long_file_is_read_in_pages(context):
    (context.workspace / "a.md").write_text("".join(f"{n}\n" for n in range(1, 2_502)))
    shown = await text_of(Tools().read, context, path="a.md")
    assert shown.endswith("2000\t2000\n[lines 1 to 2,000 of 2,501; read on with offset=2001]")
    assert (await text_of(Tools().read, context, path="a.md", offset=2_501)) == "2501\t2501"
    (context.workspace / "wide.md").write_text("x" * 100_000)
    assert len(await text_of(Tools().read, context, path="wide.md")) <= 30_000


async def test_a_binary_file_is_refused_and_odd_text_is_not_c80(context):
    (context.workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (context.workspace / "wide.txt").write_bytes("Malmö".encode("utf-16"))
    (context.workspace / "latin.txt").write_bytes(b"Lives near Malm\xf6\nsecond\n")
    with pytest.raises(ToolError, match="binary file of 108 bytes"):
        await text_of(Tools().read, context, path="a.png")
    assert await text_of(Tools().read, context, path="wide.txt") == "1\tMalmö"
    assert await text_of(Tools().read, context, path="latin.txt") == "1\tLives near Malm�\n2\tsecond"


async def test_a_secret_that_a_page_would_cut_in_two_is_masked_before_the_cut(context):
    (context.workspace / "a.txt").write_text("x" * 29_700 + KEY + "y" * 1_000)
    shown = await text_of(Tools(NAME=KEY).read, context, path="a.txt")
    assert "ghp_" not in shown


async def test_a_file_too_large_for_the_tool_is_refused_unread(context):
    with (context.workspace / "big").open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(ToolError, match=r"50,000,000 bytes.*use shell"):
        await text_of(Tools().read, context, path="big")


async def test_the_conversations_own_long_outputs_can_be_read_but_not_changed(context):
    context.overflow.mkdir(parents=True)
    kept = context.overflow / "call_0.txt"
    kept.write_text("all of it")
    assert await text_of(Tools().read, context, path=str(kept)) == "1\tall of it"
    with pytest.raises(ToolError, match="outside the workspace"):
        await text_of(Tools().write, context, path=str(kept), text="x")


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../b", "~/../../x/../../../etc/passwd", "/"])
@pytest.mark.parametrize("name", ["read", "write", "edit"])
async def test_nothing_outside_the_workspace_is_opened(context, path, name):
    arguments = {"read": {}, "write": {"text": "x"}, "edit": {"old": "a", "new": "b"}}[name]
    opened = []
    with pytest.raises(ToolError, match="outside the workspace"):
        await text_of(getattr(Tools(opened.append), name), context, path=path, **arguments)
    assert opened == []


async def test_access_declares_where_a_path_leads_even_outside(context):
    tools = Tools()
    assert tools.read.access({"path": "../x"}, context).reads == (context.workspace.parent / "x",)
    assert tools.write.access({"path": "a", "text": ""}, context).writes == (context.workspace / "a",)
    edit = tools.edit.access({"path": "a/./b", "old": "x", "new": "y"}, context)
    assert edit.writes == edit.reads == (context.workspace / "a/b",)


async def test_a_file_is_created_with_its_folders_and_then_replaced(context):
    tools = Tools()
    assert await text_of(tools.write, context, path="a/b.md", text="Grüße") == "Created a/b.md: 7 bytes."
    assert await text_of(tools.write, context, path="a/b.md", text="") == "Replaced a/b.md: 0 bytes."
    assert (context.workspace / "a/b.md").read_text() == ""


async def test_a_file_that_changed_since_it_was_read_is_neither_edited_nor_replaced(context):
    tools, file = Tools(), context.workspace / "a.md"
    file.write_text("one\n")
    await text_of(tools.read, context, path="a.md")
    file.write_text("one\ntwo\n")
    with pytest.raises(ToolError, match="has changed since you read it"):
        await text_of(tools.edit, context, path="a.md", old="one", new="1")
    with pytest.raises(ToolError, match="has changed since you read it"):
        await text_of(tools.write, context, path="a.md", text="all new")
    assert file.read_text() == "one\ntwo\n"
    await text_of(tools.read, context, path="a.md")
    assert await text_of(tools.edit, context, path="a.md", old="two", new="2") == (
        "Edited a.md: 1 replacement, the first at line 2."
    )
    await text_of(tools.edit, context, path="a.md", old="2", new="3")  # its own change is known


async def test_what_one_conversation_read_does_not_bind_another(context, tmp_path):
    tools, file = Tools(), context.workspace / "a.md"
    file.write_text("one\n")
    await text_of(tools.read, context, path="a.md")
    file.write_text("one\ntwo\n")
    await text_of(tools.edit, context_in(tmp_path, conversation="conv-2"), path="a.md", old="two", new="2")
    assert file.read_text() == "one\n2\n"


async def test_an_edit_leaves_every_other_byte_as_it_is_c45(context):
    file = context.workspace / "a.md"
    file.write_bytes(b"Lives near Malm\xf6\nold\n\x00\xff")
    await text_of(Tools().edit, context, path="a.md", old="old", new="new")
    assert file.read_bytes() == b"Lives near Malm\xf6\nnew\n\x00\xff"


async def test_an_edit_keeps_the_line_ends_of_the_file(context):
    file = context.workspace / "a.md"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    await text_of(Tools().edit, context, path="a.md", old="one\ntwo", new="1\n2\n2b")
    assert file.read_bytes() == b"1\r\n2\r\n2b\r\nthree\r\n"


async def test_an_edit_needs_text_that_stands_once_or_replaces_all(context):
    tools, file = Tools(), context.workspace / "a.md"
    file.write_text("a a a")
    with pytest.raises(ToolError, match="stands 3 times"):
        await text_of(tools.edit, context, path="a.md", old="a", new="b")
    with pytest.raises(ToolError, match="must match exactly"):
        await text_of(tools.edit, context, path="a.md", old="c", new="b")
    with pytest.raises(ToolError, match="the same"):
        await text_of(tools.edit, context, path="a.md", old="a", new="a")
    assert "3 replacements" in await text_of(tools.edit, context, path="a.md", old="a", new="b", replace_all=True)
    assert file.read_text() == "b b b"


async def test_a_masked_secret_is_not_written_back_over_the_real_one(context):
    tools, file = Tools(NAME=KEY), context.workspace / ".env"
    file.write_text(f"USER=a\nTOKEN={KEY}\n")
    shown = await text_of(tools.read, context, path=".env")
    assert "TOKEN=[secret NAME]" in shown
    with pytest.raises(ToolError, match="mask of a secret"):
        await text_of(tools.write, context, path=".env", text="USER=b\nTOKEN=[secret NAME]\n")
    with pytest.raises(ToolError, match="Masked secrets cannot be matched"):
        await text_of(tools.edit, context, path=".env", old="TOKEN=[secret NAME]", new="TOKEN=x")
    await text_of(tools.edit, context, path=".env", old="USER=a", new="USER=b")
    assert file.read_text() == f"USER=b\nTOKEN={KEY}\n"


async def test_what_the_files_refuse_is_what_the_model_reads_and_nothing_is_written(context):
    written = []

    class LeadingOut(PathlibFiles):
        """A workspace in which every path is a link that leads out."""

        def stat(self, path):
            raise ToolError("leads out of the workspace") from OSError(errno.EXDEV, "link")

        def write(self, path, data):
            written.append(path)

    tools = Tools(LeadingOut)
    for tool, arguments in ((tools.read, {}), (tools.write, {"text": "x"}), (tools.edit, {"old": "a", "new": "b"})):
        with pytest.raises(ToolError, match="leads out"):
            await text_of(tool, context, path="a.md", **arguments)
    assert written == []


async def test_a_missing_file_is_an_error_to_read_and_edit(context):
    for tool, arguments in ((Tools().read, {}), (Tools().edit, {"old": "a", "new": "b"})):
        with pytest.raises(ToolError, match=r"'a\.md': No such file"):
            await text_of(tool, context, path="a.md", **arguments)


async def test_a_folder_and_an_empty_path_are_refused(context):
    (context.workspace / "folder").mkdir()
    for tool, arguments in (
        (Tools().read, {}),
        (Tools().write, {"text": "x"}),
        (Tools().edit, {"old": "a", "new": "b"}),
    ):
        with pytest.raises(ToolError, match="is a folder"):
            await text_of(tool, context, path="folder", **arguments)
        with pytest.raises(ToolError, match="path is empty"):
            await text_of(tool, context, path=" ", **arguments)


@given(st.binary(max_size=60), st.text(min_size=1, max_size=5), st.text(max_size=5), st.binary(max_size=60))
def test_a_replacement_touches_nothing_around_it(before, old, new, after):
    data = before + old.encode() + after
    if b"\r" in data or "\r" in new or data.count(old.encode()) != 1 or old == new:
        return
    wanted = EditArguments(path="a", old=old, new=new)
    assert replaced(data, wanted) == (before + new.encode() + after, 1)


async def test_further_folders_are_read_and_nothing_beside_them_nor_written_there(context, tmp_path):
    mine, other = tmp_path / "attachments" / "conv-1", tmp_path / "attachments" / "conv-10"
    for folder in (mine, other):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("came with a message")
    reading = replace(context, readable=(mine,))
    assert await text_of(Tools().read, reading, path=str(mine / "a.txt")) == "1\tcame with a message"
    for path in (other / "a.txt", mine / ".." / "conv-10" / "a.txt", mine.parent):
        with pytest.raises(ToolError):
            await text_of(Tools().read, reading, path=str(path))
    with pytest.raises(ToolError):
        await text_of(Tools().read, context, path=str(mine / "a.txt"))
    with pytest.raises(ToolError):
        await text_of(Tools().write, reading, path=str(mine / "b.txt"), content="x")
