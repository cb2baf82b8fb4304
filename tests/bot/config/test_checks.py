import pytest

from bot.config.checks import out_of_reach, secret_values
from bot.config.model import GroupTalk
from bot.config.secrets import Secret
from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, ConversationId
from core.contracts.permissions import Subject
from core.contracts.tools import Access
from core.permissions.guards import guard

TOKEN = "123456789:" + "D" * 35
TELEGRAM = f'[channels.telegram]\ntoken = "{TOKEN}"\n'


def test_a_value_that_is_a_variables_name_is_warned_about(load):
    """C70: `${BOT_TOKEN}` is not expanded; doctor says how to write it."""
    settings = load('[channels.telegram]\ntoken = "${BOT_TOKEN}"\n', BOT_TOKEN="x")
    assert settings.channels.telegram.token.reveal() == "${BOT_TOKEN}"
    assert '{ env = "NAME" }' in settings.warnings[0]


def test_a_token_that_is_used_twice_is_refused_with_both_places(failure):
    """C74 A and E."""
    error = failure(f'{TELEGRAM}[channels.discord]\ntoken = {{ env = "T" }}\n', T=TOKEN)
    assert "channels.telegram.token" in str(error)
    assert error.key == "channels.discord.token"
    assert TOKEN not in str(error)


def test_the_settings_never_show_a_secret(load):
    """C69: a startup banner or "config show" prints no token."""
    settings = load(TELEGRAM)
    assert TOKEN not in repr(settings)
    assert isinstance(settings.channels.telegram.token, Secret)
    assert ("channels.telegram.token", TOKEN) in secret_values(settings)


def test_what_works_but_should_change_is_warned_about(load):
    settings = load(
        TELEGRAM + '[models.main]\nmodel = "a/b"\napi_key = "short"\n[permissions]\napprovers = []\n'
        'rules = [{ tool = "shell", match = "ls", action = "ask" }]\n'
    )
    told = "\n".join(settings.warnings)
    assert "channels.telegram.token stands in the file" in told
    assert "models.main.api_key is shorter" in told
    assert "nobody can approve" in told
    assert "always_ask" in told
    assert TOKEN not in told
    assert "short" not in [value for _, value in secret_values(settings)]


def test_how_an_agent_talks_in_groups_has_an_effect(load):
    settings = load('[access]\ngroups = "participate"\n')
    assert settings.access.groups is GroupTalk.PARTICIPATE
    assert settings.warnings == ()


def test_a_webhook_secret_is_a_secret_like_any_other(load):
    secret = "w" * 12
    settings = load(f'{TELEGRAM}webhook_url = "https://b.example"\nwebhook_secret = "{secret}"\n')
    assert ("channels.telegram.webhook_secret", secret) in secret_values(settings)
    assert secret not in repr(settings)


@pytest.mark.parametrize("workspace", [".", "~", "/", "link", "~/.local/state"])
def test_a_workspace_in_which_the_configuration_or_its_copies_stand_is_refused(failure, tmp_path, workspace):
    """C73.4: commands may do what they like in a workspace."""
    (tmp_path / "link").symlink_to(tmp_path)
    error = failure(f'[host]\ndata_dir = "/srv/data"\n[agents.lodger]\nworkspace = "{workspace}"\n')
    assert (error.key, error.line) == ("agents.lodger.workspace", 4)
    assert "no agent may reach" in str(error)


def test_a_workspace_that_holds_either_end_of_a_linked_configuration_is_refused(failure, tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "config.toml").symlink_to(tmp_path / "ws" / "real.toml")
    assert "the configuration file" in str(failure('[agents.lodger]\nworkspace = "ws"\n'))


def test_the_configuration_and_its_copies_are_out_of_every_agents_reach(load, tmp_path):
    """C73.4."""
    settings = load("")
    assert out_of_reach(settings) == (
        settings.host.data_dir,
        tmp_path / "config.toml",
        settings.last_good.parent,
    )


def test_no_mode_and_no_grant_lets_a_file_tool_touch_the_configuration(load, tmp_path):
    """C73.4."""
    settings = load("")
    subject = Subject(
        agent_id=AgentId("a"),
        conversation_id=ConversationId("c"),
        mode=PermissionMode.UNRESTRICTED,
        workspace=tmp_path / "ws",
        forbidden=out_of_reach(settings),
        granted=(tmp_path,),
    )
    assert guard(Access(writes=(tmp_path / "other.toml",)), subject) is None
    for access in (Access(writes=(settings.source,)), Access(reads=(settings.source,))):
        assert guard(access, subject) is not None
