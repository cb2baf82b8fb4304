"""Secret values of the configuration: given by reference, masked wherever they are shown.

Only the table forms are references: `{ env = "NAME" }`, `{ file = "PATH" }`, `{ keyring = "NAME" }`.
A plain text is the value itself, byte for byte: nothing in it is ever expanded, neither `$NAME`
nor `${NAME}`, and what a reference yields is not looked into either. One thing is taken off what a
reference yields: line ends at its end, which editors and shells leave there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

PLAIN = "plain text"

KeyringReader: TypeAlias = Callable[[str], str | None]
"""Returns the value stored under a name, or None."""


class Secret:
    """A value that shows itself to nobody but the caller of `reveal`."""

    __slots__ = ("_value", "source")

    def __init__(self, value: str, *, source: str = PLAIN) -> None:
        self._value = value
        self.source = source
        """Where it came from, such as `env BOT_TOKEN`: for people, holds no secret."""

    def reveal(self) -> str:
        """Return the value."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class SecretMissing(Exception):
    """A reference leads to nothing; the text says which, and holds no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSources:
    """Where references lead: the environment, files (relative to `folder`) and the keyring."""

    environ: Mapping[str, str]
    folder: Path
    home: Path
    keyring: KeyringReader

    def from_env(self, name: str) -> Secret:
        """Return the value of an environment variable, or raise `SecretMissing`."""
        if name not in self.environ:
            raise SecretMissing(f"the environment variable {name} is not set")
        return _filled(self.environ[name], f"env {name}", f"the environment variable {name} is empty")

    def from_file(self, name: str) -> Secret:
        """Return the content of a file, or raise `SecretMissing`."""
        path = self.folder / expanded(name, self.home)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SecretMissing(f"the file {str(path)!r} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SecretMissing(f"the file {str(path)!r} is not UTF-8 text") from error
        return _filled(text, f"file {path}", f"the file {str(path)!r} is empty")

    def from_keyring(self, name: str) -> Secret:
        """Return what the keyring stores for the service `lodger` under `name`, or raise `SecretMissing`."""
        value = self.keyring(name)
        if value is None:
            raise SecretMissing(f"the keyring has no entry {name!r} for the service 'lodger'")
        return _filled(value, f"keyring {name}", f"the keyring's entry {name!r} is empty")


def expanded(path: str, home: Path) -> Path:
    """Return a path with a leading `~` replaced; nothing else is expanded."""
    if path == "~" or path.startswith("~/"):
        return home / path[2:]
    return Path(path)


def _filled(value: str, source: str, complaint: str) -> Secret:
    stripped = value.rstrip("\r\n")
    if not stripped.strip():
        raise SecretMissing(complaint)
    return Secret(stripped, source=source)
