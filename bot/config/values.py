"""Readers of single values: from what TOML gives to what the model holds, or a clear refusal."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.config.errors import ConfigError
from bot.config.positions import KeyPath, nearest_position
from bot.config.secrets import Secret, SecretMissing, SecretSources, expanded
from bot.config.syntax import Document

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_SHOWN_CHARS = 60
_DURATION = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")
_LONGEST_DURATION = timedelta(days=3650)
_SIZE = re.compile(r"(\d{1,9})(B|kB|MB|GB|KiB|MiB|GiB)")
_SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_PUBLIC_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>[^\s/?#:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?(?:/[^\s?#]*)?"
)
_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]+):(?P<port>\d{1,5})")
_LAST_PORT = 65_535
_IDENTITY = re.compile(r"[a-z]+:[^\s:][^\s]*")
_PERSON_ID = re.compile(r"[a-z]+-[0-9a-z]{20}")
_APPROVER_WORDS = ("owner", "operator", "requester")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in the configuration a value stands, and what it takes to read it."""

    document: Document
    sources: SecretSources
    path: KeyPath = ()

    @property
    def key(self) -> str:
        """Return the path as people write it: `permissions.rules[0].match`."""
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return text.removeprefix(".")

    def child(self, key: str | int) -> Place:
        """Return the place of a key or element below this one."""
        return replace(self, path=(*self.path, key))

    def error(self, message: str, suggestion: str = "") -> ConfigError:
        """Return the error to raise for this place."""
        position = nearest_position(self.document.positions, self.path)
        return ConfigError(
            message,
            file=self.document.file,
            line=None if position is None else position.line,
            column=None if position is None else position.column,
            key=self.key,
            suggestion=suggestion,
        )

    def wrong(self, expected: str, value: object, suggestion: str = "") -> ConfigError:
        """Return the error for a value of the wrong kind, which it shows."""
        return self.error(f"expected {expected}, got {shown(value)}", suggestion)


Reader: TypeAlias = Callable[[object, Place], T]


@dataclass(frozen=True, slots=True)
class ListOf(Generic[T]):
    """Reads a list whose elements one reader reads."""

    item: Reader[T]

    def __call__(self, value: object, place: Place) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise place.wrong("a list", value, "write it in square brackets: [ ... ]")
        return tuple(self.item(element, place.child(number)) for number, element in enumerate(value))


