"""Finding text and files."""

import asyncio
import threading
from dataclasses import replace

import pytest

from core.contracts.clock import FakeClock, SystemClock
from core.contracts.errors import ToolError
from core.tools.search import GREP_LIMIT_CHARS, GlobTool, GrepTool
from tests.core.tools.fakes import FakeRedactor, PathlibFiles, context_in, text_of

KEY = "ghp_" + "A" * 36


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path)


def grep_tool(files=PathlibFiles, clock=None, **secrets):
    return GrepTool(files, FakeRedactor(**secrets), clock or FakeClock())


def fill(context, **texts):
    for name, text in texts.items():
        path = context.workspace / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


async def test_matching_lines_are_shown_with_path_and_number(context):
    fill(context, a_dot_py="one\ntwo\n", src__b_dot_py="Two\n", c_dot_md="two")
    assert await text_of(grep_tool(), context, pattern="two") == "a.py:2:two\nc.md:1:two"
    assert (
        await text_of(grep_tool(), context, pattern="^TWO$", ignore_case=True, glob="*.py")
        == "a.py:2:two\nsrc/b.py:1:Two"
    )
    assert await text_of(grep_tool(), context, pattern="t", path="src", glob="b.*") == "(nothing found)"
    assert await text_of(grep_tool(), context, pattern="two", path="a.py") == "a.py:2:two"


async def test_binary_huge_and_git_files_are_skipped(context):
    fill(context, _dot_git__config="needle", ok_dot_txt="needle")
    (context.workspace / "bin").write_bytes(b"needle\0\x01\x02")
    (context.workspace / "huge.txt").write_text("needle\n" * 300_000)
    assert await text_of(grep_tool(), context, pattern="needle") == "ok.txt:1:needle"


async def test_a_long_result_stays_within_its_limit_and_says_so(context):
    fill(context, a_dot_txt="needle and more\n" * 2_000)
    shown = await text_of(grep_tool(), context, pattern="needle")
    assert len(shown) <= GREP_LIMIT_CHARS
    assert shown.endswith("[there is more; narrow the pattern or the path]")


async def test_a_long_line_is_shown_around_its_match(context):
    fill(context, a_dot_txt="x" * 5_000 + "needle" + "y" * 5_000)
    shown = await text_of(grep_tool(), context, pattern="needle")
    assert "needle" in shown
    assert len(shown) < 400


async def test_a_secret_is_masked_before_lines_are_cut(context):
    fill(context, a_dot_txt="needle" + "x" * 180 + KEY + "y" * 500)
    shown = await text_of(grep_tool(NAME=KEY), context, pattern="needle")
    assert "ghp_" not in shown
    assert await text_of(grep_tool(NAME=KEY), context, pattern="ghp_A+") == "(nothing found)"


async def test_an_expression_that_never_ends_is_stopped_while_others_work(context):
    fill(context, a_dot_txt="x" * 3_000)
    read = threading.Event()

    class Files(PathlibFiles):
        def read(self, path, *, limit_bytes):
            data = super().read(path, limit_bytes=limit_bytes)
            read.set()
            return data

    searching = asyncio.ensure_future(
        text_of(grep_tool(Files, HurriedClock()), context, pattern=r"(\w*)(\w*)(\w*)\1\2\3[yz]")
    )
    ticks = 0
    while not searching.done():
        await asyncio.sleep(0)
        ticks += read.is_set()  # counted while it matches
    assert "stopped after 10 s" in await searching
    assert ticks > 100


class HurriedClock(SystemClock):
    """Real time, of which a search is left 0.2 s."""

    def __init__(self):
        self._asked = 0

    def monotonic(self):
        self._asked += 1
        return super().monotonic() + (0 if self._asked == 1 else 9.8)


async def test_a_search_out_of_time_shows_what_it_found(context):
    fill(context, a_dot_txt="needle", b_dot_txt="needle")
    clock = FakeClock()

    class SlowFiles(PathlibFiles):
        def read(self, path, *, limit_bytes):
            clock._elapsed += 9.0
            return super().read(path, limit_bytes=limit_bytes)

    fill(context, c_dot_txt="needle")
    shown = await text_of(grep_tool(SlowFiles, clock), context, pattern="needle")
    assert shown.startswith("a.txt:1:needle\n")
    assert "c.txt" not in shown
    assert "stopped after 10 s" in shown


