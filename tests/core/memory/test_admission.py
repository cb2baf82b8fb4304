"""Admission, rule by rule, on trees without any storage."""

import pytest

from core.contracts.agents import Audience
from core.contracts.memory import CommitOrigin
from core.memory.admission import Proposal, Question, Refusal, admit
from core.memory.tree import Entry, Tree, blob_id_of

AGENT = CommitOrigin(author="agent", audience=Audience())
ALICE_WORDS = frozenset({"everyone", "person:alice", "address:slack/T1"})
ALICE = CommitOrigin(author="agent", audience=Audience(words=ALICE_WORDS))
PERSON = CommitOrigin(author="Alice", audience=Audience(words=ALICE_WORDS), person="alice")
EMPTY = Tree(entries={}, blobs=None, documents={}, loose={})


def text(body: str = "x", **fields: object) -> bytes:
    header = {"description": "d", **fields}
    return ("---\n" + "".join(f"{name}: {value}\n" for name, value in header.items()) + f"---\n{body}").encode()


def tree(**files: bytes) -> Tree:
    return EMPTY.with_files({name.replace("__", "/") + ".md": data for name, data in files.items()})


BASE = tree(MEMORY=text("index"), human=text("y" * 1_500), tea__MEMORY=text(), tea__green=text("z" * 1_500))


def verdict(files: dict[str, bytes | None], *, old: Tree = BASE, origin: CommitOrigin = AGENT, mask=str):
    return admit(Proposal(old=old, new=old.with_files(files), origin=origin, mask=mask))


@pytest.mark.parametrize(
    ("files", "path", "rule"),
    [
        ({"notes.txt": b"x"}, "notes.txt", "Markdown"),
        ({"ARCHIVE.md": text()}, "ARCHIVE.md", "loaded into every prompt"),
        ({"archive.MD": text()}, "archive.MD", "loaded into every prompt"),
        ({"milk/oat.md": text()}, "milk/MEMORY.md", "without MEMORY.md"),
        ({"tea/MEMORY.md": None}, "tea/MEMORY.md", "without MEMORY.md"),
        ({"tea/a/b.md": text()}, "tea/a/b.md", "deeper than 2"),
        ({"../x.md": text()}, "../x.md", ".."),
        ({"memory.md": text()}, "memory.md", "has that name"),
        ({"tea.md": text(), "tea.md/x.md": text()}, "tea.md", "has that name"),
        ({"new.md": b"no header"}, "new.md", "no description"),
        ({"new.md": b"---\ndescription: a: b\n---\nx"}, "new.md", "cannot be read"),
        ({"new.md": text(description="''")}, "new.md", "no description"),
        ({"new.md": text("x" * 20_001)}, "new.md", "20,001 characters"),
        ({"new.md": text("x" * 2_000_000)}, "new.md", "cannot be loaded"),
        ({"new.md": text("x" * 101, limit=100)}, "new.md", "limit of 100"),
        ({"new.md": text(limit=20_001)}, "new.md", "no number from 1"),
        ({"new.md": text(audience="bob")}, "new.md", "audience"),
        ({"new.md": text() + b"\xff"}, "new.md", "UTF-8"),
        ({"new.md": text("a\0b")}, "new.md", "UTF-8"),
        ({"new.md": text("key AKIA" + "C" * 16)}, "new.md", "secret"),
        ({".memory.json": b"{"}, ".memory.json", "JSON"),
        ({".memory.json": b'{"file_chars": 0}'}, ".memory.json", "file_chars"),
        ({".memory.json": b'{"filechars": 1}'}, ".memory.json", "unknown name"),
        ({f"c{number}.md": text("x" * 17_000) for number in range(4)}, "c0.md", "core memory"),
        ({"skills/tea/x.py": b"x"}, "skills/tea/SKILL.md", "without SKILL.md"),
        ({"skills/tea/SKILL.md": text()}, "skills/tea/SKILL.md", "name"),
        ({"skills/tea/SKILL.md": text(name="tea"), "skills/tea/b": b"x" * 1_000_001}, "skills/tea/b", "1 MB"),
        ({"skills/x.md": text()}, "skills/x.md", "Markdown"),
    ],
)
def test_a_refusal_names_the_file_the_rule_and_a_fix(files, path, rule):
    refused = verdict(files)
    assert isinstance(refused, Refusal)
    assert refused.path == path
    assert rule in refused.rule
    assert refused.fix


@pytest.mark.parametrize(
    "files",
    [
        {"new.md": text()},
        {"tea/black.md": text()},
        {"milk/oat.md": text(), "milk/MEMORY.md": text()},
        {"people/alice.md": text(audience="everyone")},
        {"skills/tea/SKILL.md": text(name="tea"), "skills/tea/a/b.bin": bytes(range(256))},
        {".memory.json": b'{"read_only": ["persona.md"]}'},
        {"tea/black.md": text("x" * 19_999)},
    ],
)
def test_sound_changes_are_admitted(files):
    assert verdict(files) is None


@pytest.mark.parametrize("mode", [0o120000, 0o160000])
def test_links_and_special_files_are_refused(mode):
    new = BASE.with_files({"link.md": b"/etc/passwd"})
    entries = {**new.entries, "link.md": Entry(blob_id_of(b"/etc/passwd"), mode)}
    linked = Tree(entries=entries, blobs=None, documents={}, loose=new.loose)
    refused = admit(Proposal(old=BASE, new=linked, origin=AGENT, mask=str))
    assert isinstance(refused, Refusal)
    assert "link" in refused.rule


