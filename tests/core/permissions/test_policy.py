from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, CallId, ConversationId, PersonId
from core.contracts.messages import ToolCall
from core.contracts.permissions import Action, Grant, Subject
from core.contracts.tools import Access
from core.permissions.commands import command_text
from core.permissions.policy import RulePolicy, shadowed_rules
from core.permissions.rules import make_rule

MODES = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.STRICT, PermissionMode.UNRESTRICTED)
RULES = (
    make_rule(tool="shell", match="npm run *", action=Action.ALLOW),
    make_rule(tool="shell", match="rm *", action=Action.DENY),
    make_rule(tool="shell", match="git push *", action=Action.ALWAYS_ASK),
    make_rule(tool="write", match="notes/**", action=Action.ALLOW),
    make_rule(tool="write", match="locked/**", action=Action.DENY),
    make_rule(tool="web_fetch", match="*.example.com", action=Action.ALLOW),
    make_rule(tool="web_fetch", match="asked.net", action=Action.ASK),
    make_rule(tool="mcp__safe", action=Action.ALLOW),
    make_rule(tool="mcp__bad", action=Action.DENY),
)
C63_RULES = tuple(
    make_rule(tool="shell", match=text, action=Action.ALLOW)
    for text in ("git status *", "git diff *", "echo *", "ls *", "git status", "git diff", "echo", "ls")
)


@pytest.fixture
def subject(tmp_path):
    workspace = tmp_path / "ws"
    workspace.mkdir()
    return Subject(
        agent_id=AgentId("agent"),
        conversation_id=ConversationId("here"),
        mode=PermissionMode.ASK,
        workspace=workspace,
        requester=PersonId("alice"),
        forbidden=(tmp_path / "data",),
        granted=(tmp_path / "data" / "overflow",),
    )


def call(tool):
    return ToolCall(id=CallId("1"), name=tool, arguments="{}")


def judge(subject, tool, access, *, rules=RULES, grants=(), disallowed=frozenset()):
    return RulePolicy(rules, disallowed=disallowed).verdict(call(tool), access, subject, grants)


def shell(line):
    return "shell", lambda ws: Access(command=line)


def write(name):
    return "write", lambda ws: Access(writes=(ws / name,))


def read(name):
    return "read", lambda ws: Access(reads=(ws / name,))


# Each row: the call, then what the modes ask, accept_edits, strict, unrestricted say of it.
TABLE = {
    "guard: outside": (read("../secret"), "deny deny deny deny"),
    "guard: data directory": (write("../data/x"), "deny deny deny deny"),
    "guard: other memory": (("memory_write", lambda ws: Access(memory_writes=("../b",))), "deny deny deny deny"),
    "deny rule": (shell("rm -r x"), "deny deny deny deny"),
    "deny rule, hidden": (shell("ls && /bin/rm x"), "deny deny deny deny"),
    "deny rule, not ruled out": (shell("$x y"), "ask ask ask ask"),
    "deny rule, path": (write("locked/a"), "deny deny deny deny"),
    "deny rule, whole tool": (("mcp__bad", lambda ws: None), "deny deny deny deny"),
    "disallowed tool": (("agent", lambda ws: Access(free=True)), "deny deny deny deny"),
    "always ask": (shell("git push origin"), "ask ask ask ask"),
    "free": (("todo", lambda ws: Access(free=True)), "allow allow allow allow"),
    "edit": (write("a.txt"), "ask allow ask allow"),
    "edit of what git obeys": (write(".git/config"), "ask ask ask allow"),
    "edit of a granted place": (write("../data/overflow/x"), "ask ask ask allow"),
    "allow rule, path": (write("notes/a.md"), "allow allow allow allow"),
    "allow rule, shell": (shell("npm run build"), "allow allow allow allow"),
    "allow rule, host": (("web_fetch", lambda ws: Access(network=("a.example.com",))), "allow allow allow allow"),
    "allow rule, whole tool": (("mcp__safe", lambda ws: None), "allow allow allow allow"),
    "allow rule never covers more": (shell("npm run build; x"), "ask ask ask ask"),
    "read-only shell": (shell("ls -la"), "allow allow ask allow"),
    "read-only shell outside": (shell("cat /etc/passwd"), "ask ask ask allow"),
    "read-only shell outside by ..": (shell("cat ../secret"), "ask ask ask allow"),
    "own memory read": (("memory_read", lambda ws: Access(memory_reads=True)), "allow allow ask allow"),
    "own memory write": (("memory_write", lambda ws: Access(memory_writes=("a.md",))), "allow allow ask allow"),
    "read in the workspace": (read("a.txt"), "allow allow ask allow"),
    "read of a granted place": (read("../data/overflow/x"), "allow allow ask allow"),
    "ask rule": (("web_fetch", lambda ws: Access(network=("asked.net",))), "ask ask ask allow"),
    "any other command": (shell("make"), "ask ask ask allow"),
    "any other host": (("web_fetch", lambda ws: Access(network=("b.net",))), "ask ask ask allow"),
    "unknown access": (("mcp__x", lambda ws: None), "ask ask ask allow"),
    "known to touch nothing": (("other", lambda ws: Access()), "ask ask ask allow"),
}


