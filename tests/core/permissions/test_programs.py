import pytest

from core.permissions.commands import simple_command
from core.permissions.programs import exceeds_rule, read_only_operands


@pytest.mark.parametrize(
    ("line", "operands"),
    [
        ("ls", ()),
        ("ls -la src", ("src",)),
        ("ls -1", ()),
        ("git status", ()),
        ("git status --short", ()),
        ("git diff --stat main", ("main",)),
        ("git log -5 --oneline", ()),
        ("head -n 20 a.txt", ("20", "a.txt")),
        ("tail -20 a.txt", ("a.txt",)),
        ("echo --anything -e x", ()),
        ("cat -- -n", ("-n",)),
        ("pwd", ()),
        ("wc -l a b", ("a", "b")),
        ("grep -rn pattern src", ("pattern", "src")),
    ],
)
def test_a_command_that_only_reads_is_known_with_what_it_reads(line, operands):
    assert read_only_operands(simple_command(line)) == operands


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "git",
        "git push",
        "git -c core.fsmonitor=x status",
        "git diff --output=P",
        "git diff --outp=P",
        "git diff --ext-diff",
        "git log -p",
        "git branch x",
        "tail -f a",
        "sort -o P a",
        "uniq a P",
        "date 010203",
        "date -s x",
        "hostname x",
        "find . -delete",
        "grep -f /etc/passwd a",
        "/tmp/evil/git status",
        "./git status",
        "GIT status",
        "gitstatus",
        "./ls",
        "file -C -m x",
        "wc --files0-from=x",
        "du --files0-from=x",
        "env",
        "tree -o P",
    ],
)
def test_every_other_command_is_not_taken_for_a_reader(line):
    """C63: look-alikes, other paths, options that write or run."""
    assert read_only_operands(simple_command(line)) is None


@pytest.mark.parametrize(
    "line",
    [
        "git diff --output=P",
        "git diff --outp P",
        "git -c alias.x=y status",
        "git grep --open-files-in-pager=x y",
        "env rm x",
        "/usr/bin/env rm x",
        "xargs rm",
        "find . -exec rm x +",
        "sed -i s/a/b/ x",
        "tar --checkpoint-action=exec=x cf a b",
        "tar -xIx a",
        "sort -uo P a",
        "rsync -e x a b",
        "curl -sO x",
    ],
)
def test_a_command_that_may_run_or_write_more_is_beyond_an_open_rule(line):
    assert exceeds_rule(simple_command(line))


@pytest.mark.parametrize("line", ["git status", "git commit -m x", "npm run build", "echo a", "ls -la --color"])
def test_an_ordinary_command_is_within_an_open_rule(line):
    assert not exceeds_rule(simple_command(line))
