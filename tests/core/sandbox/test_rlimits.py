"""Limits that a command finds set, and cannot lift."""

from __future__ import annotations

import pytest

from core.contracts.errors import InvalidInput
from core.sandbox.rlimits import ResourceLimits, limited
from tests.core.sandbox.labs import Lab


async def test_a_command_finds_its_limits_set(any_lab: Lab) -> None:
    shown = await any_lab.text("ulimit -c; ulimit -f; ulimit -d; ulimit -n")

    assert shown.split() == ["0", str(4 * 1024**3 // 512), str(4 * 1024**2), "4096"]


async def test_a_command_cannot_lift_a_limit(bubblewrap: Lab) -> None:
    await bubblewrap.run("ulimit -c unlimited; ulimit -n 99999; ulimit -n > now; ulimit -c >> now")

    assert (bubblewrap.workspace / "now").read_text().split() == ["4096", "0"]


async def test_arguments_reach_the_program_as_they_are(any_lab: Lab) -> None:
    shown = await any_lab.text("printf '[%s]' \"$0\" 'a b' '$x' \"it's\" '*' ''")

    assert shown == "[/bin/sh][a b][$x][it's][*][]"


@pytest.mark.parametrize("argv", [(), ("echo", "a\0b")])
def test_what_cannot_be_arguments_is_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        limited(argv, ResourceLimits())


def test_a_shared_user_has_no_limit_of_processes() -> None:
    line = limited(("true",), ResourceLimits().without_process_count())[2]

    assert "ulimit -u" not in line
    assert "ulimit -u 512" in limited(("true",), ResourceLimits())[2]
