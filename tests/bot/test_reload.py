"""C73: the configuration is read again under a running host, as a whole or not at all."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.config.checks import secret_values
from bot.config.last_good import keep_last_good, load_again, load_or_last_good
from bot.config.live import LiveSettings, ModelKeys
from bot.config.load import Loaded, load, surroundings
from bot.config.model import Settings
from bot.folders import UnusableFolder
from bot.reload import Reloader, ReloadPorts
from core.contracts.errors import MemoryRefused, StorageFull
from core.secrets.redaction import ValueRedactor

SECRET = "sk-" + "s" * 20
TELEGRAM = '[channels.telegram]\ntoken = { env = "BOT_TOKEN" }\n'
GOOD = f'[access]\nowners = ["telegram:111"]\n{TELEGRAM}'
BOUND = 10.0


@dataclass
class Running:
    """A host as far as a reload sees it; `done` is what a reload did to it, in order; `seen`, how
    a new key looked when agents were made, and which key their model had."""

    file: Path
    live: LiveSettings
    redactor: ValueRedactor
    keys: ModelKeys
    environ: dict[str, str]
    done: list[str] = field(default_factory=list)
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    agents_fail: Exception | None = None
    gate: threading.Event | None = None
    loading: threading.Event = field(default_factory=threading.Event)

    def reloader(self) -> Reloader:
        return Reloader(
            self.live,
            ReloadPorts(
                load=self._load,
                redact=self.redactor.add,
                keys=self.keys,
                agents=self._agents,
                log=lambda logs: self.done.append(f"log {logs.level}"),
                keep=self._keep,
                mask=self.redactor.mask,
            ),
        )

    def _load(self, source: Path | None) -> Loaded:
        self.loading.set()
        if self.gate is not None:
            assert self.gate.wait(BOUND)
        return load_again(source, surroundings(environ=self.environ, folder=self.file.parent))

    async def _agents(self, settings: Settings) -> None:
        self.done.append(f"agents {' '.join(settings.agents)}")
        model = settings.models["main"].settings("main")
        self.seen.append((self.redactor.mask(SECRET), self.keys.key_of(model)))
        if self.agents_fail is not None:
            raise self.agents_fail

    def _keep(self, loaded: Loaded) -> None:
        self.done.append("keep")
        keep_last_good(loaded)

    def next_start(self) -> Settings:
        """What a host that starts now would run with."""
        around = surroundings(environ=self.environ, folder=self.file.parent)
        return load_or_last_good(self.file, around).loaded.settings


@pytest.fixture
def running(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(GOOD)
    environ = {"HOME": str(tmp_path / "home"), "BOT_TOKEN": "123456789:" + "D" * 35}
    loaded = load(file, surroundings(environ=environ, folder=tmp_path))
    keep_last_good(loaded)
    settings = loaded.settings
    return Running(
        file=file,
        live=LiveSettings(settings),
        redactor=ValueRedactor(secret_values(settings)),
        keys=ModelKeys(settings.models),
        environ=environ,
    )


async def test_what_can_change_live_is_in_force_and_the_rest_is_named(running):
    running.file.write_text(
        f'{GOOD}[logs]\nlevel = "debug"\n[agents.lodger]\n[agents.second]\n[console]\nlisten = ""\n'
    )
    report = await running.reloader().reload()
    assert report.applied == ("logs.level", "agents.second")
    assert report.restart == ("console.listen",)
    assert report.refusal == ""
    assert "In force now: logs.level, agents.second." in report.text
    assert "need a restart: console.listen" in report.text
    assert running.live.current.console.listen is not None
    assert running.done == ["agents lodger second", "log debug", "keep"]
    assert running.next_start().console.listen is None


async def test_what_waits_for_a_restart_is_named_until_then(running):
    running.file.write_text(f'{GOOD}[host]\ntime_zone = "Asia/Tokyo"\n')
    reloader = running.reloader()
    first, second = await reloader.reload(), await reloader.reload()
    assert first.restart == second.restart == ("host.time_zone",)
    assert "Nothing has changed." in second.text


async def test_a_file_that_was_not_touched_changes_nothing(running):
    report = await running.reloader().reload()
    assert (report.applied, report.restart, report.text) == ((), (), "Nothing has changed.")


BAD = {
    "(a) a syntax error": f"{GOOD}[host\n",
    "(b) an unknown key": f'{GOOD}[acess]\nowners = ["telegram:222"]\n',
    "(e) half a file": GOOD[: GOOD.index("BOT_TOKEN")],
    "(e) half a file that is valid": GOOD[: GOOD.index("\n[channels")],
    "(e) nothing of a file": "",
    "a good and a bad change": f'[access]\nowners = ["telegram:222"]\n{TELEGRAM}agent = "nobody"\n',
    "a secret that leads to nothing": GOOD.replace("BOT_TOKEN", "BOT_TOKNE"),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
async def test_a_bad_edit_is_refused_as_a_whole_and_leaves_host_and_next_start_usable(running, caplog, text):
    """C73.1 and C73.2 for (a), (b) and (e), C73.3; C72: a reload with a bad file."""
    before = running.live.current
    running.file.write_text(text)
    report = await running.reloader().reload()
    assert str(running.file) in report.refusal
    assert report.refusal in report.text
    assert (report.applied, report.restart) == ((), ())
    assert running.live.current is before
    assert running.done == []
    assert "configuration_refused" in caplog.text
    assert running.next_start().access.owners == ("telegram:111",)


@pytest.mark.parametrize(
    ("text", "told"),
    [("[host\n", "line 5"), ("[acess]\n", 'line 5, column 2: acess: unknown key (did you mean "access"?)')],
)
async def test_a_refusal_names_file_line_and_key(running, text, told):
    running.file.write_text(GOOD + text)
    assert told in (await running.reloader().reload()).text


async def test_a_correct_file_is_taken_on_after_a_refused_one(running):
    reloader = running.reloader()
    running.file.write_text("[host\n")
    assert (await reloader.reload()).refusal
    running.file.write_text(GOOD.replace("111", "222"))
    assert (await reloader.reload()).applied == ("access.owners",)
    assert running.live.current.access.owners == ("telegram:222",)


async def test_another_token_waits_for_the_restart_and_is_masked_from_now_on(running):
    """C73 (c): what is connected stays connected."""
    before, running.environ["BOT_TOKEN"] = running.environ["BOT_TOKEN"], "987654321:" + "E" * 35
    report = await running.reloader().reload()
    assert report.restart == ("channels.telegram.token",)
    assert running.live.current.channels.telegram.token.reveal() == before
    assert "E" * 35 not in running.redactor.mask(running.environ["BOT_TOKEN"])


async def test_a_model_that_may_not_exist_is_valid_in_form_and_taken_on(running):
    """C73 (d): only the turns of its agent show whether it exists."""
    running.file.write_text(f'{GOOD}[models.main]\nmodel = "anthropic/no-such-model"\n')
    assert (await running.reloader().reload()).applied == ("models.main.model",)


async def test_a_key_is_masked_and_known_before_an_agent_can_need_it(running):
    running.file.write_text(f'{GOOD}[models.main]\nmodel = "anthropic/m"\napi_key = "{SECRET}"\n')
    await running.reloader().reload()
    assert running.seen == [("[secret models.main.api_key]", SECRET)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UnusableFolder("[agents.second] workspace", Path("/proc/x"), "Permission denied"), "agents.second"),
        (MemoryRefused(path="birth", rule="there is no file in it", fix="Name a folder."), "there is no file"),
        (StorageFull("disk of " + SECRET), "Try again later"),
    ],
)
async def test_an_agent_that_cannot_be_made_refuses_the_whole_reload(running, error, told):
    before, running.agents_fail = running.live.current, error
    running.file.write_text(GOOD.replace("111", "222") + "[agents.lodger]\n[agents.second]\n")
    report = await running.reloader().reload()
    assert told in report.refusal
    assert SECRET not in report.text
    assert running.live.current is before
    assert running.next_start().access.owners == ("telegram:222",)  # the file itself is valid


async def test_a_refused_reload_leaves_the_key_of_a_model_as_it_was(running):
    model = f'{GOOD}[models.main]\nmodel = "anthropic/m"\n'
    running.file.write_text(f'{model}api_key = "{SECRET}"\n')
    reloader = running.reloader()
    await reloader.reload()
    running.agents_fail = StorageFull("full")
    running.file.write_text(f'{model}api_key = "another-{SECRET}"\n')
    assert (await reloader.reload()).refusal
    assert running.keys.key_of(running.live.current.models["main"].settings("main")) == SECRET


async def test_a_workspace_around_the_folders_in_use_is_refused_whatever_the_file_says_of_them(running, tmp_path):
    """The data directory that is running is where its file said it was at the start."""
    running.file.write_text(
        f'{GOOD}[host]\ndata_dir = "/srv/elsewhere"\n[agents.lodger]\nworkspace = "{tmp_path}/home/.local/share"\n'
    )
    report = await running.reloader().reload()
    assert "agents.lodger.workspace" in report.refusal
    assert "host.data_dir" in report.refusal
    assert running.done == []


async def test_a_secret_in_the_wrong_place_is_masked_in_the_refusal(running):
    running.file.write_text(f'{GOOD}[logs]\nlevel = "{running.environ["BOT_TOKEN"]}"\n')
    assert "D" * 20 not in (await running.reloader().reload()).text


async def test_the_first_file_is_found_by_a_host_that_ran_without_one(running, tmp_path):
    running.live.switch(load(None, surroundings(environ=running.environ, folder=tmp_path / "empty")).settings)
    report = await running.reloader().reload()
    assert report.applied == ("access.owners",)
    assert report.restart == ("channels.telegram",)
    assert running.live.current.source == running.file


async def test_warnings_of_the_new_configuration_are_logged(running, caplog):
    running.file.write_text(f"{GOOD}[permissions]\napprovers = []\n")
    await running.reloader().reload()
    assert [record.warning for record in caplog.records if record.msg == "configuration"] == [
        "permissions.approvers is empty: nobody can approve anything"
    ]


async def test_reloads_at_the_same_time_follow_each_other_and_the_last_sees_the_newest_file(running):
    running.gate = threading.Event()
    reloader = running.reloader()
    async with asyncio.timeout(BOUND):
        first = asyncio.ensure_future(reloader.reload())
        assert await asyncio.to_thread(running.loading.wait, BOUND)
        running.loading.clear()
        second = asyncio.ensure_future(reloader.reload())
        assert running.done == []
        running.gate.set()
        await first
        assert await asyncio.to_thread(running.loading.wait, BOUND)
        await second
    assert running.done == ["agents lodger", "log info", "keep"] * 2


async def test_a_file_that_is_gone_is_refused_and_not_read_as_all_default(running):
    running.file.unlink()
    assert "no such file" in (await running.reloader().reload()).refusal
    assert running.live.current.access.owners == ("telegram:111",)