@dataclass(frozen=True, slots=True)
class Choice(Generic[E]):
    """Reads one of the words of an enumeration."""

    words: type[E]

    def __call__(self, value: object, place: Place) -> E:
        known = [word.value for word in self.words]
        if isinstance(value, str) and value in known:
            return self.words(value)
        wanted = f"one of {', '.join(known)}"
        raise place.wrong(wanted, value, closest(value, known) if isinstance(value, str) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenAddress:
    """Where a server listens; port 0 takes a free one."""

    host: str
    port: int


def text(value: object, place: Place) -> str:
    """Read a text, which may be empty."""
    if not isinstance(value, str):
        raise place.wrong("a text", value, 'a text stands in quotes: "..."')
    return value


def filled_text(value: object, place: Place) -> str:
    """Read a text that says something."""
    if not text(value, place).strip():
        raise place.error("must not be empty")
    return text(value, place)


def count(value: object, place: Place) -> int:
    """Read a whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise place.wrong("a whole number from 0", value)
    return value


def money(value: object, place: Place) -> float:
    """Read an amount from 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise place.wrong("an amount from 0", value)
    return float(value)


def duration(value: object, place: Place) -> timedelta:
    """Read a duration such as `24h`, `15m` or `1h30m`; never a bare number."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise place.wrong("a duration", value, 'write it as "90s", "15m", "24h" or "7d"')
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not timedelta(0) < length <= _LONGEST_DURATION:
        raise place.wrong(f"a duration above zero, of {_LONGEST_DURATION.days} days at most", value)
    return length


def size(value: object, place: Place) -> int:
    """Read a size such as `20MB` or `512KiB` and return it in bytes; never a bare number."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise place.wrong("a size", value, 'write it as "500kB", "20MB" or "20MiB"')
    size_bytes = int(match[1]) * _SIZE_UNITS[match[2]]
    if not size_bytes:
        raise place.wrong("a size above zero", value)
    return size_bytes


def directory(value: object, place: Place) -> Path:
    """Read a path: `~` is the home directory, a relative one starts at the configuration's folder."""
    path = filled_text(value, place)
    if "\0" in path or (path.startswith("~") and path != "~" and not path.startswith("~/")):
        raise place.wrong("a path", value, "only ~/ stands for a home directory")
    return place.sources.folder / expanded(path, place.sources.home)


def optional_directory(value: object, place: Place) -> Path | None:
    """Read a path; an empty text is none."""
    return None if value == "" else directory(value, place)


def address(value: object, place: Place) -> str:
    """Read the base address of a server; an empty text is the default one."""
    url = text(value, place)
    if url and not url.startswith(("http://", "https://", "ws://", "wss://")):
        raise place.wrong("an address that begins with https:// or http://", value)
    return url


def public_address(value: object, place: Place) -> str:
    """Read the https address at which others reach this host; an empty text is none.

    Plain http is for a platform on this very machine.
    """
    url = text(value, place)
    if not url:
        return ""
    if "@" in url:
        # Not shown: what stands before the @ may be a password.
        raise place.error("must not hold a name or a password")
    match = _PUBLIC_ADDRESS.fullmatch(url)
    if match is None or int(match["port"] or 0) > _LAST_PORT:
        raise place.wrong("an https address", value, 'for example "https://bot.example.com/telegram"')
    if match["scheme"] == "http" and not _is_loopback(match["host"].strip("[]")):
        raise place.wrong("an address that begins with https://", value)
    return url


def listen(value: object, place: Place) -> ListenAddress | None:
    """Read `HOST:PORT`; an empty text is none."""
    return None if value == "" else listen_address(value, place)


def listen_address(value: object, place: Place) -> ListenAddress:
    """Read `HOST:PORT`."""
    match = _LISTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > _LAST_PORT:
        raise place.wrong("HOST:PORT", value, 'for example "127.0.0.1:8787"')
    return ListenAddress(host=match["host"].strip("[]"), port=int(match["port"]))


def flag(value: object, place: Place) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise place.wrong("true or false", value)
    return value


def zone(value: object, place: Place) -> str:
    """Read the name of a time zone."""
    name = filled_text(value, place)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise place.wrong("the name of a time zone", value, 'for example "Europe/Berlin" or "UTC"') from None
    return name


def identity(value: object, place: Place) -> str:
    """Read a person on a platform: `telegram:111`, `slack:T0TEAM/U0ALICE`, `discord:7001`."""
    if not isinstance(value, str) or _IDENTITY.fullmatch(value) is None:
        raise place.wrong("a person as CHANNEL:ID", value, 'for example "telegram:111"')
    if value.startswith("slack:") and "/" not in value:
        # The same user id can be somebody else's in another workspace.
        raise place.wrong("a person of a workspace as slack:TEAM/USER", value, 'for example "slack:T0TEAM/U0ALICE"')
    return value


def approver(value: object, place: Place) -> str:
    """Read who may approve: a role word, `role:NAME`, or a person."""
    word = text(value, place)
    if word in _APPROVER_WORDS or (word.startswith("role:") and word != "role:"):
        return word
    if _IDENTITY.fullmatch(word) or _PERSON_ID.fullmatch(word):
        return word
    wanted = "owner, operator, requester, role:NAME or a person as CHANNEL:ID"
    raise place.wrong(wanted, value, closest(word, _APPROVER_WORDS))


def secret(value: object, place: Place) -> Secret:
    """Read a secret: a reference table, or the value itself. No error shows the value."""
    if isinstance(value, str):
        if not value.strip():
            raise place.error("must not be empty", 'leave it out, or write { env = "NAME" }')
        return Secret(value)
    if not isinstance(value, dict):
        raise place.error(f"expected a secret, got {_kind(value)}", 'write { env = "NAME" }, or a text in quotes')
    readers = {
        "env": place.sources.from_env,
        "file": place.sources.from_file,
        "keyring": place.sources.from_keyring,
    }
    if len(value) != 1 or not set(value) <= set(readers):
        unknown = next((key for key in value if key not in readers), "")
        message = f"unknown form {unknown!r}" if unknown else "a secret has exactly one form"
        raise place.error(message, closest(unknown, readers) or "env, file or keyring")
    ((form, name),) = value.items()
    try:
        return readers[form](filled_text(name, place.child(form)))
    except SecretMissing as error:
        raise place.error(str(error)) from error


def closest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean "..."?` for the nearest known word, or "" where none is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f'did you mean "{near[0]}"?' if near else ""


def shown(value: object) -> str:
    """Return a value as an error shows it: short, and its kind alone where it has parts."""
    if isinstance(value, dict | list):
        return _kind(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    written = repr(value) if isinstance(value, str) else str(value)
    return written if len(written) <= _SHOWN_CHARS else f"{written[:_SHOWN_CHARS]}..."


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _kind(value: object) -> str:
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (dict, "a table"),
        (list, "a list"),
        (bool, "true or false"),
        ((int, float), "a number"),
        ((datetime, date, time), "a date or time"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "a text")
