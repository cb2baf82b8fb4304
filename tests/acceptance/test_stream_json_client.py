"""The client that readers of `docs/stream-json.md` can run."""

from __future__ import annotations

import asyncio
import sys

from tests.acceptance.processes import ROOT, make_place
from tests.architecture.sources import text_of

BOUND_SECONDS = 60
LINES = 150


async def test_it_holds_a_conversation_over_two_connections_with_the_demo_model(tmp_path):
    place = make_place(tmp_path)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "docs" / "stream_json_client.py"),
        "--config",
        str(place.config),
        "--yes",
        env=place.environment,
        cwd=place.root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(BOUND_SECONDS):
        out, err = await process.communicate()
    told = out.decode()
    assert (process.returncode, err.decode()) == (0, "")
    assert "May I run shell?" in told
    assert "(your message has entered the turn)" in told
    assert "(refused" not in told
    before, behind = told.split("Back behind line ")
    assert before.count("(completed)") == 1
    assert "Committed." in behind


def test_it_is_small_and_needs_the_standard_library_alone():
    text = text_of("docs/stream_json_client.py")
    imported = {line.split()[1].partition(".")[0] for line in text.splitlines() if line.startswith(("import", "from"))}
    assert imported <= sys.stdlib_module_names
    assert len(text.splitlines()) <= LINES
