"""`except Exception` ends an error in four named places only; anywhere else it hides a bug."""

import ast
from collections import Counter

from tests.architecture.limits import BROAD_EXCEPTS
from tests.architecture.sources import PRODUCT, Module, modules

BROAD = {"Exception", "BaseException", "BaseExceptionGroup", "ExceptionGroup"}


def broad_handlers(module: Module) -> list[int]:
    """Return the lines where any error whatever may end: a broad handler that does not always re-raise."""
    found = []
    for node in ast.walk(module.tree):
        match node:
            case ast.ExceptHandler(type=caught, body=body) if _is_broad(caught):
                if not _always_reraises(body):
                    found.append(node.lineno)
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
                if any(_is_broad(error) for error in caught):
                    found.append(node.lineno)
    return found


def _is_broad(caught: ast.expr | None) -> bool:
    match caught:
        case None:
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in BROAD
        case ast.Tuple(elts=several):
            return any(_is_broad(one) for one in several)
        case _:
            return False


def _always_reraises(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise) and body[-1].exc is None


def test_errors_end_in_the_named_places_only():
    looked_at = modules(*PRODUCT)
    found = Counter({module.path: len(broad_handlers(module)) for module in looked_at})

    assert len(looked_at) > 200
    assert +found == Counter(BROAD_EXCEPTS.keys())


def test_every_way_to_swallow_an_error_would_be_seen():
    ways = (
        "try:\n    f()\nexcept Exception:\n    pass\n",
        "try:\n    f()\nexcept (ValueError, BaseException):\n    pass\n",
        "try:\n    f()\nexcept:\n    pass\n",
        "try:\n    f()\nexcept* Exception:\n    pass\n",
        "with contextlib.suppress(Exception):\n    f()\n",
    )
    assert [len(broad_handlers(Module("x.py", way))) for way in ways] == [1] * len(ways)
    cleaned_up = "try:\n    f()\nexcept BaseException:\n    g()\n    raise\n"
    narrow = "try:\n    f()\nexcept ValueError:\n    pass\n"
    assert broad_handlers(Module("x.py", cleaned_up + narrow)) == []
