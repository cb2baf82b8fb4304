import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.permissions.patterns import PatternError, exact_glob, glob_pattern, shell_pattern


@pytest.mark.parametrize(
    ("pattern", "line", "covered"),
    [
        ("git status", "git status", True),
        ("git status", "git  'status'", True),
        ("git status", "git status -s", False),
        ("git *", "git status -s", True),
        ("git *", "git", True),
        ("git *", "gitk", False),
        ("git *", "/tmp/evil/git status", False),
        ("git diff *", "git diff --output=P", False),
        ("git diff", "git diff --output=P", False),
        ("env *", "env rm x", False),
        ("make test", "make test", True),
        ("bash build.sh", "bash build.sh", True),
        ("echo *", "echo x; touch P", False),
        ("echo *", "echo $(touch P)", False),
        ("echo '*'", "echo '*'", True),
        ("echo '*'", "echo a", False),
        ("*", "git status", True),
        ("*", "git status; x", False),
    ],
)
def test_an_allow_pattern_covers_one_plain_command_and_no_more(pattern, line, covered):
    assert shell_pattern(pattern).covers(line) is covered


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "rm",
        "/bin/rm x",
        "'rm' x",
        "ls && rm x",
        "sudo rm x",
        "env A=1 rm x",
        "xargs rm",
        "find . -exec rm {} +",
        "bash -c 'rm x'",
        "echo $(rm x)",
        "nice -n 5 rm x",
    ],
)
def test_a_deny_pattern_finds_the_program_by_whatever_way_it_is_called(line):
    assert shell_pattern("rm").finds(line)


@pytest.mark.parametrize("line", ["x=rm; $x a", "python3 -c 'os.system(\"rm a\")'", "bash script.sh", "`echo r`m a"])
def test_what_might_hide_a_denied_command_is_suspected(line):
    assert shell_pattern("rm *").suspects(line)


def test_a_denied_command_with_words_between_is_suspected():
    assert shell_pattern("git push").suspects("git -C . push")


@pytest.mark.parametrize("line", ["ls", "echo rm x", "rmdir x", "python3 build.py"])
def test_a_plain_command_of_another_program_is_free_of_suspicion(line):
    pattern = shell_pattern("rm *")
    assert not pattern.finds(line)
    assert not pattern.suspects(line)


@pytest.mark.parametrize("text", ["git*", "git * status", "a && b", "$(x)", 'echo "x *', "A=1 x"])
def test_a_shell_pattern_that_is_no_plain_command_is_refused(text):
    with pytest.raises(PatternError):
        shell_pattern(text)


@pytest.mark.parametrize(
    ("glob", "name", "matched"),
    [
        ("notes/*.md", "notes/a.md", True),
        ("notes/*.md", "notes/b/a.md", False),
        ("notes/**/*.md", "notes/b/a.md", True),
        ("notes/**/*.md", "notes/a.md", True),
        ("notes/", "notes/b/a.md", True),
        ("**", "a/b", True),
        ("*", "a/b", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a[bc]d", "acd", True),
        ("a[!b]d", "abd", False),
        ("a[!b]d", "a/d", False),
        ("./a", "a", True),
        ("a.b", "axb", False),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "example.com.evil.net", False),
        ("/srv/data/**", "/srv/data/x", True),
        ("a", "a\n", False),
    ],
)
def test_a_glob_stays_within_its_segments(glob, name, matched):
    assert glob_pattern(glob).matches(name) is matched


@pytest.mark.parametrize("text", ["", "../x", "a/../b", "~/x", "a[b", " a"])
def test_a_glob_that_leads_elsewhere_or_nowhere_is_refused(text):
    with pytest.raises(PatternError):
        glob_pattern(text)


@given(st.text(alphabet="ab/*?[]!.-", min_size=1), st.text(alphabet="ab/*?[]!.-", min_size=1))
def test_an_exact_glob_matches_its_name_and_nothing_else(name, other):
    try:
        pattern = glob_pattern(exact_glob(name))
    except PatternError:
        return
    if name.startswith("./") or name.endswith("/"):
        return
    assert pattern.matches(name)
    assert pattern.matches(other) == (name == other)


@pytest.mark.parametrize(
    ("glob", "directory", "reached"),
    [
        ("private/**", ".", True),
        ("private/**", "private", True),
        ("private/**", "public", False),
        ("**/*.pem", "public", True),
        ("a/b/*.md", "a", True),
        ("a/**/x.md", "a/b", True),
        ("a/b.md", "a/b", False),
        ("/srv/x", ".", False),
    ],
)
def test_a_glob_knows_the_directories_it_may_match_below(glob, directory, reached):
    assert glob_pattern(glob).reaches_below(directory) is reached
