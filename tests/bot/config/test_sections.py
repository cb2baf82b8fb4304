from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest

from bot.config.errors import ConfigError
from bot.config.secrets import SecretSources
from bot.config.sections import Converted, Named, Section, key_paths, read_section
from bot.config.syntax import Document
from bot.config.values import ListOf, Place, count, directory, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    name: Annotated[str, text]
    size: Annotated[int, count] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    size: Annotated[int, count] = 2
    folder: Annotated[Path, directory] = Path("~/box")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    box: Annotated[Box, Section(Box)] = field(default_factory=Box)
    maybe: Annotated[Inner | None, Section(Inner)] = None
    named: Annotated[dict[str, Inner], Named(Inner)] = field(default_factory=dict)
    many: Annotated[tuple[str, ...], ListOf(Converted(Section(Inner), lambda inner, place: inner.name))] = ()
    not_a_key: str = "x"


@pytest.fixture
def place(tmp_path):
    sources = SecretSources(environ={}, folder=tmp_path, home=Path("/home/x"), keyring=lambda name: None)
    return Place(document=Document(), sources=sources)


def test_what_is_left_out_has_its_default_and_default_paths_are_expanded(place):
    read = read_section(Outer, {}, place)
    assert read.box == Box(size=2, folder=Path("/home/x/box"))
    assert read.maybe is None
    assert read.named == {}


def test_tables_become_sections_by_name_in_lists_and_optionally(place):
    read = read_section(
        Outer, {"maybe": {"name": "a"}, "named": {"n": {"name": "b", "size": 3}}, "many": [{"name": "c"}]}, place
    )
    assert read.maybe == Inner(name="a", size=1)
    assert read.named == {"n": Inner(name="b", size=3)}
    assert read.many == ("c",)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"not_a_key": "y"}, "not_a_key"),
        ({"maybe": {}}, "maybe.name"),
        ({"named": {"n": {"nam": "b"}}}, "named.n.nam"),
        ({"many": [{"name": "a"}, {"name": 1}]}, "many[1].name"),
        ({"box": []}, "box"),
    ],
)
def test_a_refusal_names_the_key_path(place, table, key):
    with pytest.raises(ConfigError) as caught:
        read_section(Outer, table, place)
    assert caught.value.key == key


def test_every_key_is_listed():
    assert list(key_paths(Outer)) == [
        "box.size",
        "box.folder",
        "maybe.name",
        "maybe.size",
        "named.*.name",
        "named.*.size",
        "many[].name",
        "many[].size",
    ]
