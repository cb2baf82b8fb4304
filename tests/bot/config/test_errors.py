from pathlib import Path

from bot.config.errors import ConfigError
from core.contracts.errors import LodgerError


def test_an_error_reads_as_one_line_with_all_that_is_known():
    error = ConfigError("unknown key", file=Path("c.toml"), line=3, column=1, key="a.b", suggestion="x")
    assert str(error) == "c.toml, line 3, column 1: a.b: unknown key (x)"


def test_what_is_not_known_leaves_no_trace():
    assert str(ConfigError("no such file", file=Path("c.toml"))) == "c.toml: no such file"
    assert str(ConfigError("is missing", key="a")) == "a: is missing"
    assert isinstance(ConfigError("x"), LodgerError)
