import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from core.permissions.commands import command_text, every_command, simple_command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("git status", ("git", "status")),
        ("git  status", ("git", "status")),
        (" git status \n", ("git", "status")),
        ('echo "a && b"', ("echo", "a && b")),
        ("echo 'a; b'", ("echo", "a; b")),
        ("ls -la", ("ls", "-la")),
        ("git commit -m 'fix: a'\"b\"c ''", ("git", "commit", "-m", "fix: abc", "")),
        ("cat заметки/план.md", ("cat", "заметки/план.md")),
        ("head -n 5 a.txt", ("head", "-n", "5", "a.txt")),
        ("make CC=gcc all", ("make", "CC=gcc", "all")),
    ],
)
def test_a_plain_command_is_read_as_the_words_that_bash_would_pass(line, words):
    assert simple_command(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "git status && touch P",
        "git status; touch P",
        "git status | tee P",
        "git status || touch P",
        "git status & touch P",
        "git status &",
        "git status\ntouch P",
        "git status\rtouch P",
        "git status\n\\touch P",
        "git status \\\ntouch P",
        "git status \\\r\ntouch P",
        "echo $(touch P)",
        "echo `touch P`",
        "echo <(touch P)",
        "echo x > P",
        "echo x >> P",
        "echo x 2>&1",
        "touch P # git status",
        "git status #\ntouch P",
        "git status\f#touch P",
        "git status\tx",
        'ls "$(touch P)"',
        'ls "`touch P`"',
        "echo ${x:=$(touch P)}",
        "echo $HOME",
        "echo $'\\x41'",
        "A=1 git status",
        "A=1",
        "git* status",
        "ls *.py",
        "ls a?",
        "ls [ab]",
        "ls {a,b}",
        "ls ~",
        "cat ~root/x",
        "git stat\\us",
        "! ls",
        "time ls",
        "[[ 'a[$(x)]' -eq 1 ]]",
        "[ -f x ]",
        "{ ls; }",
        "(ls)",
        "for x in a; do ls; done",
        "function f",
        "ls ;; x",
        "ls {fd}>x",
        "ls 'unclosed",
        'ls "unclosed',
        "cat <<E\nx\nE",
        "ls\u00a0-l",
        "ls \u202egpj",
        "ls \u200bx",
        "ls\x00x",
        "ls \x1b[0m",
        "'git' status",
        "echo " + "a" * 5_000,
    ],
)
def test_anything_but_one_plain_command_is_not_trusted(line):
    """C63, and the constructs of facts/libraries.md 1b."""
    assert simple_command(line) is None


@given(st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x17F)), min_size=0, max_size=4))
def test_a_command_written_out_is_read_back_as_the_same_words(arguments):
    words = ("git", *arguments)
    line = command_text(words)
    assert simple_command(line) in {words, None}


_NASTY = st.one_of(
    st.sampled_from("\\$`#;&|><\n\t\r\f*?~{}()!^'\"\u00a0"),
    st.sampled_from(["$(b)", "if", "2>&1", "$'a'", "\\\n"]),
)
_CALM = st.sampled_from(["a", "b-c", "x=1", "%1", "@", "+", ",", "é", "-", "--o=", "/", "[", "''", '""', ":", "1"])
_INSIDE = st.lists(st.one_of(_CALM, _NASTY, st.just(" ")), max_size=4).map("".join)
_SEGMENT = st.one_of(_CALM, _INSIDE.map("'{}'".format), _INSIDE.map('"{}"'.format), st.one_of(_CALM, _CALM, _NASTY))
_WORD = st.lists(_SEGMENT, min_size=1, max_size=2).map("".join)
_TAIL = st.lists(_WORD, min_size=1, max_size=4).map(" ".join)
_ECHO_WORDS = 'command_not_found_handle() { printf "%s\\0" "$@"; }; '


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the judge here")
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=_TAIL, gap=st.sampled_from([" ", "  ", ""]))
def test_what_is_trusted_is_what_bash_really_runs(tail, gap, tmp_path):
    """Every line that the reader accepts runs one program, with exactly the words that were read."""
    line = f"zz{gap}{tail}"
    words = simple_command(line)
    assume(words is not None and "/" not in words[0])
    ran = subprocess.run(
        [shutil.which("bash"), "--norc", "--noprofile", "-c", _ECHO_WORDS + line],
        cwd=tmp_path,
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert os.listdir(tmp_path) == []
    assert ran.stderr == b""
    assert tuple(ran.stdout.decode().split("\0")[:-1]) == words


@pytest.mark.parametrize(
    "line",
    [
        "ls && rm x",
        "ls; rm x",
        "ls | rm x",
        "echo $(rm x)",
        "(rm x)",
        'bash -c "ls; rm x"',
        "A=1 rm x",
        "rm x > /dev/null",
        "r''m x",
        "\\rm x",
        'if true; then "rm" x; fi',
        "eval 'rm x'",
        """bash -c "bash -c 'rm x'" """,
    ],
)
def test_a_command_is_found_wherever_the_line_spells_it(line):
    assert ("rm", "x") in every_command(line)


def test_reading_deeply_nested_lines_ends():
    line = "rm x"
    for _ in range(9):
        line = f"bash -c {line!r}"
    assert every_command(line)[0][0] == "bash"


@pytest.mark.parametrize(
    "line",
    [
        "echo " + "a" * 3_900 + "; rm -rf x",
        "echo " + "'a'" * 1_200 + '"',
        "echo " + "a b" * 1_200 + ";",
        "a" * 3_900 + "$",
    ],
)
def test_a_long_line_that_is_not_plain_is_refused_without_going_back_over_it(line):
    """Nested quantifiers once kept such a line, and the whole host with it, busy for ever."""
    assert simple_command(line) is None
