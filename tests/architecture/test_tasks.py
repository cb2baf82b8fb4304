"""Every task has an owner: a task group, or a name that somebody awaits."""

import ast

from tests.architecture.sources import PRODUCT, TESTING, Module, modules

STARTERS = {"create_task", "ensure_future"}


def started_tasks(module: Module) -> list[ast.Call]:
    """Return every call that starts a task."""
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    return [call for call in calls if _starter(call.func) in STARTERS]


def orphaned_tasks(module: Module) -> list[str]:
    """Return where a started task is dropped, and no task group holds it."""
    groups = _task_groups(module.tree)
    dropped = (n.value for n in ast.walk(module.tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call))
    return [
        f"{module.path}:{call.lineno}"
        for call in dropped
        if _starter(call.func) in STARTERS and _receiver(call.func) not in groups
    ]


def _starter(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _receiver(function: ast.expr) -> str:
    return ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""


def _task_groups(tree: ast.Module) -> set[str]:
    """Return the names that are bound to a task group: by `async with`, annotation or assignment of one."""
    groups: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.AsyncWith(items=items):
                groups.update(
                    ast.unparse(item.optional_vars)
                    for item in items
                    if item.optional_vars is not None and ast.unparse(item.context_expr).endswith("TaskGroup()")
                )
            case ast.arg(arg=name, annotation=ast.expr() as kind) if ast.unparse(kind).endswith("TaskGroup"):
                groups.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=ast.Name(id=name)) if name in groups:
                groups.add(ast.unparse(target))
    return groups


def test_no_started_task_is_dropped():
    looked_at = modules(*PRODUCT, *TESTING)

    assert sum(len(started_tasks(module)) for module in looked_at) > 50
    assert [place for module in looked_at for place in orphaned_tasks(module)] == []


def test_a_dropped_task_would_be_seen():
    dropped = "import asyncio\nasyncio.create_task(f())\nasyncio.get_running_loop().create_task(f())\n"
    owned = "async def run():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(f())\n"

    assert orphaned_tasks(Module("x.py", dropped)) == ["x.py:2", "x.py:3"]
    assert orphaned_tasks(Module("x.py", owned)) == []
