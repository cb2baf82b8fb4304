"""`lodger init`: what it asks, what it writes, and that the host takes it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.config.first import PLATFORMS, FirstAnswers, first_config, variables_of
from bot.config.load import load_settings

ROOT = Path(__file__).resolve().parents[3]
ALL = ["anthropic/claude-sonnet-4-5", "", "Europe/Berlin", "y", "y", "Y", "111", "T0TEAM/U0ALICE", "7001", "4711"]


def init(*words: str, says: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the command for somebody who types lines; what is asked behind the last one meets the end of the input."""
    command = [sys.executable, "-m", "bot.cli.main", "init", *words]
    return subprocess.run(
        command, input="".join(f"{line}\n" for line in says), capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_everything_at_once_is_a_configuration_that_the_host_takes(tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    ended = init(str(file), says=ALL)
    assert (ended.returncode, ended.stderr) == (0, "")
    told = ended.stdout
    for number, variable in enumerate(
        ("ANTHROPIC_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "DISCORD_BOT_TOKEN")
    ):
        assert variable in told
        monkeypatch.setenv(variable, f"123456789:{'abcde'[number] * 35}")
    settings = load_settings(str(file))
    assert settings.models["main"].model == "anthropic/claude-sonnet-4-5"
    assert settings.access.owners == ("telegram:111", "slack:T0TEAM/U0ALICE", "discord:7001")
    assert settings.host.time_zone == "Europe/Berlin"
    assert file.stat().st_mode & 0o077 == 0
    described = json.loads((tmp_path / "slack-manifest.json").read_text())
    assert described["settings"]["socket_mode_enabled"] is True
    assert "client_id=4711" in told
    assert told.index("lodger doctor") < told.index("lodger up")


def test_enter_all_the_way_is_the_demo(tmp_path):
    ended = init(str(tmp_path / "new" / "config.toml"), says=[""] * 5)
    assert ended.returncode == 0
    settings = load_settings(str(tmp_path / "new" / "config.toml"))
    assert settings.models["main"].model == "scripted/demo"
    assert "Set " not in ended.stdout


def test_what_cannot_be_read_is_asked_again(tmp_path):
    lines = ["no slash", "", "Atlantis/Centre", "", "perhaps", "y", "n", "n", "alice", "111"]
    ended = init(str(tmp_path / "config.toml"), says=lines)
    assert ended.returncode == 0
    assert ended.stdout.count("Telegram user id") == 2
    assert load_variables(tmp_path) == "TELEGRAM_BOT_TOKEN"


def load_variables(folder) -> str:
    (line,) = [line for line in (folder / "config.toml").read_text().splitlines() if "env" in line]
    return line.split('"')[1]


def test_a_file_that_exists_stays_unless_told_otherwise(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("# mine")
    refused = init(str(file), says=[""] * 5)
    assert (refused.returncode, refused.stdout, file.read_text()) == (2, "", "# mine")
    assert "--force" in refused.stderr
    assert init("--force", str(file), says=[""] * 5).returncode == 0
    assert file.read_text() != "# mine"


def test_an_input_that_ends_writes_nothing(tmp_path):
    ended = init(str(tmp_path / "config.toml"), says=["", ""])
    assert ended.returncode == 2
    assert not (tmp_path / "config.toml").exists()
    assert "Nothing was written" in ended.stderr


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    ended = init(str(tmp_path / "file" / "config.toml"), says=[""] * 5)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "cannot be written" in ended.stderr


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_platform_names_its_variables(platform):
    answers = FirstAnswers(model="", key_variable="X", platforms=(platform,), owners=(), time_zone="UTC")
    variables = variables_of(answers)
    assert variables
    assert all(f'{{ env = "{variable}" }}' in first_config(answers) for variable in variables)
