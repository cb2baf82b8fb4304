"""Ending a turn without an answer."""

import pytest

from core.contracts.errors import ToolError
from core.contracts.tools import Access
from core.tools.silence import STAY_SILENT, StaySilent
from tests.core.tools.fakes import context_in, text_of


async def test_staying_silent_touches_nothing_and_needs_a_reason(tmp_path):
    tool, context = StaySilent(), context_in(tmp_path)
    assert tool.schema.name == STAY_SILENT
    assert tool.access({"reason": "not for me"}, context) == Access(free=True)
    assert await text_of(tool, context, reason="not for me") == "The turn ends in silence."
    for wrong in (tool.access, tool.call):
        with pytest.raises(ToolError, match="`reason` is required"):
            await wrong({}, context)
