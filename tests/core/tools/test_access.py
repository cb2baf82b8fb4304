"""Which calls may run side by side."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.tools import Access
from core.tools.access import conflicts

WS = Path("/ws")
COMMAND = Access(command="make")
FREE = Access(free=True)
MEMORY_READ, MEMORY_WRITE = Access(memory_reads=True), Access(memory_writes=("a.md",))


def reads(path):
    return Access(reads=(WS / path,))


def writes(path):
    return Access(writes=(WS / path,))


paths = st.sampled_from([WS, WS / "a", WS / "a/b", WS / "c", Path("/elsewhere/x")])
accesses = st.none() | st.builds(
    Access,
    reads=st.lists(paths, max_size=2).map(tuple),
    writes=st.lists(paths, max_size=2).map(tuple),
    command=st.none() | st.just("make"),
    memory_reads=st.booleans(),
    memory_writes=st.lists(st.just("a.md"), max_size=1).map(tuple),
    free=st.booleans(),
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (reads("a"), reads("a"), False),
        (reads("a"), writes("a"), True),
        (writes("a"), writes("a"), True),
        (writes("a"), writes("b"), False),
        (reads("."), writes("a/b"), True),
        (writes("a"), reads("a/b"), True),
        (writes("a"), reads("ab"), False),
        (COMMAND, COMMAND, True),
        (COMMAND, reads("a"), True),
        (COMMAND, writes("a"), True),
        (COMMAND, None, True),
        (None, None, True),
        (None, reads("a"), True),
        (COMMAND, Access(reads=(Path("/elsewhere/x"),)), False),
        (COMMAND, MEMORY_WRITE, False),
        (COMMAND, Access(network=("example.org",)), False),
        (MEMORY_WRITE, MEMORY_WRITE, True),
        (MEMORY_READ, MEMORY_WRITE, True),
        (MEMORY_READ, MEMORY_READ, False),
        (MEMORY_WRITE, writes("a"), False),
        (FREE, COMMAND, False),
        (FREE, None, False),
        (Access(), Access(), False),
    ],
)
def test_calls_exclude_each_other_by_what_they_touch(a, b, expected):
    assert conflicts(a, b, WS) is expected
    assert conflicts(b, a, WS) is expected


@given(accesses, accesses)
def test_excluding_each_other_is_mutual(a, b):
    assert conflicts(a, b, WS) == conflicts(b, a, WS)


@given(accesses)
def test_a_call_that_declares_nothing_excludes_all_that_touch_the_workspace(access):
    touches = access is None or (
        not access.free
        and (access.command is not None or any(p.is_relative_to(WS) for p in (*access.reads, *access.writes)))
    )
    assert conflicts(access, None, WS) is touches
