"""The command line starts fast: what is heavy is imported by those who need it."""

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

HEAVY = ("litellm", "sqlalchemy", "sqlmodel", "alembic", "pygit2", "telegram")


def loaded_by(module: str) -> set[str]:
    """Return the top-level packages that are loaded after importing `module` in a fresh interpreter."""
    script = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("bot.cli.main", {*HEAVY, "httpx", "pydantic", "jinja2"}),
        ("bot.cli.chat", set(HEAVY)),
        ("bot.cli.approvals", set(HEAVY)),
    ],
)
def test_a_command_loads_only_what_it_needs(module, unwanted):
    loaded = loaded_by(module)

    assert "bot" in loaded
    assert loaded & unwanted == set()


def test_importing_the_litellm_client_loads_no_litellm():
    loaded = loaded_by("core.models.litellm_client")

    assert "core" in loaded
    assert "litellm" not in loaded
