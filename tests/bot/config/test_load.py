import sys
from datetime import timedelta
from pathlib import Path

import pytest

from bot.config.checks import secret_values
from bot.config.errors import ConfigError
from bot.config.load import load_settings
from core.contracts.agents import PermissionMode, QueueMode
from core.contracts.permissions import Action

TOKEN = "123456789:" + "D" * 35
TELEGRAM = f'[channels.telegram]\ntoken = "{TOKEN}"\n'


def test_without_a_file_everything_is_default(tmp_path):
    settings = load_settings(environ={"HOME": "/home/someone"}, folder=tmp_path)
    assert settings.source is None
    assert settings.host.data_dir == Path("/home/someone/.local/share/lodger")
    assert settings.host.database_url is None
    assert (settings.console.listen.host, settings.console.listen.port) == ("127.0.0.1", 8787)
    assert {name: model.model for name, model in settings.models.items()} == {"main": "scripted/demo"}
    assert list(settings.agents) == ["lodger"]
    assert settings.agents["lodger"].model == "main"
    assert settings.agents["lodger"].permission_mode is PermissionMode.ASK
    assert settings.agents["lodger"].workspace == Path("/home/someone/lodger-workspace")
    assert settings.channels.telegram is settings.channels.slack is settings.channels.discord is None
    assert settings.permissions.approvers == ("owner", "operator")
    assert settings.permissions.deadline == timedelta(hours=24)
    assert settings.host.attachment_limit == 20_000_000
    assert settings.access.bots == ()
    assert settings.agents["lodger"].queue_mode is QueueMode.STEER
    assert settings.retention.events == settings.retention.sessions == timedelta(days=7)
    assert settings.retention.inbox == settings.retention.attachments == settings.retention.overflow
    assert settings.warnings == ()


def test_an_empty_file_is_all_default(load, tmp_path):
    """C72."""
    assert load("").agents == load_settings(environ={"HOME": "/home/someone"}, folder=tmp_path).agents
    assert load("# only a comment").source == tmp_path / "config.toml"


def test_the_first_file_of_the_four_places_is_read(tmp_path):
    here, home = tmp_path / "here", tmp_path / "home"
    data = home / ".local" / "share" / "lodger"
    here.mkdir()
    data.mkdir(parents=True)
    places = {
        data / "config.toml": 'time_zone = "Asia/Tokyo"',
        here / "config.toml": 'time_zone = "Europe/Berlin"',
        tmp_path / "by_variable.toml": 'time_zone = "Europe/Paris"',
        tmp_path / "named.toml": 'time_zone = "Europe/Rome"',
    }
    for file, line in places.items():
        file.write_text(f"[host]\n{line}\n")
    environ = {"HOME": str(home), "LODGER_CONFIG": str(tmp_path / "by_variable.toml")}

    def zone(config=None, **changes):
        return load_settings(config, environ=environ | changes, folder=here).host.time_zone

    assert zone(tmp_path / "named.toml") == "Europe/Rome"
    assert zone("../named.toml") == "Europe/Rome"
    assert zone() == "Europe/Paris"
    assert zone(LODGER_CONFIG="") == "Europe/Berlin"
    (here / "config.toml").unlink()
    assert zone(LODGER_CONFIG="") == "Asia/Tokyo"


def test_a_named_file_that_is_missing_stops_the_start(tmp_path):
    """C72."""
    with pytest.raises(ConfigError, match="--config"):
        load_settings("none.toml", environ={}, folder=tmp_path)
    with pytest.raises(ConfigError, match="LODGER_CONFIG"):
        load_settings(environ={"LODGER_CONFIG": "none.toml"}, folder=tmp_path)


def test_a_found_file_that_cannot_be_read_is_not_passed_over(tmp_path):
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="directory"):
        load_settings(environ={"HOME": str(tmp_path)}, folder=tmp_path)


