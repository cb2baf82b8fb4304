"""Changes applied to a tree: headers are kept, completed or replaced, bytes elsewhere stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.errors import MemoryRefused
from core.contracts.memory import ChangeKind, MemoryChange
from core.memory.changes import apply_changes
from core.memory.frontmatter import parse
from core.memory.tree import Tree

EMPTY = Tree(entries={}, blobs=None, documents={}, loose={})
CREATE, REPLACE, EDIT, MOVE = ChangeKind.CREATE, ChangeKind.REPLACE, ChangeKind.EDIT, ChangeKind.MOVE


def after(kind: ChangeKind, *, old: bytes | None = None, path: str = "a.md", sees=lambda _: True, **fields) -> bytes:
    tree = EMPTY if old is None else EMPTY.with_files({path: old})
    change = MemoryChange(kind=kind, path=path, **fields)
    return apply_changes(tree, [change], sees).read(fields.get("target", path))


def test_a_new_file_gets_a_header_with_its_description():
    assert after(CREATE, text="body", description="about: it") == b'---\ndescription: "about: it"\n---\nbody'


def test_a_new_file_without_a_description_is_described_by_its_first_heading():
    assert (
        after(CREATE, text="intro\n## Green tea ##\n") == b"---\ndescription: Green tea\n---\nintro\n## Green tea ##\n"
    )
    assert after(CREATE, text="no heading") == b"no heading"


def test_a_header_that_the_writer_gave_is_kept_to_the_byte():
    text = "---\ndescription:   spaced # comment\nother: [1,2]\n---\nbody"
    assert after(CREATE, text=text) == text.encode()


def test_a_header_that_cannot_be_read_is_refused_with_the_line():
    with pytest.raises(MemoryRefused, match="line 2"):
        after(CREATE, text="---\ndescription: a: b\n---\nbody")


def test_replacing_the_body_keeps_the_header():
    old = b"---\ndescription: d\nlimit: 100\nread_only: false\ntags: [a]\n---\nold"
    assert after(REPLACE, old=old, text="new") == old.replace(b"old", b"new")


def test_replacing_the_description_keeps_the_other_fields():
    old = b"---\ndescription: d\naudience: person:alice\ntags: [a, b]\n---\nold"
    new = parse(after(REPLACE, old=old, text="new", description="e: f"))
    assert (new.body, new.fields) == ("new", {"description": "e: f", "audience": "person:alice", "tags": ["a", "b"]})


def test_replacing_a_file_whose_header_was_broken_keeps_what_could_be_read_of_it():
    new = parse(after(REPLACE, old=b"---\ndescription: a: b\naudience: person:alice\n---\nold", text="new"))
    assert (new.fault, new.fields) == ("", {"description": "a: b", "audience": "person:alice"})


def test_an_edit_changes_the_one_place_and_no_other_byte():
    old = b"\xef\xbb\xbf---\r\ndescription: d\r\n---\r\nMalm\xf6 one\r\ntwo\r\n"
    assert after_edit(old, "one", "1") == old.replace(b"one", b"1")


def after_edit(data: bytes, old: str, new: str, description: str = "") -> bytes:
    tree = EMPTY.with_files({"a.md": data})
    change = MemoryChange(kind=EDIT, path="a.md", old=old, text=new, description=description)
    return apply_changes(tree, [change], lambda _: True).read("a.md")


def test_an_edit_prefers_the_body_and_can_reach_the_header():
    old = b"---\ndescription: tea\nlimit: 100\n---\ntea"
    assert after_edit(old, "tea", "milk") == b"---\ndescription: tea\nlimit: 100\n---\nmilk"
    assert after_edit(old, "limit: 100", "limit: 200") == b"---\ndescription: tea\nlimit: 200\n---\ntea"


def test_an_edit_of_the_description_alone_leaves_the_body():
    assert after_edit(b"---\ndescription: tea\n---\nbody", "", "", "milk") == b"---\ndescription: milk\n---\nbody"


@pytest.mark.parametrize("data", ["wide".encode("utf-16"), b"x" * 1_000_001])
def test_a_file_that_is_no_loaded_text_is_not_edited(data):
    with pytest.raises(MemoryRefused, match="no text"):
        after_edit(data, "", "", "described")


def test_skill_files_other_than_its_manifest_carry_no_header():
    assert after(CREATE, path="skills/tea/run.py", text="print()", description="d") == b"print()"
    manifest = parse(after(CREATE, path="skills/tea/SKILL.md", text="steps", description="how"))
    assert manifest.fields == {"name": "tea", "description": "how"}


def test_a_file_of_another_audience_is_as_if_it_were_not_there():
    with pytest.raises(MemoryRefused, match="no such file"):
        after(REPLACE, old=b"---\naudience: person:bob\n---\nx", text="y", sees=lambda word: word == "everyone")


@pytest.mark.parametrize(("kind", "fields"), [(CREATE, {"text": "x"}), (MOVE, {"target": "a.md"})])
def test_an_existing_file_is_never_overwritten_by_accident(kind, fields):
    with pytest.raises(MemoryRefused, match="exists"):
        after(kind, old=b"old", **fields)


def test_changes_of_one_commit_see_each_other():
    changes = [
        MemoryChange(kind=CREATE, path="a.md", text="one", description="d"),
        MemoryChange(kind=EDIT, path="a.md", old="one", text="two"),
        MemoryChange(kind=MOVE, path="a.md", target="b.md"),
    ]
    tree = apply_changes(EMPTY, changes, lambda _: True)
    assert (list(tree.entries), tree.document("b.md").body) == (["b.md"], "two")


@given(st.text(), st.text())
def test_whatever_a_writer_sends_becomes_valid_utf8_that_reads_back(text, description):
    """C44: lone surrogates and NUL become U+FFFD, everything else stays itself."""
    try:
        document = parse(after(CREATE, text=text, description=description))
    except MemoryRefused:
        assert text.startswith("---")
    else:
        assert not document.escaped
        assert "\0" not in document.body
