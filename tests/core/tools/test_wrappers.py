"""What every call goes through."""

import asyncio
import logging

import pytest

from core.contracts.errors import ToolError
from core.contracts.messages import ImagePart, ReturnOutcome, TextPart
from core.contracts.tools import Access, ToolSchema
from core.tools.output import RETURN_LIMIT_CHARS
from core.tools.overflow import OverflowFiles
from core.tools.schema import Arguments, parse
from core.tools.toolsets import StaticToolset
from core.tools.wrappers import BROKEN_TOOL_TEXT, declared_access, perform
from tests.core.tools.fakes import BROKEN_ARGUMENTS, FakeRedactor, call_of, context_in

KEY = "ghp_" + "A" * 36


DONE = (TextPart(text="done"),)


class WriteFileArguments(Arguments):
    path: str
    content: str


class ScriptedTool:
    """Answers with `result`, or raises it."""

    def __init__(self, name="write_file", result=DONE, model=WriteFileArguments):
        self.schema = ToolSchema(name=name, description="", parameters={})
        self.ran = []
        self._result, self._model = result, model

    def access(self, arguments, context):
        parse(self._model, arguments)
        return Access(free=True)

    async def call(self, arguments, context):
        parse(self._model, arguments)
        self.ran.append(arguments)
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


class Nothing(Arguments):
    pass


GOOD = '{"path":"a.md","content":"x"}'


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path)


async def performed(tool, context, call=None, **secrets):
    redactor = FakeRedactor(**secrets)
    toolset = StaticToolset("test", (tool,))
    call = call or call_of("write_file", GOOD)
    return await perform(toolset, call, context, redactor=redactor, overflow=OverflowFiles(redactor))


def text(result):
    return "\n".join(part.text for part in result.parts if isinstance(part, TextPart))


async def test_a_good_call_runs_and_its_result_carries_the_calls_id(context):
    tool = ScriptedTool()
    result = await performed(tool, context)
    assert (result.call_id, result.outcome, text(result)) == ("call_1", ReturnOutcome.OK, "done")
    assert tool.ran == [{"path": "a.md", "content": "x"}]


@pytest.mark.parametrize("raw", [*BROKEN_ARGUMENTS, "", "{}", '{"path":"a.md"}'], ids=range(len(BROKEN_ARGUMENTS) + 3))
async def test_a_tool_never_runs_on_broken_arguments_and_the_error_is_its_result_c30(context, raw):
    tool = ScriptedTool()
    result = await performed(tool, context, call_of("write_file", raw))
    assert (result.call_id, result.outcome) == ("call_1", ReturnOutcome.ERROR)
    assert "arguments" in text(result)
    assert len(text(result)) < 1_300
    assert tool.ran == []
    with pytest.raises(ToolError):
        declared_access(StaticToolset("test", (tool,)), call_of("write_file", raw), context)


async def test_a_call_with_a_fault_never_runs_even_where_no_argument_is_needed_c30(context):
    tool = ScriptedTool(model=Nothing)
    result = await performed(tool, context, call_of("write_file", "{}", fault='cut at: {"pa'))
    assert result.outcome is ReturnOutcome.ERROR
    assert 'cut at: {"pa' in text(result)
    assert tool.ran == []


async def test_a_good_sibling_of_a_broken_call_still_runs_c30(context):
    tool = ScriptedTool()
    broken, good = await asyncio.gather(
        performed(tool, context, call_of("write_file", "null", call_id="call_1")),
        performed(tool, context, call_of("write_file", GOOD, call_id="call_2")),
    )
    assert [broken.outcome, good.outcome] == [ReturnOutcome.ERROR, ReturnOutcome.OK]
    assert [broken.call_id, good.call_id] == ["call_1", "call_2"]


async def test_an_unknown_name_is_answered_with_the_names_there_are(context):
    result = await performed(ScriptedTool(), context, call_of("rm_rf"))
    assert result.outcome is ReturnOutcome.ERROR
    assert text(result) == "There is no tool 'rm_rf'. The tools are: write_file."


async def test_a_tools_refusal_is_what_the_model_reads_masked(context):
    result = await performed(ScriptedTool(result=ToolError(f"no {KEY}")), context, NAME=KEY)
    assert (result.outcome, text(result)) == (ReturnOutcome.ERROR, "no [secret NAME]")


async def test_a_crash_is_logged_and_tells_the_model_nothing_of_the_inside(context, caplog):
    with caplog.at_level(logging.ERROR):
        result = await performed(ScriptedTool(result=ZeroDivisionError("inner detail")), context)
    assert (result.outcome, text(result)) == (ReturnOutcome.ERROR, BROKEN_TOOL_TEXT)
    (record,) = caplog.records
    assert (record.message, record.tool, record.call_id) == ("tool_call_crashed", "write_file", "call_1")


async def test_a_cancelled_call_stays_cancelled(context):
    with pytest.raises(asyncio.CancelledError):
        await performed(ScriptedTool(result=asyncio.CancelledError()), context)


async def test_a_long_result_is_clamped_masked_and_kept_whole_in_a_file(context):
    parts = (TextPart(text="a" * 40_000 + KEY), TextPart(text="b" * 40_000))
    result = await performed(ScriptedTool(result=parts), context, NAME=KEY)
    kept = context.overflow / "call_1.txt"
    assert len(text(result)) <= RETURN_LIMIT_CHARS
    assert text(result).startswith("aaa")
    assert text(result).endswith("bbb")
    assert f"all of it is in {kept}" in text(result)
    assert kept.read_text() == "a" * 40_000 + "[secret NAME]\n" + "b" * 40_000


async def test_a_secret_on_the_cut_is_masked_before_it(context):
    for shift in range(0, 44, 4):
        whole = "x" * (RETURN_LIMIT_CHARS // 2 - 200 + shift) + KEY * 10 + "y" * 30_000
        assert "ghp_" not in text(await performed(ScriptedTool(result=(TextPart(text=whole),)), context, NAME=KEY))


async def test_images_stay_and_an_empty_result_says_so(context):
    image = ImagePart(attachment_id="att-1", media_type="image/png")
    assert (await performed(ScriptedTool(result=(TextPart(text=""), image)), context)).parts == (image,)
    long = await performed(ScriptedTool(result=(image, TextPart(text="x" * 50_000))), context)
    assert long.parts[1:] == (image,)
    assert text(await performed(ScriptedTool(result=()), context)) == "(nothing)"


@pytest.mark.parametrize(
    "odd", ["a\0b", "bad \ud83d end", "\ud83c\udf78", "\u2028", "\ufffe", "a" + "\u0301" * 1_000_000]
)
async def test_a_result_can_always_be_stored_and_sent_c80(context, odd):
    result = await performed(ScriptedTool(result=(TextPart(text=odd),)), context)
    text(result).encode()
    assert "\0" not in text(result)
    refused = await performed(ScriptedTool(result=ToolError(odd)), context)
    text(refused).encode()
    assert refused.outcome is ReturnOutcome.ERROR
