import pytest

TOKEN = "123456789:" + "D" * 35
TELEGRAM = f'[channels.telegram]\ntoken = "{TOKEN}"\n'
WEBHOOK = 'webhook_url = "https://b.example"\nwebhook_secret = "abcdefgh"\n'


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
        ('[permissions]\ndeadline = "3651d"\n', 2, "permissions.deadline", "3650 days at most"),
        (f'[permissions]\ndeadline = "{"9" * 5000}d"\n', 2, "permissions.deadline", "a duration"),
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
        ('[models.main]\nmodel = "a/b"\nsees_images = "yes"\n', 3, "models.main.sees_images", "'yes'"),
        ('[models.main]\nmodel = "a/b"\nsees_images = 1\n', 3, "models.main.sees_images", "got 1"),
        ('[models.main]\nmodel = "a/b"\nfallbacks = ["main"]\n', 3, "models.main.fallbacks[0]", "itself"),
        ('[models.a]\nmodel = "a/b"\n[models.b]\nmodel = "a/b"\n', None, "agents.lodger.model", "one of a, b"),
        ("[agents.a]\n[agents.b]\n" + TELEGRAM, 3, "channels.telegram.agent", "one of a, b"),
        (TELEGRAM + 'agent = "loger"\n', 3, "channels.telegram.agent", 'did you mean "lodger"'),
        (TELEGRAM + 'api_base = "example.com"\n', 3, "channels.telegram.api_base", "https://"),
        ("[channels.telegram]\n", 1, "channels.telegram.token", "is missing"),
        (TELEGRAM + 'webhook_url = "https://b.example"\n', 1, "channels.telegram.webhook_secret", "go together"),
        (TELEGRAM + 'webhook_secret = "abcdefgh"\n', 1, "channels.telegram.webhook_url", "go together"),
        (TELEGRAM + 'webhook_url = "http://b.example"\n', 3, "channels.telegram.webhook_url", "https://"),
        (TELEGRAM + 'webhook_url = "http://127.0.0.1.b.example"\n', 3, "channels.telegram.webhook_url", "https://"),
        (TELEGRAM + 'webhook_url = "b.example"\n', 3, "channels.telegram.webhook_url", "https address"),
        (TELEGRAM + 'webhook_url = "https://b.example:70000"\n', 3, "channels.telegram.webhook_url", "70000"),
        (TELEGRAM + 'webhook_url = "https://b.example/?a=b"\n', 3, "channels.telegram.webhook_url", "a=b"),
        (TELEGRAM + 'webhook_listen = ""\n', 3, "channels.telegram.webhook_listen", "HOST:PORT"),
        (f'{TELEGRAM}{WEBHOOK}webhook_listen = "127.0.0.1:8787"\n', 5, "channels.telegram.webhook_listen",
         "console.listen"),
        ('[access]\nbots = ["999"]\n', 2, "access.bots[0]", "CHANNEL:ID"),
        ('[access]\nowners = ["telegram:9"]\nbots = ["telegram:8", "telegram:9"]\n', 3, "access.bots[1]", "only talks"),
        ('[agents.x]\nqueue_mode = "ster"\n', 2, "agents.x.queue_mode", 'did you mean "steer"'),
        ("[host]\nattachment_limit = 20\n", 2, "host.attachment_limit", '"20MB"'),
        ('[host]\nattachment_limit = "20mb"\n', 2, "host.attachment_limit", "'20mb'"),
        ('[host]\nattachment_limit = "0MB"\n', 2, "host.attachment_limit", "above zero"),
        ('[retention]\ninbox = "47h"\n', 2, "retention.inbox", "2d or more"),
        ("[retention]\nevents = 7\n", 2, "retention.events", '"7d"'),
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
    ("written", "size_bytes"),
    [("1B", 1), ("500kB", 500_000), ("20MB", 20_000_000), ("1GB", 10**9), ("1KiB", 1024), ("20MiB", 20 * 2**20)],
)
def test_a_size_is_read_in_bytes(load, written, size_bytes):
    assert load(f'[host]\nattachment_limit = "{written}"\n').host.attachment_limit == size_bytes


@pytest.mark.parametrize(
    "url", ["https://b.example:8443/hook", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:80/x"]
)
def test_a_webhook_is_reached_by_https_or_on_this_machine(load, url):
    telegram = load(f'{TELEGRAM}webhook_url = "{url}"\nwebhook_secret = "{"s" * 256}"\n').channels.telegram
    assert telegram.webhook_url == url
    assert (telegram.webhook_listen.host, telegram.webhook_listen.port) == ("127.0.0.1", 8788)


@pytest.mark.parametrize("value", ["D" * 257, "D" * 20 + "!", "D" * 20 + "ä", "D" * 20 + "\\n"])
def test_a_webhook_secret_that_telegram_would_refuse_is_refused_unseen(failure, value):
    error = failure(f'{TELEGRAM}webhook_url = "https://b.example"\nwebhook_secret = "{value}"\n')
    assert (error.line, error.key) == (4, "channels.telegram.webhook_secret")
    assert "DDDD" not in str(error)


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
        f'{TELEGRAM}webhook_url = "https://u:{TOKEN}@b.example"\n',
    ],
)
def test_no_error_shows_a_secret(failure, text):
    """C69, C72."""
    assert "D" * 20 not in str(failure(text))
    assert "D" * 20 not in repr(failure(text))