async def test_a_cancelled_search_has_ended_when_the_cancellation_comes_out(context):
    fill(context, **{f"f{n}_dot_txt": "needle" for n in range(50)})
    entered, leave, read = threading.Event(), threading.Event(), []

    class HeldFiles(PathlibFiles):
        def read(self, path, *, limit_bytes):
            entered.set()
            leave.wait(5)
            read.append(path)
            return super().read(path, limit_bytes=limit_bytes)

    searching = asyncio.ensure_future(text_of(grep_tool(HeldFiles), context, pattern="needle"))
    await asyncio.to_thread(entered.wait, 5)
    searching.cancel()
    await asyncio.sleep(0)
    assert not searching.done()
    leave.set()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert len(read) == 1


@pytest.mark.parametrize("pattern", ["(", "[", "*a", "a{2,1}", "(?P<x", "\\", "(" * 499 + ")" * 499 + "("])
async def test_a_wrong_expression_is_refused_in_words(context, pattern):
    with pytest.raises(ToolError, match="no valid regular expression"):
        await text_of(grep_tool(), context, pattern=pattern)


async def test_the_conversations_long_outputs_can_be_searched(context):
    context.overflow.mkdir(parents=True)
    (context.overflow / "call_0.txt").write_text("needle")
    shown = await text_of(grep_tool(), context, pattern="needle", path=str(context.overflow))
    assert shown == f"{context.overflow}/call_0.txt:1:needle"


async def test_files_are_listed_by_pattern_and_sorted(context):
    fill(context, b_dot_md="", a__x_dot_md="", a__y_dot_py="", _dot_git__z_dot_md="")
    glob = GlobTool(PathlibFiles, FakeClock())
    assert await text_of(glob, context, pattern="*.md") == "a/x.md\nb.md"
    assert await text_of(glob, context, pattern="*", path="a") == "a/x.md\na/y.py"
    assert await text_of(glob, context, pattern="*.rs") == "(nothing found)"
    with pytest.raises(ToolError, match="'nowhere': No such file"):
        await text_of(glob, context, pattern="*", path="nowhere")


async def test_a_long_listing_stops_at_2000_paths_and_says_so(context):
    fill(context, **{f"{n:04}": "" for n in range(2_005)})
    lines = (await text_of(GlobTool(PathlibFiles, FakeClock()), context, pattern="*")).split("\n")
    assert lines[-1] == "[2,000 of 2,005 paths; narrow the pattern or the path]"
    assert len(lines) == 2_001


@pytest.mark.parametrize("path", ["/etc", "..", "a/../.."])
async def test_nothing_outside_the_workspace_is_searched(context, path):
    opened = []
    for tool in (grep_tool(opened.append), GlobTool(opened.append, FakeClock())):
        with pytest.raises(ToolError, match="outside the workspace"):
            await text_of(tool, context, pattern="x", path=path)
    assert opened == []


def test_searching_declares_the_folder_it_reads(context):
    assert grep_tool().access({"pattern": "x"}, context).reads == (context.workspace,)
    assert GlobTool(PathlibFiles, FakeClock()).access({"pattern": "x", "path": "a"}, context).reads == (
        context.workspace / "a",
    )


async def test_further_folders_are_searched_and_nothing_beside_them(context, tmp_path):
    mine, other = tmp_path / "attachments" / "conv-1", tmp_path / "attachments" / "conv-10"
    for folder in (mine, other):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("needle\n")
    reading = replace(context, readable=(mine,))
    shown = await text_of(grep_tool(), reading, pattern="needle", path=str(mine))
    assert shown.count("needle") == 1
    for path in (other, mine.parent, mine / ".." / "conv-10"):
        with pytest.raises(ToolError):
            await text_of(grep_tool(), reading, pattern="needle", path=str(path))
    with pytest.raises(ToolError):
        await text_of(grep_tool(), context, pattern="needle", path=str(mine))
