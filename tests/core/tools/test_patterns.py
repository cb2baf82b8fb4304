"""Path patterns."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.contracts.errors import ToolError
from core.tools.patterns import PathPattern

names = st.text("ab*?[]{},.", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("./*.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**/*.py", "other/src/a.py", False),
        ("**/src/*", "other/src/a.py", True),
        ("src/**", "src/x/y", True),
        ("**", "a/b/c", True),
        ("*.{py,md}", "x/a.md", True),
        ("*.{py,md}", "x/a.txt", False),
        ("{a,b}/{c,d}.x", "b/c.x", True),
        ("test_?.py", "test_1.py", True),
        ("test_?.py", "test_/.py", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("a.py", "a_py", False),
        ("A.py", "a.py", False),
    ],
)
def test_a_pattern_fits_what_shells_and_editors_say(pattern, path, fits):
    assert PathPattern(pattern).matches(path) is fits


@given(names, st.text("ab.", min_size=1, max_size=8))
def test_any_pattern_answers_for_any_path(pattern, path):
    try:
        compiled = PathPattern(pattern)
    except ToolError:
        assume(False)
    assert compiled.matches(path) in {True, False}


@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5))
def test_two_stars_fit_every_path_and_a_path_fits_itself(parts):
    path = "/".join(parts)
    assert PathPattern("**").matches(path)
    assert PathPattern(path).matches(path)
    assert PathPattern(f"**/{parts[-1]}").matches(path)


def test_a_pattern_made_to_backtrack_answers_at_once():
    assert not PathPattern("/".join(["**"] * 60) + "/z").matches("/".join("a" * 200))
    assert not PathPattern("*a" * 60 + "z").matches("a" * 250)


@pytest.mark.parametrize("pattern", ["", "x" * 501, "{a,b}" * 7, "{a,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h}{a,b}"])
def test_a_pattern_without_bounds_is_refused(pattern):
    with pytest.raises(ToolError):
        PathPattern(pattern)
