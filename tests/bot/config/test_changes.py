from dataclasses import replace
from pathlib import Path

import pytest

from bot.config.changes import adopted, changed_keys

TOKEN = "123456789:" + "D" * 35
TELEGRAM = f'[channels.telegram]\ntoken = "{TOKEN}"\n'
OTHER = TELEGRAM.replace("D", "E")
TWO_AGENTS = "[agents.lodger]\n[agents.second]\n"


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("", "", ()),
        ('[logs]\nlevel = "info"\n', "", ()),
        ("", '[logs]\nlevel = "debug"\n', ("logs.level",)),
        ("", '[access]\nowners = ["telegram:1"]\nbots = ["telegram:9"]\n', ("access.owners", "access.bots")),
        ("", '[agents.lodger]\nqueue_mode = "interrupt"\n', ("agents.lodger.queue_mode",)),
        ("", TWO_AGENTS, ("agents.second",)),
        (TWO_AGENTS, "[agents.lodger]\n", ("agents.second",)),
        ("", TELEGRAM, ("channels.telegram",)),
        (TELEGRAM, OTHER, ("channels.telegram.token",)),
        ("", '[console]\nlisten = "127.0.0.1:9000"\n', ("console.listen",)),
        (
            "",
            '[permissions]\ndeadline = "2h"\nrules = [{ tool = "shell", action = "deny" }]\n',
            ("permissions.rules", "permissions.deadline"),
        ),
        ('[models.main]\nmodel = "a/b"\n', '[models.main]\nmodel = "a/b"\nsees_images = false\n',
         ("models.main.sees_images",)),
        ('[models.main]\nmodel = "a/b"\napi_key = "' + "1" * 9 + '"\n', '[models.main]\nmodel = "a/c"\n',
         ("models.main.model", "models.main.api_key")),
    ],
)  # fmt: skip
def test_what_differs_is_named_by_its_key_and_never_by_its_value(load, before, after, keys):
    assert changed_keys(load(before), load(after)) == keys


def test_where_the_text_came_from_is_no_difference(load):
    settings = load("")
    assert changed_keys(settings, replace(settings, source=Path("/elsewhere"), warnings=("x",))) == ()


@pytest.mark.parametrize(
    "text",
    [
        '[logs]\nlevel = "debug"\n',
        '[models.main]\nmodel = "a/b"\napi_key = "' + "1" * 9 + '"\n',
        TWO_AGENTS,
        '[access]\nowners = ["telegram:1"]\ngroups = "all"\n',
        '[permissions]\ndeadline = "2h"\napprovers = ["owner"]\n',
        "[budgets]\nper_day_usd = 1\n",
        '[retention]\nevents = "1d"\n',
    ],
)
def test_a_running_host_takes_on_what_it_reads_at_use(load, text):
    wanted = load(text)
    assert changed_keys(adopted(load(""), wanted), wanted) == ()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('[host]\ndata_dir = "d"\ntime_zone = "Asia/Tokyo"\n', ("host.data_dir", "host.time_zone")),
        ('[host]\nattachment_limit = "1MB"\n', ("host.attachment_limit",)),
        ('[console]\nlisten = ""\n', ("console.listen",)),
        ('[sandbox]\nnetwork = "full"\n', ("sandbox.network",)),
        (OTHER, ("channels.telegram.token",)),
        (TELEGRAM + '[channels.discord]\ntoken = "' + "1" * 9 + '"\n', ("channels.discord",)),
    ],
)
def test_what_a_running_host_stands_on_waits_for_a_restart(load, text, keys):
    running = load(TELEGRAM)
    wanted = load(text if "telegram" in text else TELEGRAM + text)
    settled = adopted(running, wanted)
    assert changed_keys(running, settled) == ()
    assert changed_keys(settled, wanted) == keys


def test_a_channel_that_is_taken_out_stays_connected_until_the_restart(load):
    settled = adopted(load(TELEGRAM), load(""))
    assert settled.channels.telegram.token.reveal() == TOKEN


def test_another_agent_answers_on_a_connected_channel_at_once(load):
    running = load(f'{TWO_AGENTS}{TELEGRAM}agent = "lodger"\n')
    wanted = load(f'{TWO_AGENTS}{OTHER}agent = "second"\n')
    telegram = adopted(running, wanted).channels.telegram
    assert (telegram.agent, telegram.token.reveal()) == ("second", TOKEN)
