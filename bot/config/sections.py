"""Tables to dataclasses: the fields of a section are its keys, and every other key is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from bot.config.values import ListOf, Place, closest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")
T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Section(Generic[S]):
    """Reads a table into a section."""

    shape: type[S]

    def __call__(self, value: object, place: Place) -> S:
        return read_section(self.shape, value, place)


@dataclass(frozen=True, slots=True)
class Named(Generic[S]):
    """Reads a table of tables, such as `[models.main]`, into sections by name."""

    shape: type[S]

    def __call__(self, value: object, place: Place) -> Mapping[str, S]:
        if not isinstance(value, dict):
            raise place.wrong("tables by name", value)
        for name in value:
            if _NAME.fullmatch(name) is None:
                raise place.child(name).error("a name has small letters, digits, - and _ only")
        return {name: read_section(self.shape, table, place.child(name)) for name, table in value.items()}


@dataclass(frozen=True, slots=True)
class Converted(Generic[S, T]):
    """Reads a table into a section and makes of it what the model holds."""

    section: Section[S]
    convert: Callable[[S, Place], T]

    def __call__(self, value: object, place: Place) -> T:
        return self.convert(self.section(value, place), place)


def read_section(shape: type[S], value: object, place: Place) -> S:
    """Return `value` as a section.

    A field's reader is the annotation beside its type. A default that is a path is read like a
    written one; a section that is missing is read as an empty table, unless it may be None.

    Raises:
        ConfigError: A key is unknown or missing, or a value is refused.
    """
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    readers = readers_of(shape)
    for key in value:
        if key not in readers:
            hint = closest(key, readers) or f"known here: {', '.join(readers)}"
            raise place.child(key).error("unknown key", hint)
    defaults = _defaults(shape)
    read: dict[str, Any] = {}
    for key, reader in readers.items():
        if key in value:
            read[key] = reader(value[key], place.child(key))
        elif key not in defaults:
            raise place.child(key).error("is missing")
        elif isinstance(defaults[key], Path):
            read[key] = reader(str(defaults[key]), place.child(key))
        elif isinstance(reader, Section) and defaults[key] is not None:
            read[key] = reader({}, place.child(key))
    return shape(**read)


def readers_of(shape: type[object]) -> Mapping[str, Callable[[object, Place], Any]]:
    """Return the readers of a section by key, in the order of its fields."""
    hints = get_type_hints(shape, include_extras=True)
    return {name: get_args(hint)[1] for name, hint in hints.items() if get_origin(hint) is Annotated}


def key_paths(shape: type[object], prefix: str = "") -> Iterator[str]:
    """Yield every key there is, such as `host.data_dir`, `models.*.model`, `permissions.rules[].tool`."""
    for key, reader in readers_of(shape).items():
        yield from _paths_below(reader, f"{prefix}{key}")


def _paths_below(reader: object, path: str) -> Iterator[str]:
    match reader:
        case Section(shape=shape):
            yield from key_paths(shape, f"{path}.")
        case Named(shape=shape):
            yield from key_paths(shape, f"{path}.*.")
        case Converted(section=section):
            yield from _paths_below(section, path)
        case ListOf(item=Section() | Converted() as item):
            yield from _paths_below(item, f"{path}[]")
        case _:
            yield path


def _defaults(shape: type[DataclassInstance]) -> Mapping[str, object]:
    return {
        field.name: field.default
        for field in fields(shape)
        if field.default is not MISSING or field.default_factory is not MISSING
    }