@pytest.mark.parametrize("case", TABLE)
def test_every_mode_judges_in_the_fixed_order(case, subject):
    (tool, access), expected = TABLE[case]
    said = [
        judge(
            replace(subject, mode=mode),
            tool,
            access(subject.workspace),
            disallowed=frozenset({"agent"}),
        ).action.value
        for mode in MODES
    ]
    assert said == expected.split()


@pytest.mark.parametrize("case", TABLE)
def test_every_verdict_names_its_rule_and_is_never_always_ask(case, subject):
    (tool, access), _ = TABLE[case]
    verdict = judge(subject, tool, access(subject.workspace))
    assert verdict.rule
    assert verdict.reason
    assert verdict.action is not Action.ALWAYS_ASK


@pytest.mark.parametrize(
    "line",
    [
        "git status && touch P",
        "git status; touch P",
        "git status | tee P",
        "git status || touch P",
        "git status & touch P",
        "git status\ntouch P",
        "git status\rtouch P",
        "echo $(touch P)",
        "echo `touch P`",
        "echo <(touch P)",
        "echo x > P",
        "echo x >> P",
        "touch P # git status",
        "git status #\ntouch P",
        'ls "$(touch P)"',
        "echo ${x:=$(touch P)}",
        "gitstatus",
        "/tmp/evil/git status",
        "./git status",
        "GIT status",
        "git diff --output=P",
        "git diff --outpu P",
        "git -c core.pager=touch status",
    ],
)
@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.STRICT])
def test_no_bypass_of_an_allowed_command_runs_without_a_question(line, mode, subject):
    """C63: rules allow git status, git diff, echo and ls, with any further words."""
    verdict = judge(replace(subject, mode=mode), "shell", Access(command=line), rules=C63_RULES)
    assert verdict.action is Action.ASK


@pytest.mark.parametrize("line", ["git  status", 'echo "a && b"', "echo 'a; b'", "ls -la"])
@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.STRICT])
def test_harmless_spellings_of_an_allowed_command_run(line, mode, subject):
    """C63: the four harmless lines."""
    verdict = judge(replace(subject, mode=mode), "shell", Access(command=line), rules=C63_RULES)
    assert verdict.action is Action.ALLOW


def test_a_read_only_command_does_not_follow_a_link_out_of_the_workspace(subject, tmp_path):
    (tmp_path / "secret").write_text("x")
    (subject.workspace / "link").symlink_to(tmp_path / "secret")
    assert judge(subject, "shell", Access(command="cat link")).action is Action.ASK
    assert judge(subject, "shell", Access(command="cat other")).action is Action.ALLOW


def test_an_allow_rule_covers_a_path_only_where_it_really_leads(subject):
    (subject.workspace / "notes").mkdir()
    (subject.workspace / "notes" / "link").symlink_to(subject.workspace / "code")
    access = Access(writes=(subject.workspace / "notes" / "link" / "x",))
    assert judge(subject, "write", access).action is Action.ASK


def test_a_deny_rule_meets_a_path_by_whatever_link(subject):
    (subject.workspace / "locked").mkdir()
    (subject.workspace / "open").symlink_to(subject.workspace / "locked")
    access = Access(writes=(subject.workspace / "open" / "x",))
    assert judge(subject, "write", access).action is Action.DENY


def test_an_allow_rule_covers_all_that_a_call_touches_or_nothing(subject):
    paths = (subject.workspace / "notes" / "a", subject.workspace / "b")
    assert judge(subject, "write", Access(writes=paths)).action is Action.ASK
    assert judge(subject, "write", Access(writes=paths[:1])).action is Action.ALLOW


def test_a_search_in_a_folder_that_holds_denied_files_is_asked_about(subject):
    (subject.workspace / "private").mkdir()
    rules = (make_rule(tool="grep", match="private/**", action=Action.DENY),)
    assert judge(subject, "grep", Access(reads=(subject.workspace,)), rules=rules).action is Action.ASK
    assert judge(subject, "grep", Access(reads=(subject.workspace / "src",)), rules=rules).action is Action.ALLOW


def test_a_path_rule_for_every_tool_meets_the_words_of_a_command(subject):
    rules = (make_rule(tool="*", match=".env", action=Action.DENY),)
    unrestricted = replace(subject, mode=PermissionMode.UNRESTRICTED)
    assert judge(unrestricted, "shell", Access(command="cat ./.env"), rules=rules).action is Action.DENY
    assert judge(unrestricted, "shell", Access(command="cat .e*"), rules=rules).action is Action.ASK