def test_a_registered_secret_is_refused_by_its_value():
    refused = verdict(
        {"new.md": text("the word is swordfish99")}, mask=lambda t: t.replace("swordfish99", "[secret X]")
    )
    assert isinstance(refused, Refusal)
    assert "swordfish99" not in f"{refused}"


def test_the_agent_cannot_change_a_read_only_file_but_a_person_can():
    old = BASE.with_files({"rules.md": text("be kind", read_only="true")})
    changed = {"rules.md": text("be quick", read_only="true")}
    assert isinstance(verdict(changed, old=old), Refusal)
    assert isinstance(verdict({"rules.md": text("be kind")}, old=old), Refusal)
    assert isinstance(verdict({"rules.md": None}, old=old), Refusal)
    assert verdict(changed, old=old, origin=PERSON) is None


def test_the_policy_protects_paths_and_directories():
    old = BASE.with_files({".memory.json": b'{"read_only": ["human.md", "tea/"]}'})
    assert isinstance(verdict({"human.md": text("y" * 1_400)}, old=old), Refusal)
    assert isinstance(verdict({"tea/black.md": text()}, old=old), Refusal)
    assert verdict({"other.md": text()}, old=old) is None


def test_loosening_the_policy_asks_and_tightening_does_not():
    """Invariant 6."""
    old = BASE.with_files({".memory.json": b'{"core_chars": 30000, "read_only": ["a.md"], "ask_shared": true}'})
    for looser in (b'{"core_chars": 40000, "read_only": ["a.md"], "ask_shared": true}', b'{"core_chars": 30000}'):
        assert isinstance(verdict({".memory.json": looser}, old=old), Question)
    assert isinstance(verdict({".memory.json": None}, old=old), Question)
    assert (
        verdict({".memory.json": b'{"core_chars": 20000, "read_only": ["a.md"], "ask_shared": true}'}, old=old) is None
    )


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({"human.md": text("y" * 600)}, "shrink"),
        ({"human.md": text("y" * 900)}, None),
        ({"MEMORY.md": text("")}, None),
        ({"MEMORY.md": None}, "deleted"),
        ({"tea/green.md": None}, "deleted"),
        ({"tea/green.md": None, "tea/better.md": text("z" * 1_500)}, None),
    ],
)
def test_losing_much_of_a_file_asks_first(files, asked):
    question = verdict(files)
    assert (question is None) == (asked is None)
    if asked:
        assert isinstance(question, Question)
        assert asked in question.text


def test_a_change_touches_only_files_of_its_conversations_audience():
    """Invariant 16."""
    old = BASE.with_files({"plan.md": text("p", audience="person:alice")})
    changed = {"plan.md": text("q", audience="person:alice")}
    assert isinstance(verdict(changed, old=old), Refusal)
    assert isinstance(verdict({"plan.md": None}, old=old), Refusal)
    assert isinstance(verdict({"n.md": text(audience="person:bob")}, origin=ALICE), Refusal)
    assert verdict(changed, old=old, origin=ALICE) is None


@pytest.mark.parametrize("audience", ["everyone", "address:slack/T1"])
def test_widening_a_files_audience_asks_and_shows_the_text(audience):
    """Invariant 16."""
    old = BASE.with_files({"plan.md": text("I will leave in May", audience="person:alice")})
    question = verdict({"plan.md": text("I will leave in May", audience=audience)}, old=old, origin=ALICE)
    assert isinstance(question, Question)
    assert "I will leave in May" in question.text


def test_moving_private_lines_into_a_shared_file_asks_too():
    old = BASE.with_files({"people/alice.md": text("intro\nI will leave in May")})
    moved = {"people/alice.md": None, "notes.md": text("I will leave in May")}
    question = verdict(moved, old=old, origin=ALICE)
    assert isinstance(question, Question)
    assert "notes.md" in question.text
    narrowed = {"human.md": text("y" * 1_500, audience="person:alice")}
    assert verdict(narrowed, origin=ALICE) is None


def test_a_strict_policy_asks_before_a_private_chat_writes_what_others_see():
    old = BASE.with_files({".memory.json": b'{"ask_shared": true}'})
    shared = {"human.md": text("y" * 1_500 + "\nAlice is ill")}
    question = verdict(shared, old=old, origin=ALICE)
    assert isinstance(question, Question)
    assert "Alice is ill" in question.text
    assert verdict({"people/alice.md": text()}, old=old, origin=ALICE) is None
    assert verdict(shared, old=old, origin=AGENT) is None


def test_what_was_unsound_before_does_not_block_other_changes():
    """C45: hand-made files stay as they are and can be mended."""
    bad = {"MEMORY.md": b"Lives near Malm\xf6\n- second line\n", "odd.txt": b"x", "deep/a/b/c.md": b"x"}
    old = BASE.with_files(bad)
    assert verdict({"new.md": text()}, old=old) is None
    assert verdict({"MEMORY.md": bad["MEMORY.md"] + b"- third\n"}, old=old) is None
    assert isinstance(verdict({"MEMORY.md": bad["MEMORY.md"] + b"\xf6\n"}, old=old), Refusal)


def test_a_memory_that_is_too_large_may_shrink_step_by_step():
    """C48."""
    old = BASE.with_files({"long.md": text("x" * 70_000)})
    assert verdict({"long.md": text("x" * 69_000)}, old=old) is None
    assert isinstance(verdict({"new.md": text()}, old=old), Refusal)


def test_the_host_plants_what_it_later_protects():
    host = CommitOrigin(author="lodger", audience=Audience())
    files = {"rules.md": text(read_only="true"), "people/bob.md": text()}
    assert verdict(files, origin=host) is None
    impostor = CommitOrigin(author="lodger", audience=Audience(), person="mallory")
    assert isinstance(verdict(files, origin=impostor), Refusal)
