"""Checks that are switched off are counted: each has a code and a reason, and their number only falls."""

import ast
import re
from collections import Counter

from tests.architecture.limits import SUPPRESSIONS
from tests.architecture.sources import PRODUCT, TESTING, Module, modules

MARK = re.compile(r"#\s*(?P<kind>noqa|type:\s*ignore)(?P<rest>.*)")
WITH_REASON = re.compile(r"(: [A-Z]+\d+(, [A-Z]+\d+)*|\[[a-z-]+(, ?[a-z-]+)*\])(?P<reason>.*)")

LINES_ABOVE = 3


def suppressions(module: Module) -> list[tuple[str, int, str]]:
    """Return (kind, line, what stands behind the kind) of every suppression of a module."""
    found = [
        (re.sub(r":\s*", ": ", match["kind"]), line, match["rest"])
        for line, comment in module.comments()
        for match in MARK.finditer(comment)
    ]
    imports_cast = any(
        isinstance(node, ast.ImportFrom) and node.module == "typing" and "cast" in {name.name for name in node.names}
        for node in ast.walk(module.tree)
    )
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="typing"), attr="cast")):
                found.append(("cast", node.lineno, ""))
            case ast.Call(func=ast.Name(id="cast")) if imports_cast:
                found.append(("cast", node.lineno, ""))
    return found


def is_explained(module: Module, line: int, rest: str) -> bool:
    """Whether a suppression names its code, and why: behind it, or in a comment just above its statement."""
    match = WITH_REASON.match(rest)
    if match is None:
        return False
    above = [text.strip() for text in module.lines[max(0, line - 1 - LINES_ABOVE) : line - 1]]
    return len(match["reason"].strip(" -")) > 5 or any(text.startswith("# ") for text in above)


def everywhere() -> list[tuple[Module, str, int, str]]:
    return [(m, *found) for m in modules(*PRODUCT, *TESTING) for found in suppressions(m)]


def test_the_number_of_suppressions_is_the_recorded_one_and_may_only_fall():
    assert len(modules(*PRODUCT, *TESTING)) > 300
    counted = Counter(dict.fromkeys(SUPPRESSIONS, 0) | Counter(kind for _, kind, _, _ in everywhere()))

    more = {kind: number for kind, number in counted.items() if number > SUPPRESSIONS[kind]}
    fewer = {kind: number for kind, number in counted.items() if number < SUPPRESSIONS[kind]}
    assert more == {}, "do without, or say in review why not"
    assert fewer == {}, "well done: lower SUPPRESSIONS in limits.py and AGENTS.md"


def test_every_suppression_has_a_code_and_a_reason():
    comments = [found for found in everywhere() if found[1] != "cast"]

    assert comments
    assert [f"{m.path}:{line}" for m, _, line, rest in comments if not is_explained(m, line, rest)] == []


def test_suppressions_without_code_or_reason_would_be_seen():
    off = "# no" + "qa"
    text = f"a = 1  {off}\nb = 1  {off}: S101\nc = 1  {off}: S101 - an invariant\nd = '{off}'\n"
    module = Module("x.py", text)

    assert [is_explained(module, line, rest) for _, line, rest in suppressions(module)] == [False, False, True]


def test_a_cast_would_be_counted_and_one_of_sql_not():
    ours = Module("x.py", "from typing import cast\ncast(int, 1)\n")
    sql = Module("x.py", "from sqlalchemy import cast\ncast(a, b)\n")

    assert [kind for kind, _, _ in suppressions(ours)] == ["cast"]
    assert suppressions(sql) == []
