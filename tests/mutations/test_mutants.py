"""Each bug of `mutants.py`, put into a copy of the source alone, turns a test red."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mutations.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("bot", "channels", "core", "tests")
UNUSED_PLUGINS = ("anyio", "cacheprovider", "hypothesispytest", "pytest_cov", "xdist")
TESTS_FAILED = 1
"""pytest's exit code; others say that it could not run them."""
FOUND_IT = re.compile(r"^E +(assert |AssertionError|Failed: DID NOT RAISE)", re.MULTILINE)
"""What a failed expectation looks like, beside code that merely crashes."""

pytestmark = pytest.mark.mutation


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of all that tests need."""
    directory = tmp_path_factory.mktemp("source")
    for name in COPIED:
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", directory)
    return directory


def run_tests(source: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy in an interpreter of their own, which finds the copy before any installed package."""
    others = ("PYTEST_", "COV_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    # Compiled modules stay with the copy: the second interpreter starts in half the time of the first.
    environment["PYTHONPYCACHEPREFIX"] = str(source / "compiled")
    without = [word for name in UNUSED_PLUGINS for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-x", "--tb=short", *without, *tests]
    return subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@contextmanager
def applied(mutant: Mutant, source: Path) -> Iterator[None]:
    """Hold the mutant in the copy for the length of the block."""
    path = source / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has changed; the mutant has to follow"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def test_the_named_tests_are_green_on_the_unchanged_source(source):
    tests = tuple(dict.fromkeys(test for mutant in MUTANTS for test in mutant.tests))
    done = run_tests(source, tests)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_the_bug_turns_a_test_red(mutant, source):
    with applied(mutant, source):
        done = run_tests(source, mutant.tests)

    assert done.returncode == TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert FOUND_IT.search(done.stdout), "the copy broke in another way than the test looks for:\n" + done.stdout


def test_mutants_differ_in_name_and_place():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.invariant for mutant in MUTANTS} > {2, 3, 4, 5, 6, 8, 9, 11, 12}
