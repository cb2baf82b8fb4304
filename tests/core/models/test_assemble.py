"""From fragments to an answer."""

import pytest

from core.contracts.errors import ModelUnreachable
from core.contracts.events import ReasoningDelta, TextDelta
from core.contracts.messages import ReasoningPart, TextPart, ToolCall
from core.contracts.models import FinishReason
from core.models.arguments import LIMIT_REACHED
from core.models.assemble import Assembler
from core.models.fragments import CallFragment, FinishFragment, ReasoningFragment, TextFragment, UsageFragment

GOOD = CallFragment(index=0, id="c1", name="read_file", arguments='{"path":"a.md"}')
CUT = CallFragment(index=1, id="c2", name="write_file", arguments='{"path":"r.md","content":"line 1\\nline 2')


def assemble(*fragments):
    assembler = Assembler(reasoning_form="anthropic")
    deltas = [delta for fragment in fragments if (delta := assembler.add(fragment)) is not None]
    return deltas, assembler.finish()


def finish(word):
    return FinishFragment(reason=word)


def test_text_reasoning_and_calls_keep_their_order():
    deltas, answer = assemble(
        ReasoningFragment(text="Hm"),
        ReasoningFragment(text="m."),
        ReasoningFragment(signature="sig1"),
        ReasoningFragment(redacted="ZZ"),
        ReasoningFragment(text="More.", signature="sig2"),
        TextFragment(text="I "),
        TextFragment(text="read."),
        GOOD,
        finish("tool_use"),
    )
    assert deltas == [
        ReasoningDelta(text="Hm"), ReasoningDelta(text="m."), ReasoningDelta(text="More."),
        TextDelta(text="I "), TextDelta(text="read."),
    ]  # fmt: skip
    assert answer.parts == (
        ReasoningPart(text="Hmm.", form="anthropic", signature="sig1"),
        ReasoningPart(text="", form="anthropic", redacted="ZZ"),
        ReasoningPart(text="More.", form="anthropic", signature="sig2"),
        TextPart(text="I read."),
        ToolCall(id="c1", name="read_file", arguments='{"path":"a.md"}'),
    )


@pytest.mark.parametrize(
    "fragments",
    [(TextFragment(text="The first step"), TextFragment(text=" is to")), (CUT,), ()],
    ids=["text", "call", "nothing"],
)
def test_a_stream_without_a_finish_is_no_answer(fragments):
    """C34 A and B."""
    with pytest.raises(ModelUnreachable):
        assemble(*fragments)


@pytest.mark.parametrize("word", ["error", "network_error"])
def test_a_finish_that_confesses_an_error_is_no_answer(word):
    with pytest.raises(ModelUnreachable):
        assemble(TextFragment(text="half"), finish(word))


@pytest.mark.parametrize("word", ["length", "max_tokens", "model_context_window_exceeded"])
def test_after_the_limit_no_call_may_run(word):
    """C33 A, C and D: the whole one neither, since the rest of the plan is unknown."""
    _, answer = assemble(GOOD, CUT, finish(word))
    assert answer.finish is FinishReason.LENGTH
    whole, cut = answer.parts
    assert whole.arguments == '{"path":"a.md"}'
    assert cut.arguments == "{}"
    assert LIMIT_REACHED in whole.fault
    assert LIMIT_REACHED in cut.fault


def test_a_limit_hidden_behind_tool_calls_is_recognised_by_the_cut_json():
    """C33 B: the other call of the step may run."""
    _, answer = assemble(GOOD, CUT, finish("tool_calls"))
    assert answer.finish is FinishReason.TOOL_CALLS
    whole, cut = answer.parts
    assert whole.fault is None
    assert LIMIT_REACHED in cut.fault


def test_a_limit_once_reported_stays():
    _, answer = assemble(GOOD, finish("length"), finish("tool_calls"))
    assert answer.finish is FinishReason.LENGTH


def test_text_cut_by_the_limit_is_kept():
    """C33 F."""
    _, answer = assemble(TextFragment(text="The answer is"), finish("length"))
    assert answer.parts == (TextPart(text="The answer is"),)
    assert answer.finish is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("word", "with_call", "expected"),
    [
        ("stop", True, FinishReason.TOOL_CALLS),
        ("tool_calls", False, FinishReason.STOP),
        ("end_turn", False, FinishReason.STOP),
        ("STOP", False, FinishReason.STOP),
        ("something new", False, FinishReason.STOP),
        ("content_filter", False, FinishReason.REFUSAL),
        ("refusal", False, FinishReason.REFUSAL),
    ],
)
def test_the_finish_agrees_with_the_parts(word, with_call, expected):
    _, answer = assemble(*((GOOD,) if with_call else ()), finish(word))
    assert answer.finish is expected


def test_calls_of_a_refused_answer_do_not_run():
    _, answer = assemble(GOOD, finish("content_filter"))
    assert answer.parts[0].fault


def test_blank_text_is_no_part():
    """C34 G: providers refuse to read it again."""
    _, answer = assemble(TextFragment(text=" \n"), finish("stop"))
    assert answer.parts == ()


def test_an_emoji_cut_between_two_deltas_is_whole():
    """C80."""
    _, answer = assemble(TextFragment(text="a\ud83c"), TextFragment(text="\udf78"), finish("stop"))
    assert answer.parts == (TextPart(text="a\U0001f378"),)


def test_usage_of_several_events_is_merged():
    _, answer = assemble(
        UsageFragment(input_tokens=10, cached_tokens=4), UsageFragment(output_tokens=7), finish("stop")
    )
    assert answer.reported == UsageFragment(input_tokens=10, output_tokens=7, cached_tokens=4)
