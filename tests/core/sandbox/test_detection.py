"""Which sandbox is opened: what was asked for, or a refusal that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.contracts.errors import InvalidInput, SandboxUnavailable
from core.sandbox.detection import open_sandbox
from core.sandbox.refused import RefusingSandbox
from tests.core.sandbox.labs import Lab


async def test_auto_prefers_bubblewrap(bubblewrap: Lab, tmp_path: Path) -> None:
    assert (await open_sandbox("auto", scratch=tmp_path)).report.kind == "bubblewrap"


async def test_auto_takes_landlock_where_bubblewrap_is_missing(
    landlock: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert (await open_sandbox("auto", scratch=tmp_path)).report.kind == "landlock"


async def test_a_kind_that_was_named_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    sandbox = await open_sandbox("bubblewrap", scratch=tmp_path)

    assert isinstance(sandbox, RefusingSandbox)
    assert sandbox.report.detail.startswith("bubblewrap: bubblewrap is not installed")


async def test_the_host_shell_is_opened_only_by_its_name(tmp_path: Path) -> None:
    assert (await open_sandbox("unsafe_host_shell", scratch=tmp_path)).report.kind == "unsafe_host_shell"


@pytest.mark.parametrize("kind", ["auto", "bubblewrap", "landlock"])
async def test_c65_another_system_has_no_shell_and_is_told_so(tmp_path: Path, kind: str) -> None:
    sandbox = await open_sandbox(kind, scratch=tmp_path, platform="darwin")

    assert not sandbox.report.works
    with pytest.raises(SandboxUnavailable, match="'darwin'"):
        await Lab(kind, sandbox, tmp_path, tmp_path).run("true")


async def test_an_unknown_kind_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'docker'.*bubblewrap"):
        await open_sandbox("docker", scratch=tmp_path)


async def test_the_trials_leave_nothing_behind(bubblewrap: Lab, landlock: Lab, tmp_path: Path) -> None:
    for kind in ("bubblewrap", "landlock"):
        await open_sandbox(kind, scratch=tmp_path / "scratch")

    assert not (tmp_path / "scratch").exists() or list((tmp_path / "scratch").iterdir()) == []
