from bot.config.checks import secret_values
from bot.config.secrets import Secret

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
