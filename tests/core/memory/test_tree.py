"""Trees as values."""

import pygit2
from hypothesis import given
from hypothesis import strategies as st

from core.memory.tree import Tree, blob_id_of, changed_paths

EMPTY = Tree(entries={}, blobs=None, documents={}, loose={})


@given(st.binary())
def test_a_blob_has_the_id_that_git_gives_it(data):
    assert blob_id_of(data) == str(pygit2.hash(data))


def test_a_tree_is_never_changed_only_followed_by_another():
    old = EMPTY.with_files({"a.md": b"1", "b.md": b"2"})
    new = old.with_files({"a.md": b"3", "b.md": None, "c.md": b"4"})
    assert (old.read("a.md"), new.read("a.md")) == (b"1", b"3")
    assert list(changed_paths(old, new)) == ["a.md", "b.md", "c.md"]
    assert list(changed_paths(old, old.with_files({"a.md": b"1"}))) == []


def test_a_skills_companions_have_the_audience_of_its_manifest():
    manifest = b"---\nname: x\naudience: person:alice\n---\n"
    tree = EMPTY.with_files({"skills/x/SKILL.md": manifest, "skills/x/data.txt": b"1"})
    assert tree.audience("skills/x/data.txt") == "person:alice"
    assert tree.audience("missing.md") == "everyone"
