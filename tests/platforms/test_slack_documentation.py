"""The examples in docs/fake-platforms.md run, and the fixtures that it names are there."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n# (\w+)\n(.*?)```", (ROOT / "docs" / "fake-platforms.md").read_text(), re.DOTALL)
PRINTED = {"Telegram": "['You said hello.']", "Slack": "['Here.']", "Discord": "['"}

TEST = """
async def test_they_listen(fake_telegram, fake_slack, fake_discord):
    for server in (fake_telegram, fake_slack, fake_discord):
        assert server.api_base.startswith("http://127.0.0.1:")
        assert server.token
"""


async def run(*arguments, cwd):
    """Run Python and return its status and what it printed."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=cwd,
        env=kept | {"PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, printed.decode()


@pytest.mark.parametrize(("platform", "code"), EXAMPLES, ids=[platform for platform, _ in EXAMPLES])
async def test_an_example_runs(platform, code, tmp_path):
    status, printed = await run("-c", code, cwd=tmp_path)

    assert status == 0, printed
    assert PRINTED[platform] in printed


def test_there_is_an_example_of_each_platform():
    assert {platform for platform, _ in EXAMPLES} == PRINTED.keys()


async def test_the_plugin_brings_a_server_of_each_platform(tmp_path):
    (tmp_path / "test_fakes.py").write_text(TEST)
    status, printed = await run(
        "-m", "pytest", "-q", "-p", "tests.platforms.plugin", "-o", "asyncio_mode=auto", "test_fakes.py", cwd=tmp_path
    )

    assert status == 0, printed
    assert "1 passed" in printed
