"""Files and functions stay small enough to be read at once."""

import ast

import pytest

from tests.architecture.limits import FILE_LINES, FUNCTION_LINES, TEST_FILE_LINES
from tests.architecture.sources import PRODUCT, TESTING, Module, modules


def too_long_functions(module: Module) -> list[str]:
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{module.path}:{node.lineno} {node.name} has {length} lines")
    return found


@pytest.mark.parametrize(("roots", "limit"), [(PRODUCT, FILE_LINES), (TESTING, TEST_FILE_LINES)])
def test_files_are_short(roots, limit):
    looked_at = modules(*roots)

    assert len(looked_at) > 100
    assert [f"{m.path} has {len(m.lines)} lines" for m in looked_at if len(m.lines) > limit] == []


def test_functions_are_short():
    looked_at = modules(*PRODUCT, *TESTING)

    assert (
        sum(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for m in looked_at for n in ast.walk(m.tree)) > 2000
    )
    assert [found for module in looked_at for found in too_long_functions(module)] == []


def test_a_long_function_would_be_seen():
    body = "    pass\n" * FUNCTION_LINES

    assert too_long_functions(Module("x.py", f"def long():\n{body}")) == ["x.py:1 long has 61 lines"]
    assert too_long_functions(Module("x.py", f"def fits():\n{body}".removesuffix("    pass\n"))) == []