def test_everything_of_the_design_can_be_set(load, tmp_path):
    settings = load(
        """
        [host]
        data_dir = "data"
        database_url = ""
        [models.main]
        model = "anthropic/claude-sonnet-4-5"
        api_key = { env = "ANTHROPIC_API_KEY" }
        fallbacks = ["second"]
        [models.second]
        model = "openai/m"
        api_base = "http://127.0.0.1:1/v1"
        client = "direct"
        window_tokens = 8000
        [agents.helper]
        permission_mode = "strict"
        workspace = "ws"
        [channels.slack]
        bot_token = { env = "SLACK_BOT_TOKEN" }
        app_token = { keyring = "bot" }
        [access]
        owners = ["telegram:111", "slack:T0TEAM/U0ALICE"]
        [permissions]
        rules = [{ tool = "shell", match = "git status", action = "allow" }]
        approvers = ["role:admins", "requester", "discord:7001"]
        deadline = "1h30m"
        remind_after = "90s"
        [sandbox]
        network = "full"
        [budgets]
        per_day_usd = 3
        [retention]
        inbox = "2d"
        """,
        ANTHROPIC_API_KEY="key-of-anthropic",
        SLACK_BOT_TOKEN="xoxb-" + "1" * 20,
    )
    assert settings.host.data_dir == tmp_path / "data"
    assert settings.agents["helper"].model == "main"
    assert settings.agents["helper"].workspace == tmp_path / "ws"
    assert settings.channels.slack.agent == "helper"
    assert settings.channels.slack.app_token.reveal() == "from-the-keyring"
    assert settings.models["second"].settings("second").window_tokens == 8000
    assert settings.models["main"].settings("main").fallbacks == ("second",)
    assert settings.permissions.rules[0].text == "shell: git status"
    assert settings.permissions.rules[0].action is Action.ALLOW
    assert settings.permissions.deadline == timedelta(minutes=90)
    assert settings.budgets.per_day_usd == 3.0
    assert settings.retention.inbox == timedelta(days=2)
    assert dict(secret_values(settings))["models.main.api_key"] == "key-of-anthropic"
    assert "from-the-keyring" in {value for _, value in secret_values(settings)}
    assert any("budgets has no effect yet" in warning for warning in settings.warnings)


@pytest.mark.parametrize(("line", "said"), [("", None), ("sees_images = true", True), ("sees_images = false", False)])
def test_whether_a_model_sees_images_reaches_the_core_as_it_was_said(load, line, said):
    settings = load(f'[models.main]\nmodel = "openai/my-own-model"\n{line}\n')
    assert settings.models["main"].settings("main").sees_images is said


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[host]\ndatabase_url = "postgresql+psycopg://u:pass%20word@h/db"', "host.database_url"),
        ('[sandbox]\nnetwork = "allowlist"', "sandbox.network"),
    ],
)
def test_what_this_release_cannot_do_safely_is_refused_and_not_ignored(failure, text, key):
    error = failure(text)
    assert key in str(error)
    assert "later release" in str(error)
    assert "pass%20word" not in str(error)


@pytest.mark.parametrize("environ", [{}, {"BOT_TOKEN": ""}, {"BOT_TOKEN": "\n"}])
def test_a_missing_or_empty_variable_stops_the_start_with_its_name_and_key(failure, environ):
    """C70."""
    error = failure('[channels.telegram]\ntoken = { env = "BOT_TOKEN" }\n', **environ)
    assert "BOT_TOKEN" in str(error)
    assert error.key == "channels.telegram.token"
    assert error.line == 2


def test_loading_never_writes_the_file(load, tmp_path):
    """C70: the host never saves its configuration."""
    text = '# mine\n[channels.telegram]\ntoken = { env = "BOT_TOKEN" }  # kept\n'
    load(text, BOT_TOKEN=TOKEN)
    assert (tmp_path / "config.toml").read_text() == text


def test_the_environment_of_the_process_is_read_where_none_is_given(monkeypatch, tmp_path):
    (tmp_path / "c.toml").write_text('[channels.telegram]\ntoken = { env = "LODGER_TEST_TOKEN" }\n')
    monkeypatch.setenv("LODGER_TEST_TOKEN", TOKEN)
    monkeypatch.setenv("LODGER_CONFIG", str(tmp_path / "c.toml"))
    assert load_settings().channels.telegram.token.reveal() == TOKEN


def test_the_keyring_library_is_loaded_only_for_a_keyring_reference(load, monkeypatch):
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    load(TELEGRAM)
    assert "keyring" not in sys.modules
