"""Loading the configuration: which file, and what its references lead to.

This is the only place that reads environment variables (beside those that the model library wants
set before it is imported).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.config.checks import check, completed, warnings_of
from bot.config.errors import ConfigError
from bot.config.model import HostSettings, Settings
from bot.config.secrets import KeyringReader, SecretMissing, SecretSources, expanded
from bot.config.sections import read_section
from bot.config.syntax import Document, parse_document, read_document
from bot.config.values import Place

CONFIG_VARIABLE = "LODGER_CONFIG"
FILE_NAME = "config.toml"
KEYRING_SERVICE = "lodger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a configuration is found and read in: variables, the folder names begin at, the keyring."""

    environ: Mapping[str, str]
    folder: Path
    keyring: KeyringReader

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environ["HOME"]) if self.environ.get("HOME") else Path.home()

    @property
    def state(self) -> Path:
        """Where programs of this user keep what should outlive a restart, found without any configuration."""
        named = Path(self.environ.get("XDG_STATE_HOME", ""))
        return named if named.is_absolute() else self.home / ".local" / "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A checked configuration, and the text it was read from: `place` is the root of that."""

    settings: Settings
    place: Place = field(repr=False)

    @property
    def data(self) -> bytes:
        """The text, as it was read; may hold secrets."""
        return self.place.document.data


def surroundings(
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    keyring: KeyringReader | None = None,
) -> Surroundings:
    """Return the surroundings of this process, but for what is given.

    Args:
        environ: Environment variables.
        folder: Where a file is looked for and relative names begin; by default the current one.
        keyring: Reads the keyring; by default the system's, loaded only when a secret refers to it.
    """
    return Surroundings(
        environ=os.environ if environ is None else environ,
        folder=Path.cwd() if folder is None else folder,
        keyring=keyring or _system_keyring,
    )


def load_settings(
    config: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    keyring: KeyringReader | None = None,
) -> Settings:
    """Return the checked configuration; opens no connection and writes nothing.

    `config` is as in `load`, the rest as in `surroundings`.

    Raises:
        ConfigError: A named file is missing, or anything in the file is wrong.
    """
    return load(config, surroundings(environ=environ, folder=folder, keyring=keyring)).settings


def load(config: str | Path | None, around: Surroundings) -> Loaded:
    """Find, read and check the configuration.

    The first of these that is given or exists: `config`, the file that `LODGER_CONFIG` names,
    `config.toml` in the folder, `config.toml` in the default data directory. With none of them,
    and with an empty file, everything is default: the demo model, one agent, no channel.

    Args:
        config: The file that the person named, if any.
        around: Where to look.

    Raises:
        ConfigError: A named file is missing, or anything in the file is wrong.
    """
    return load_file(_find_file(config, around), around)


def load_file(file: Path | None, around: Surroundings, *, data: bytes | None = None) -> Loaded:
    """Read and check one file; without a file everything is default.

    Args:
        file: The file; relative paths in it begin at its folder.
        around: What its references lead to.
        data: Read instead of what stands in the file.

    Raises:
        ConfigError: The file is missing, or anything in it is wrong.
    """
    document = _document(file, data)
    sources = SecretSources(
        environ=around.environ,
        folder=around.folder if file is None else file.parent,
        home=around.home,
        keyring=around.keyring,
    )
    place = Place(document=document, sources=sources)
    settings = replace(
        completed(read_section(Settings, document.table, place), place),
        source=file,
        last_good=None if file is None else last_good_place(file, around),
    )
    check(settings, place)
    return Loaded(settings=replace(settings, warnings=warnings_of(settings)), place=place)


def last_good_place(file: Path, around: Surroundings) -> Path:
    """Return where the text of a file is kept while it works: found by the file's name alone."""
    name = hashlib.sha256(os.fsencode(os.path.normpath(file.absolute()))).hexdigest()[:16]
    return around.state / "lodger" / "last-good" / f"{name}.toml"


def _document(file: Path | None, data: bytes | None) -> Document:
    if file is None:
        return Document()
    return read_document(file) if data is None else parse_document(data, file)


def _find_file(config: str | Path | None, around: Surroundings) -> Path | None:
    named = str(config) if config else around.environ.get(CONFIG_VARIABLE, "")
    if named:
        file = around.folder / expanded(named, around.home)
        if not file.exists():
            origin = "--config" if config else CONFIG_VARIABLE
            raise ConfigError("there is no such file", file=file, suggestion=f"named by {origin}")
        return file
    data_dir = expanded(str(HostSettings().data_dir), around.home)
    return next((file for file in (around.folder / FILE_NAME, data_dir / FILE_NAME) if os.path.lexists(file)), None)


def _system_keyring(name: str) -> str | None:
    # Its backends take a while to load, and few configurations refer to it.
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        raise SecretMissing(f"the keyring cannot be read: {error}") from error
