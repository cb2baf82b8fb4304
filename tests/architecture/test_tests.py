"""Rules for the tests themselves: nothing is timed, nothing of ours is patched, nothing is silently skipped."""

import ast

from tests.architecture.sources import TESTING, Module, modules

LONGEST_POLL_SECONDS = 0.01
TIMERS = {"perf_counter", "perf_counter_ns", "process_time", "timeit"}


def sleeps(module: Module) -> list[str]:
    """Return where a test sleeps, but for yielding and for short waits inside a loop."""
    polls = {
        id(inner)
        for loop in ast.walk(module.tree)
        if isinstance(loop, ast.While | ast.For)
        for inner in ast.walk(loop)
        if isinstance(inner, ast.Call)
    }
    found = []
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time" | "asyncio"), attr="sleep"), args=[seconds]):
                is_short = isinstance(seconds, ast.Constant) and seconds.value <= LONGEST_POLL_SECONDS
                yields = isinstance(seconds, ast.Constant) and seconds.value == 0
                if not (yields or (is_short and id(node) in polls)):
                    found.append(f"{module.path}:{node.lineno}")
    return found


def names_used(module: Module) -> set[str]:
    names = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
    imported = (node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return names | {alias.name for node in imported for alias in node.names}


def patches(module: Module) -> bool:
    """Whether a module replaces attributes of code: by a mock, or by monkeypatch."""
    imports = (node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom))
    if any((node.module or "").startswith("unittest") for node in imports):
        return True
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in {"setattr", "delattr"}
        and ast.unparse(node.value) == "monkeypatch"
        for node in ast.walk(module.tree)
    )


def test_no_test_sleeps():
    looked_at = modules("tests")

    assert len(looked_at) > 100
    assert [place for module in looked_at for place in sleeps(module)] == []


def test_no_test_measures_time():
    looked_at = modules("tests")

    assert len(looked_at) > 100
    here = "tests/architecture/test_tests.py"
    assert [m.path for m in looked_at if TIMERS & names_used(m) and m.path != here] == []


def test_no_test_patches_code():
    assert [module.path for module in modules("tests") if patches(module)] == []


def test_tests_are_plain_functions():
    classes = [
        f"{module.path}:{node.lineno}"
        for module in modules("tests")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test")
    ]
    assert classes == []


def test_no_directory_of_tests_is_a_package():
    """Tests are imported by path, so that equal file names in different directories do not clash."""
    assert [
        module.path for module in modules(*TESTING) if module.path.startswith("tests/") and module.name == "__init__"
    ] == []


def test_a_sleep_would_be_seen():
    timed = "import asyncio, time\nasync def test():\n    await asyncio.sleep(0.5)\n    time.sleep(0.01)\n"
    waits = "while not done():\n    time.sleep(0.001)\nasyncio.sleep(0)\n"

    assert sorted(sleeps(Module("x.py", timed))) == ["x.py:3", "x.py:4"]
    assert sleeps(Module("x.py", waits)) == []
