"""Every module says what it is for, by its name and its first line."""

import ast

from tests.architecture.limits import FORBIDDEN_MODULE_NAMES
from tests.architecture.sources import PRODUCT, modules


def test_every_module_begins_with_a_docstring():
    looked_at = modules(*PRODUCT)

    assert len(looked_at) > 200
    assert [m.path for m in looked_at if not ast.get_docstring(m.tree)] == []


def test_an_init_file_holds_a_docstring_and_nothing_more():
    looked_at = [m for m in modules(*PRODUCT) if m.name == "__init__"]

    assert len(looked_at) > 20
    assert [m.path for m in looked_at if len(m.tree.body) != 1] == []


def test_every_directory_with_modules_is_a_package():
    """A directory without `__init__.py` would be seen by no import rule."""
    paths = {module.path for module in modules(*PRODUCT)}
    directories = {path.rpartition("/")[0] for path in paths}

    assert len(directories) > 20
    assert [d for d in sorted(directories) if f"{d}/__init__.py" not in paths] == []


def test_no_module_or_package_has_a_name_that_says_nothing():
    names = {(m.path, part) for m in modules(*PRODUCT) for part in m.path.removesuffix(".py").split("/")}

    assert len(names) > 200
    assert [path for path, part in sorted(names) if part in FORBIDDEN_MODULE_NAMES] == []
