"""What each path is, and which paths nobody may write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.memory.frontmatter import parse
from core.memory.layout import Place, declared_audience, is_audience, path_fault, place_of, to_file


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("MEMORY.md", Place.CORE),
        ("people/alice.md", Place.PERSON),
        ("people/MEMORY.md", Place.DEFERRED),
        ("tea/green.md", Place.DEFERRED),
        ("archive/a/b.md", Place.DEFERRED),
        ("skills/tea/SKILL.md", Place.SKILL),
        ("skills/tea/data/x.bin", Place.COMPANION),
        ("skills/SKILL.md", Place.STRAY),
        (".memory.json", Place.POLICY),
        ("notes.txt", Place.STRAY),
    ],
)
def test_a_path_says_what_a_file_is(path, place):
    assert place_of(path) is place


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "../x.md", "a/../x.md", "a//x.md", "./x.md", "a\\x.md", ".git/config", "a/.hidden.md",
        "git~1/x.md", "con.md", "x.md ", " x.md", "x.", "a:b.md", "x\n.md", "x\u202egnp.md", "x\u200b.md",
        "e\u0301.md", "n" * 101 + ".md", "tea/", "nul",
    ],
)  # fmt: skip
def test_path_tricks_are_refused(path):
    assert path_fault(path) is not None


@pytest.mark.parametrize("path", ["MEMORY.md", "people/alice.md", "skills/tea/a/b.bin", ".memory.json", "caf\u00e9.md"])
def test_ordinary_paths_are_allowed(path):
    assert path_fault(path) is None


@given(st.text())
def test_an_allowed_path_stays_inside_whatever_it_is_joined_to(path):
    if path_fault(path) is None:
        assert not path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/"))


def test_a_persons_file_is_that_persons_unless_it_says_otherwise():
    assert declared_audience("people/alice.md", parse(b"x")) == "person:alice"
    assert declared_audience("people/alice.md", parse(b"---\naudience: everyone\n---\n")) == "everyone"
    assert declared_audience("tea.md", parse(b"x")) == "everyone"


def test_an_audience_that_is_no_word_is_nobodys():
    assert declared_audience("tea.md", parse(b"---\naudience: [a, b]\n---\n")) == "nobody"
    assert not is_audience("nobody")
    assert is_audience("address:telegram/-100123")


def test_a_files_own_limit_never_exceeds_the_policys():
    file = to_file("a.md", parse(b"---\nlimit: 90000\n---\nx"), audience="everyone", file_chars=20_000)
    assert file.limit_chars == 20_000