def grant(rule, **changes):
    given = Grant(
        rule=rule,
        agent_id=AgentId("agent"),
        conversation_id=ConversationId("here"),
        requester=PersonId("alice"),
        given_by=PersonId("olga"),
    )
    return replace(given, **changes)


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.STRICT])
def test_a_grant_allows_its_command_in_its_conversation_for_its_requester(mode, subject):
    access = Access(command="make test")
    given = grant("shell: make test")
    assert judge(replace(subject, mode=mode), "shell", access, grants=(given,)).action is Action.ALLOW


@pytest.mark.parametrize(
    "changes",
    [
        {"agent_id": AgentId("other")},
        {"conversation_id": ConversationId("there")},
        {"requester": PersonId("bob")},
        {"requester": None},
        {"rule": "shell: make"},
        {"rule": "shell: a | b"},
        {"rule": ""},
    ],
)
def test_a_grant_of_another_kind_allows_nothing(changes, subject):
    """C22, C24: nothing is approved by what was granted elsewhere."""
    given = replace(grant("shell: make test"), **changes)
    assert judge(subject, "shell", Access(command="make test"), grants=(given,)).action is Action.ASK


def test_a_grant_for_good_holds_in_every_conversation(subject):
    given = grant("shell: make test", conversation_id=None, requester=None)
    elsewhere = replace(subject, conversation_id=ConversationId("there"), requester=PersonId("bob"))
    assert judge(elsewhere, "shell", Access(command="make test"), grants=(given,)).action is Action.ALLOW


@pytest.mark.parametrize(
    ("tool", "access"), [shell("rm x"), shell("git push origin"), read("../x"), ("mcp__bad", lambda ws: None)]
)
def test_no_grant_passes_the_steps_before_the_mode(tool, access, subject):
    grants = (grant("shell: *"), grant("shell"), grant("read"), grant("mcp__bad"), grant("*"))
    verdict = judge(subject, tool, access(subject.workspace), grants=grants)
    assert verdict.action in {Action.DENY, Action.ASK}
    assert verdict.remember == ""


@pytest.mark.parametrize(
    ("tool", "access", "offered"),
    [
        (*shell("make   'test'"), "shell: make test"),
        (*shell("git commit -m 'a b'"), "shell: git commit -m 'a b'"),
        (*shell("touch '*'"), "shell: touch '*'"),
        (*shell("make; x"), ""),
        (*shell("bash build.sh"), ""),
        (*shell("/usr/bin/env x"), ""),
        (*shell("cat /etc/passwd"), "shell: cat /etc/passwd"),
        (*write("a b/[x].md"), "write: a b/[[]x].md"),
        (*write("../data/overflow/x"), None),
        ("write", lambda ws: Access(writes=(ws / "a", ws / "b")), ""),
        ("web_fetch", lambda ws: Access(network=("b.net",)), "web_fetch: b.net"),
        ("mcp__x", lambda ws: None, "mcp__x"),
        ("shell", lambda ws: None, ""),
    ],
)
def test_what_always_would_add_is_the_narrowest_rule_for_the_call(tool, access, offered, subject):
    rules = (make_rule(tool="shell", match="git push *", action=Action.ALWAYS_ASK),)
    wanted = access(subject.workspace)
    verdict = judge(subject, tool, wanted, rules=rules)
    if offered is None:
        offered = f"write: {subject.granted[0] / 'x'}"
    assert verdict.remember == offered
    if verdict.remember:
        assert judge(subject, tool, wanted, rules=rules, grants=(grant(verdict.remember),)).action is Action.ALLOW


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.text(alphabet="ab*?'\"$;| \\=-/.~#", max_size=5), min_size=1, max_size=3))
def test_an_offered_rule_covers_the_very_command_and_no_longer_one(words, subject):
    line = command_text(("make", *words))
    offered = judge(subject, "shell", Access(command=line), rules=()).remember
    if not offered:
        return
    grants = (grant(offered),)
    assert judge(subject, "shell", Access(command=line), rules=(), grants=grants).action is Action.ALLOW
    longer = judge(subject, "shell", Access(command=f"{line} more"), rules=(), grants=grants)
    assert longer.action is Action.ASK


def test_an_ask_rule_that_can_never_speak_is_reported():
    idle = make_rule(tool="shell", match="git status", action=Action.ASK)
    spoken = make_rule(tool="shell", match="make", action=Action.ASK)
    twice = make_rule(tool="todo", action=Action.ASK)
    allowed = make_rule(tool="todo", action=Action.ALLOW)
    assert shadowed_rules((idle, spoken, twice, allowed)) == (idle, twice)
