"""Where a path leads."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from core.contracts.errors import ToolError
from core.tools.paths import absolute_path, place_in_workspace
from tests.core.tools.fakes import context_in

parts = st.sampled_from(["..", ".", "a", "b", "", "workspace", "~"])


def test_a_place_is_named_from_its_root(tmp_path):
    context = context_in(tmp_path)
    place = place_in_workspace("a/../b/c.md", context)
    assert (place.root, place.path, place.absolute) == (context.workspace, "b/c.md", context.workspace / "b/c.md")
    assert place_in_workspace(".", context).absolute == context.workspace


@given(st.lists(parts, min_size=1, max_size=8).map("/".join))
def test_what_is_accepted_lies_beneath_the_workspace_without_steps_up(tmp_path_factory, path):
    context = context_in(tmp_path_factory.getbasetemp())
    try:
        place = place_in_workspace(path, context)
    except ToolError:
        target = Path(path) if path.strip() else context.workspace
        assert not path.strip() or not absolute_path(str(target), context.workspace).is_relative_to(context.workspace)
        return
    assert ".." not in place.path.split("/")
    assert not place.path.startswith("/")
    assert place.absolute == absolute_path(path, context.workspace)
