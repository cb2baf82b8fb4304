"""What every tool call goes through: validation, masking, clamping, and errors as text."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from core.contracts.errors import ToolError
from core.contracts.messages import ImagePart, ReturnOutcome, TextPart, ToolCall, ToolReturn
from core.contracts.secrets import Redactor
from core.contracts.tools import Access, Tool, ToolContext, Toolset
from core.tools.output import RETURN_LIMIT_CHARS, clamp, clean_text
from core.tools.overflow import OverflowFiles
from core.tools.schema import decode_arguments

logger = logging.getLogger(__name__)

BROKEN_TOOL_TEXT = "The tool broke; its operator can see why."
_NOTHING_TEXT = "(nothing)"


def find_tool(toolset: Toolset, call: ToolCall) -> Tool:
    """Return the tool that `call` names.

    Raises:
        ToolError: The call is not usable, or there is no such tool; says what there is.
    """
    if call.fault is not None:
        raise ToolError(f"This call could not be used, so nothing ran: {call.fault}")
    tool = toolset.find(call.name)
    if tool is None:
        names = ", ".join(schema.name for schema in toolset.schemas)
        raise ToolError(f"There is no tool {call.name!r}. The tools are: {names}.")
    return tool


def declared_access(toolset: Toolset, call: ToolCall, context: ToolContext) -> Access | None:
    """Return what `call` would touch, without running it; None where that cannot be known.

    Raises:
        ToolError: The call cannot run: unusable arguments or an unknown tool.
    """
    return find_tool(toolset, call).access(decode_arguments(call.arguments), context)


async def perform(
    toolset: Toolset, call: ToolCall, context: ToolContext, *, redactor: Redactor, overflow: OverflowFiles
) -> ToolReturn:
    """Run one call to its end and return what the model reads: masked, and within 32,000 characters.

    Whatever the tool does, the answer is a return: a refusal, unusable arguments, an unknown
    name and a crash have the outcome `error`. What was cut off is in a file that the text names.

    Raises:
        asyncio.CancelledError: The call was cancelled and everything it started has ended.
    """
    outcome = ReturnOutcome.ERROR
    parts: Sequence[TextPart | ImagePart]
    try:
        tool = find_tool(toolset, call)
        parts = await tool.call(decode_arguments(call.arguments), context)
        outcome = ReturnOutcome.OK
    except ToolError as error:
        parts = (TextPart(text=str(error)),)
    except Exception:  # a tool may break in any way, and the turn must go on
        logger.exception("tool_call_crashed", extra={"tool": call.name, "call_id": call.id})
        parts = (TextPart(text=BROKEN_TOOL_TEXT),)
    shown = await _presentable(parts, context, redactor, overflow)
    return ToolReturn(call_id=call.id, parts=shown, outcome=outcome)


async def _presentable(
    parts: Sequence[TextPart | ImagePart], context: ToolContext, redactor: Redactor, overflow: OverflowFiles
) -> tuple[TextPart | ImagePart, ...]:
    """Return `parts` masked, clamped together, and never empty."""
    cleaned = tuple(
        TextPart(text=redactor.mask(clean_text(part.text))) if isinstance(part, TextPart) else part for part in parts
    )
    texts = [part.text for part in cleaned if isinstance(part, TextPart)]
    if sum(map(len, texts)) > RETURN_LIMIT_CHARS:
        whole = "\n".join(texts)
        kept = await overflow.keep(whole, context)
        note = "the rest could not be kept" if kept is None else f"all of it is in {kept}"
        images = tuple(part for part in cleaned if isinstance(part, ImagePart))
        return (TextPart(text=clamp(whole, RETURN_LIMIT_CHARS, note=note)), *images)
    return tuple(part for part in cleaned if not isinstance(part, TextPart) or part.text) or (
        TextPart(text=_NOTHING_TEXT),
    )
