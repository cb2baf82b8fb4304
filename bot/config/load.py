"""Loading the configuration: which file, and what its references lead to.

This is the only place that reads environment variables (beside those that the model library wants
set before it is imported).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bot.config.checks import check, completed, warnings_of
from bot.config.errors import ConfigError
from bot.config.model import HostSettings, Settings
from bot.config.secrets import KeyringReader, SecretMissing, SecretSources, expanded
from bot.config.sections import read_section
from bot.config.syntax import Document, read_document
from bot.config.values import Place

CONFIG_VARIABLE = "LODGER_CONFIG"
FILE_NAME = "config.toml"
KEYRING_SERVICE = "lodger"


def load_settings(
    config: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    keyring: KeyringReader | None = None,
) -> Settings:
    """Return the checked configuration; opens no connection and writes nothing.

    The first of these that is given or exists: `config`, the file that `LODGER_CONFIG` names,
    `config.toml` in `folder` (the current one), `config.toml` in the default data directory. With
    none of them, and with an empty file, everything is default: the demo model, one agent, no
    channel.

    Args:
        config: The file that the person named, if any.
        environ: Environment variables; by default those of the process.
        folder: Where a file is looked for and relative names begin; by default the current one.
        keyring: Reads the keyring; by default the system's, loaded only when a secret refers to it.

    Raises:
        ConfigError: A named file is missing, or anything in the file is wrong.
    """
    variables = os.environ if environ is None else environ
    home = Path(variables["HOME"]) if variables.get("HOME") else Path.home()
    here = Path.cwd() if folder is None else folder
    file = _find_file(config, variables, here, home)
    document = Document() if file is None else read_document(file)
    sources = SecretSources(
        environ=variables,
        folder=here if file is None else file.parent,
        home=home,
        keyring=keyring or _system_keyring,
    )
    place = Place(document=document, sources=sources)
    settings = completed(read_section(Settings, document.table, place), place)
    check(settings, place)
    return replace(settings, source=file, warnings=warnings_of(settings))


def _find_file(config: str | Path | None, environ: Mapping[str, str], folder: Path, home: Path) -> Path | None:
    named = str(config) if config else environ.get(CONFIG_VARIABLE, "")
    if named:
        file = folder / expanded(named, home)
        if not file.exists():
            origin = "--config" if config else CONFIG_VARIABLE
            raise ConfigError("there is no such file", file=file, suggestion=f"named by {origin}")
        return file
    data_dir = expanded(str(HostSettings().data_dir), home)
    return next((file for file in (folder / FILE_NAME, data_dir / FILE_NAME) if os.path.lexists(file)), None)


def _system_keyring(name: str) -> str | None:
    # Its backends take a while to load, and few configurations refer to it.
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as error:
        raise SecretMissing(f"the keyring cannot be read: {error}") from error
