"""The process environment is read where the configuration is loaded, and nowhere else."""

import ast

from tests.architecture.limits import ENVIRONMENT_READERS
from tests.architecture.sources import PRODUCT, Module, modules

NAMES = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}


def touches_environment(module: Module) -> bool:
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in NAMES:
                return True
            case ast.ImportFrom(module="os", names=names) if NAMES & {name.name for name in names}:
                return True
    return False


def test_the_environment_is_touched_in_the_named_files_only():
    looked_at = modules(*PRODUCT)

    assert len(looked_at) > 200
    assert {module.path for module in looked_at if touches_environment(module)} == ENVIRONMENT_READERS.keys()


def test_every_way_to_the_environment_would_be_seen():
    ways = ("import os\nos.environ['A']", "import os\nos.getenv('A')", "from os import environ as e")

    assert [touches_environment(Module("x.py", way)) for way in ways] == [True] * len(ways)
    assert not touches_environment(Module("x.py", "import os\nsources.environ['A']"))
