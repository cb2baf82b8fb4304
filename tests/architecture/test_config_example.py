"""The example configuration lists every key there is, and no other."""

import re
import tomllib
from pathlib import Path

from bot.config.load import load_settings
from bot.config.model import Settings
from bot.config.sections import key_paths, readers_of

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
_SWITCHED_OFF = re.compile(r"^# (?=\[channels\.|[a-z_]+ = )", re.MULTILINE)
_NAMED_TABLES = {"models", "agents"}


def switched_on(text):
    return _SWITCHED_OFF.sub("", text)


def keys_of(table, path=""):
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for element in value:
                yield from keys_of(element, f"{here}[]")
        elif here in _NAMED_TABLES:
            for named in value.values():
                yield from keys_of(named, f"{here}.*")
        elif isinstance(value, dict) and not set(value) <= {"env", "file", "keyring"}:
            yield from keys_of(value, here)
        else:
            yield here


def test_the_example_lists_every_key_and_no_other():
    listed = set(keys_of(tomllib.loads(switched_on(EXAMPLE.read_text()))))
    known = set(key_paths(Settings))
    assert len(known) > 40
    assert listed == known


def test_the_example_loads_as_it_stands_without_any_environment(tmp_path):
    settings = load_settings(EXAMPLE, environ={"HOME": str(tmp_path)})
    assert settings.models["main"].model == "scripted/demo"
    assert settings.warnings == ()


def test_the_example_shows_the_defaults(tmp_path):
    example = load_settings(EXAMPLE, environ={"HOME": str(tmp_path)})
    default = load_settings(environ={"HOME": str(tmp_path)}, folder=tmp_path)
    sections = set(readers_of(Settings)) - {"permissions"}  # whose rule is an example, not a default
    assert len(sections) > 9
    for section in sections:
        assert getattr(example, section) == getattr(default, section)
    assert example.permissions.approvers == default.permissions.approvers
    assert example.permissions.deadline == default.permissions.deadline
    assert example.permissions.remind_after == default.permissions.remind_after


def test_the_example_loads_with_everything_switched_on(tmp_path):
    apart = "app_token|webhook_secret"  # which go with another key only, or not with it
    text = re.sub(rf"^({apart}) = .*\n", "", switched_on(EXAMPLE.read_text()), flags=re.MULTILINE)
    names = re.findall(r'env = "([A-Z_]+)"', re.sub(r"(?m)^#.*$", "", text))
    assert len(names) >= 4
    file = tmp_path / "config.toml"
    file.write_text(text)
    environ = {"HOME": str(tmp_path)} | {name: f"value of {name}" for name in names}
    settings = load_settings(file, environ=environ)
    assert settings.channels.telegram.token.reveal() == "value of TELEGRAM_BOT_TOKEN"
    assert settings.channels.slack.agent == "lodger"
    assert settings.channels.discord.gateway_url == ""


def test_every_key_of_the_example_is_explained():
    lines = EXAMPLE.read_text().splitlines()
    explained = set()
    for number, line in enumerate(lines):
        match = re.match(r"(?:# )?([a-z_]+) = ", line)
        if match and lines[number - 1].startswith("#"):
            explained.add(match[1])
    assert explained >= {"data_dir", "level", "listen", "model", "workspace", "token", "owners", "approvers", "kind"}
