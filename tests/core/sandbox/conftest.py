"""Sandboxes for the tests: opened once, each test with a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.contracts.sandbox import Sandbox
from tests.core.sandbox.labs import ISOLATING_KINDS, REAL_KINDS, Lab, open_real, opened_lab


@pytest.fixture(scope="session")
def real_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sandbox]:
    opened: dict[str, Sandbox] = {}

    def open_once(kind: str) -> Sandbox:
        if kind not in opened:
            opened[kind] = open_real(kind, tmp_path_factory.mktemp("scratch"))
        return opened[kind]

    return open_once


@pytest.fixture
def bubblewrap(real_sandbox: Callable[[str], Sandbox]) -> Iterator[Lab]:
    with opened_lab("bubblewrap", real_sandbox("bubblewrap")) as lab:
        yield lab


@pytest.fixture
def bubblewrap_as_root(real_sandbox: Callable[[str], Sandbox]) -> Iterator[Lab]:
    with opened_lab("bubblewrap as root", real_sandbox("bubblewrap as root")) as lab:
        yield lab


@pytest.fixture
def landlock(real_sandbox: Callable[[str], Sandbox]) -> Iterator[Lab]:
    with opened_lab("landlock", real_sandbox("landlock")) as lab:
        yield lab


@pytest.fixture(params=REAL_KINDS)
def any_lab(request: pytest.FixtureRequest, real_sandbox: Callable[[str], Sandbox]) -> Iterator[Lab]:
    with opened_lab(request.param, real_sandbox(request.param)) as lab:
        yield lab


@pytest.fixture(params=ISOLATING_KINDS)
def isolating_lab(request: pytest.FixtureRequest, real_sandbox: Callable[[str], Sandbox]) -> Iterator[Lab]:
    with opened_lab(request.param, real_sandbox(request.param)) as lab:
        yield lab


@pytest.fixture
def plain_file(tmp_path: Path) -> Path:
    return tmp_path / "output.txt"
