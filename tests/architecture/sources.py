"""The repository's files as the architecture tests look at them."""

import ast
import functools
import io
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("core", "channels", "bot")
TESTING = ("tests", "benchmarks")


@dataclass(frozen=True)
class Module:
    """One Python file; `path` is relative to the repository, with slashes."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def comments(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, text) of every comment; strings that look like one are none."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@functools.cache
def modules(*roots: str) -> tuple[Module, ...]:
    """Return every Python file below the given top-level directories."""
    paths = sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))
    return tuple(Module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths)


@functools.cache
def pyproject() -> dict:
    return tomllib.loads(text_of("pyproject.toml"))


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
