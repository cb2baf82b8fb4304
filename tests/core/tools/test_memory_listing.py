"""Directory listings of a memory."""

from core.contracts.memory import MemoryFile
from core.tools.memory_listing import listing


def file(path, description=""):
    return MemoryFile(path=path, body="text\n", description=description)


def test_a_large_directory_shows_200_entries_within_the_limit():
    files = [file(f"{n:04}" + "x" * 300, description="d" * 5_000) for n in range(300)]
    shown = listing(files, "", [])
    assert shown.endswith("[200 of 300 entries, latest edits first; name a path to read the rest]")
    assert len(shown.split("\n")) == 201


def test_an_empty_memory_says_so_and_a_missing_directory_is_none():
    assert listing([], "", []) == "(the memory is empty)"
    assert listing([file("a.md")], "b", []) is None
    assert listing([file("ab/c.md")], "a", []) is None


def test_a_directory_shows_what_lies_directly_in_it():
    files = [file("a/MEMORY.md", "Index of a"), file("a/b/MEMORY.md", "Index of b"), file("a/b/c.md"), file("d.md")]
    assert listing(files, "", ["d.md"]) == "d.md (5 characters)\na/ (3 files): Index of a"
    assert listing(files, "a", []) == "a/MEMORY.md (5 characters): Index of a\na/b/ (2 files): Index of b"
