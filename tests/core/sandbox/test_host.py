"""The unsafe host shell: it says what it is, and still ends what it starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.sandbox.host import UnsafeHostShell
from tests.core.sandbox.labs import Lab, opened_lab


@pytest.fixture
def host() -> Iterator[Lab]:
    with opened_lab("unsafe_host_shell", UnsafeHostShell(search_path="/opt/own:/usr/bin:/bin")) as lab:
        yield lab


def test_it_is_reported_as_not_isolated() -> None:
    report = UnsafeHostShell().report

    assert report.kind == "unsafe_host_shell"
    assert report.detail.startswith("NOT ISOLATED")
    assert report.limits


async def test_it_reaches_what_is_outside(host: Lab) -> None:
    (host.outside / "note").write_text("outside\n")

    assert await host.text("cat ../note") == "outside\n"


async def test_programs_are_found_on_the_configured_path(host: Lab) -> None:
    assert await host.text("echo $PATH") == "/opt/own:/usr/bin:/bin\n"


async def test_the_environment_of_the_host_stays_with_the_host(host: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_TOKEN", "of-the-host")

    assert "of-the-host" not in await host.text("env")


async def test_a_command_that_kills_itself_is_reported_as_a_shell_would(host: Lab) -> None:
    assert (await host.run("kill -9 $$")).exit_code == 137
