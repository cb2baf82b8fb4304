"""What a fresh agent's tools and system prompt take of every request, in characters and tokens.

Measured at the first request of a real host. Tokens are counted by cl100k_base, whose table litellm
ships, and estimated by the function that tests/core/prompts holds the budget with (a word costs one
token for each six letters begun, every other visible character one); both are stand-ins for
whatever tokenizer a provider uses.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.prefixes import Body
from benchmarks.scale import Scale
from benchmarks.stage import open_stage
from benchmarks.targets import PROMPT_CHARS, PROMPT_TOKENS
from tests.acceptance.processes import OWNER

_ENCODING = "cl100k_base"


async def measure(scale: Scale) -> AsyncIterator[Figure]:
    del scale
    async with open_stage() as stage, stage.host():
        await stage.turn(OWNER)
        system, tools = _standing_parts(stage.model.bodies[0])
    both = system + tools
    note = f"system {len(system):,}, tools {len(tools):,} as canonical JSON"
    yield Figure(
        name="prompt floor, characters", value=len(both), unit="chars", target=PROMPT_CHARS, note=note, digits=0
    )
    from tests.core.prompts.test_compile import estimated_tokens  # slow to import: it brings the test libraries

    yield Figure(
        name="prompt floor, tokens estimated",
        value=estimated_tokens(both),
        unit="tokens",
        target=PROMPT_TOKENS,
        note="an estimate, by the rule of tests/core/prompts",
        digits=0,
    )
    counted = _counted_tokens(both)
    if counted is not None:
        yield Figure(
            name=f"prompt floor, tokens by {_ENCODING}",
            value=counted,
            unit="tokens",
            target=PROMPT_TOKENS,
            digits=0,
        )


def _standing_parts(body: Body) -> tuple[str, str]:
    """Return the system prompt, and the tool schemas as canonical JSON without the provider's wrapping."""
    system = body["messages"][0]["content"]
    text = system if isinstance(system, str) else "".join(block["text"] for block in system)
    functions = [tool["function"] for tool in body["tools"]]
    return text, json.dumps(functions, ensure_ascii=False, separators=(",", ":"))


def _counted_tokens(text: str) -> int | None:
    """Count by the table that litellm ships; None where it does not, as nothing is downloaded here."""
    found = importlib.util.find_spec("litellm")
    if found is None or not found.submodule_search_locations:
        return None
    tables = Path(found.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    if not any(tables.glob("?" * 40)):
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(tables)
    import tiktoken  # it reads the variable above

    return len(tiktoken.get_encoding(_ENCODING).encode(text, disallowed_special=()))
