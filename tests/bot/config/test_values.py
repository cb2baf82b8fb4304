import pytest

TOKEN = "123456789:" + "D" * 35
TELEGRAM = f'[channels.telegram]\ntoken = "{TOKEN}"\n'


@pytest.mark.parametrize(
    ("text", "line", "key", "told"),
    [
        ('[agents.helper]\nmodle = "x"\n', 2, "agents.helper.modle", 'did you mean "model"'),
        ('[chanels.slack]\nbot_token = "x"\n', 1, "chanels", 'did you mean "channels"'),
        ("[channels.slak]\n", 1, "channels.slak", 'did you mean "slack"'),
        ("\n[access]\nallow = 111\n", 3, "access.allow", "got 111"),
        ("[access]\nallow = [111]\n", 2, "access.allow[0]", "CHANNEL:ID"),
        ('[access]\nowners = ["alice"]\n', 2, "access.owners[0]", "'alice'"),
        ("[permissions]\ndeadline = 300\n", 2, "permissions.deadline", '"15m"'),
        ('[permissions]\ndeadline = "5 minutes"\n', 2, "permissions.deadline", "'5 minutes'"),
        ('[permissions]\ndeadline = "0s"\n', 2, "permissions.deadline", "above zero"),
        ('[permissions]\nremind_after = "25h"\n', 2, "permissions.remind_after", "shorter"),
        ('[permissions]\napprovers = ["onwer"]\n', 2, "permissions.approvers[0]", 'did you mean "owner"'),
        ('[permissions]\napprovers = ["everybody"]\n', 2, "permissions.approvers[0]", "'everybody'"),
        ('[permissions]\nrules = [{ tool = "shell", match = "a | b", action = "allow" }]\n', 2,
         "permissions.rules[0].match", "plain command"),
        ('[permissions]\nrules = [{ tool = "shell", action = "alow" }]\n', 2,
         "permissions.rules[0].action", 'did you mean "allow"'),
        ('[permissions]\nrules = [{ action = "allow" }]\n', 2, "permissions.rules[0].tool", "is missing"),
        ('[[permissions.rules]]\ntool = "a"\naction = "deny"\n[[permissions.rules]]\ntool = "b"\nactoin = "deny"\n', 6,
         "permissions.rules[1].actoin", 'did you mean "action"'),
        ('[agents.x]\npermission_mode = "fast"\n', 2, "agents.x.permission_mode", "'fast'"),
        ('[agents.x]\nmodel = "mian"\n', 2, "agents.x.model", 'did you mean "main"'),
        ("[agents.X]\n", 1, "agents.X", "small letters"),
        ("agents = 1\n", 1, "agents", "got 1"),
        ('host = "x"\n', 1, "host", "a table"),
        ("[models.main]\n", 1, "models.main.model", "is missing"),
        ('[models.main]\nmodel = " "\n', 2, "models.main.model", "empty"),
        ('[models.main]\nmodel = "a/b"\nwindow_tokens = "8k"\n', 3, "models.main.window_tokens", "'8k'"),
        ('[models.main]\nmodel = "a/b"\nwindow_tokens = -1\n', 3, "models.main.window_tokens", "-1"),
        ('[models.main]\nmodel = "a/b"\nwindow_tokens = true\n', 3, "models.main.window_tokens", "true"),
        ('[models.main]\nmodel = "a/b"\nfallbacks = ["main"]\n', 3, "models.main.fallbacks[0]", "itself"),
        ('[models.a]\nmodel = "a/b"\n[models.b]\nmodel = "a/b"\n', None, "agents.lodger.model", "one of a, b"),
        ("[agents.a]\n[agents.b]\n" + TELEGRAM, 3, "channels.telegram.agent", "one of a, b"),
        (TELEGRAM + 'agent = "loger"\n', 3, "channels.telegram.agent", 'did you mean "lodger"'),
        (TELEGRAM + 'api_base = "example.com"\n', 3, "channels.telegram.api_base", "https://"),
        ("[channels.telegram]\n", 1, "channels.telegram.token", "is missing"),
        ('[channels.slack]\nbot_token = "xoxb-1234567"\n', 1, "channels.slack", "app_token"),
        ('[console]\nlisten = "8787"\n', 2, "console.listen", "HOST:PORT"),
        ('[console]\nlisten = "127.0.0.1:99999"\n', 2, "console.listen", "99999"),
        ('[host]\ntime_zone = "Berlin"\n', 2, "host.time_zone", "Europe/Berlin"),
        ('[host]\ntime_zone = "../etc/passwd"\n', 2, "host.time_zone", "time zone"),
        ('[host]\ndata_dir = "~other/x"\n', 2, "host.data_dir", "home directory"),
        ('[host]\ndatabase_url = "mysql://u:p@h/db"\n', 2, "host.database_url", "postgresql+psycopg"),
        ('[host]\ndata_dir = "a/b"\n[agents.x]\nworkspace = "a"\n', 4, "agents.x.workspace", "host.data_dir"),
        ("[budgets]\nper_day_usd = -1\n", 2, "budgets.per_day_usd", "-1"),
        ("[budgets]\nper_day_usd = nan\n", 2, "budgets.per_day_usd", "nan"),
        ('[logs]\nlevel = "loud"\n', 2, "logs.level", "debug, info"),
    ],
)  # fmt: skip
def test_a_wrong_key_or_value_is_told_with_line_key_path_and_value(failure, text, line, key, told):
    """C72."""
    error = failure(text)
    assert (error.line, error.key) == (line, key)
    assert told in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ('{ enviroment = "X" }', "unknown form 'enviroment'"),
        ("{}", "exactly one"),
        ('{ env = "X", file = "y" }', "exactly one"),
        ("{ env = 1 }", "a text"),
        ("12345678901", "a number"),
        ('""', "empty"),
        ('{ file = "none" }', "cannot be read"),
        ('{ keyring = "none" }', "keyring"),
    ],
)
def test_a_secret_that_leads_nowhere_is_told(failure, reference, told):
    error = failure(f"[channels.telegram]\ntoken = {reference}\n")
    assert told in str(error)
    assert error.key.startswith("channels.telegram.token")
    assert "12345678901" not in str(error)


@pytest.mark.parametrize(
    "value",
    ["Tr0ub$HOME!x", "ab$$cd----", "a$5-------", "${UNCLOSED", "$2y$05$abc", "$HOME_AND_MORE", "pre-${BOT_TOKEN}-post"],
)
def test_a_plain_secret_stays_as_it_is_byte_for_byte(load, value):
    """C70: nothing but the table forms is a reference."""
    settings = load(f"[channels.telegram]\ntoken = '{value}'\n", BOT_TOKEN="x", HOME="/h")
    assert settings.channels.telegram.token.reveal() == value
    assert [line for line in settings.warnings if "plain text" in line and value not in line]


@pytest.mark.parametrize(
    "text",
    [
        f'[channels.telegram]\ntokn = "{TOKEN}"\n',
        f"{TELEGRAM}agent = 5\n",
        f'{TELEGRAM}[channels.discord]\ntoken = "{TOKEN}"\n',
        f'[host]\ndatabase_url = "mysql://u:{TOKEN}@h/db"\n',
        f'[channels.telegram]\ntoken = ["{TOKEN}"]\n',
    ],
)
def test_no_error_shows_a_secret(failure, text):
    """C69, C72."""
    assert "D" * 20 not in str(failure(text))
    assert "D" * 20 not in repr(failure(text))
