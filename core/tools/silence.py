"""`stay_silent`: the typed way to end a turn without an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from core.contracts.messages import TextPart
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.tools.schema import Arguments, parse, tool_schema

STAY_SILENT = "stay_silent"
"""A turn whose step called this, and nothing after it, ends as silent."""


class SilenceArguments(Arguments):
    """Arguments of `stay_silent`."""

    reason: str = Field(description="Why no answer is wanted; kept for the log, nobody is sent it")


class StaySilent:
    """Says that no answer is wanted; the host reads the call, the tool itself does nothing."""

    schema: ClassVar[ToolSchema] = tool_schema(
        STAY_SILENT,
        "End the turn without sending anything, when no answer is wanted. Call it alone and last.",
        SilenceArguments,
    )

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        parse(SilenceArguments, arguments)
        return Access(free=True)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        del context
        parse(SilenceArguments, arguments)
        return (TextPart(text="The turn ends in silence."),)


if TYPE_CHECKING:
    _conforms: type[Tool] = StaySilent
