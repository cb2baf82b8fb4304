"""C73: a host starts also after a bad edit of its configuration."""

import stat

import pytest

from bot.config.errors import ConfigError
from bot.config.last_good import keep_last_good, load_again, load_or_last_good
from bot.config.load import last_good_place, load, surroundings

TOKEN = "123456789:" + "D" * 35
GOOD = '[host]\ndata_dir = "data"\n[access]\nowners = ["telegram:111"]\n[permissions]\ndeadline = "24h"\n'
WITH_TOKEN = f'{GOOD}[channels.telegram]\ntoken = {{ env = "BOT_TOKEN" }}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "etc").mkdir()
    return tmp_path / "etc"


@pytest.fixture
def file(folder):
    return folder / "config.toml"


@pytest.fixture
def around(tmp_path, folder):
    def with_variables(**environ):
        return surroundings(environ={"HOME": str(tmp_path / "home"), **environ}, folder=folder)

    return with_variables


@pytest.fixture
def worked(file, around):
    """Let a text be the configuration of a host that ran."""

    def with_text(text, **environ):
        file.write_text(text)
        keep_last_good(load(file, around(**environ)))

    return with_text


BAD = {
    "a syntax error": "[host\n",
    "an unknown key": '[hosts]\nx = "y"\n',
    "half a file": GOOD[: GOOD.index('"telegram') + 5],
    "half a file that is valid": GOOD.removesuffix('"24h"\n') + '"2',
    "half a line that is valid": GOOD[: GOOD.index("\n[permissions]")],
    "an empty file": "",
    "bytes": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_refused_file_starts_with_what_worked_last(file, worked, around, text):
    """C73.2 for (a), (b) and (e)."""
    worked(GOOD)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    start = load_or_last_good(file, around())
    assert start.loaded.settings.access.owners == ("telegram:111",)
    assert start.loaded.settings.source == file
    assert str(start.refusal) in start.notice
    assert str(file) in start.notice
    assert "/reload" in start.notice


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_bad_edit_under_a_running_host_is_refused_and_what_worked_is_kept(file, worked, around, text):
    """C73.1 for (a), (b) and (e)."""
    worked(GOOD)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load_again(file, around())
    assert last_good_place(file, around()).read_text() == GOOD


def test_a_file_that_is_gone_starts_with_what_worked_last_and_is_no_reload_to_defaults(file, worked, around):
    worked(GOOD)
    file.unlink()
    start = load_or_last_good(file, around())
    assert "no such file" in start.notice
    with pytest.raises(ConfigError, match="no such file"):
        load_again(file, around())


def test_a_good_file_is_used_itself_and_says_nothing(file, worked, around):
    worked(GOOD)
    file.write_text(GOOD.replace("111", "222"))
    start = load_or_last_good(file, around())
    assert start.loaded.settings.access.owners == ("telegram:222",)
    assert start.notice == ""


def test_lines_may_be_taken_off_the_end(file, worked, around):
    worked(GOOD)
    file.write_text(GOOD[: GOOD.index("[permissions]")])
    assert load_or_last_good(file, around()).refusal is None
    file.write_text("# all default, as I want it")
    assert load_again(file, around()).settings.access.owners == ()


def test_without_a_copy_the_error_of_the_file_ends_the_start(file, around):
    """C72 stays."""
    file.write_text("[host\n")
    with pytest.raises(ConfigError, match="line 1"):
        load_or_last_good(file, around())
    with pytest.raises(ConfigError, match="--config"):
        load_or_last_good(file.parent / "none.toml", around())


def test_a_copy_that_is_refused_too_ends_the_start_with_the_first_error(file, worked, around):
    """C73.2: no silent loop; the reference of the copy leads to nothing by now."""
    worked(WITH_TOKEN, BOT_TOKEN=TOKEN)
    file.write_text("[hosts]\n")
    with pytest.raises(ConfigError, match="hosts: unknown key"):
        load_or_last_good(file, around())


def test_a_reference_that_leads_to_nothing_starts_with_the_one_that_did(file, worked, around):
    worked(WITH_TOKEN, BOT_TOKEN=TOKEN)
    file.write_text(WITH_TOKEN.replace("BOT_TOKEN", "BOT_TOKNE"))
    start = load_or_last_good(file, around(BOT_TOKEN=TOKEN))
    assert "BOT_TOKNE" in start.notice
    assert TOKEN not in start.notice


def test_relative_paths_of_the_copy_begin_at_the_folder_of_the_file(file, worked, around):
    worked(GOOD)
    file.write_text("[host\n")
    assert load_or_last_good(file, around()).loaded.settings.host.data_dir == file.parent / "data"


def test_the_copy_is_found_by_the_name_of_the_file_alone_and_read_by_nobody_else(file, worked, around, tmp_path):
    worked(GOOD)
    (copy,) = (tmp_path / "home" / ".local" / "state" / "lodger" / "last-good").iterdir()
    assert copy == last_good_place(file.parent / ".." / "etc" / "config.toml", around())
    assert len(copy.stem) == 16
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700


def test_the_state_folder_that_is_named_is_used_if_it_is_absolute(file, around, tmp_path):
    named = around(XDG_STATE_HOME=str(tmp_path / "state"))
    assert last_good_place(file, named).is_relative_to(tmp_path / "state" / "lodger")
    assert last_good_place(file, around(XDG_STATE_HOME="state")).is_relative_to(tmp_path / "home")


def test_the_newest_text_that_worked_replaces_the_one_before(file, worked, around):
    worked(GOOD)
    worked(GOOD + "# more\n")
    copy = last_good_place(file, around())
    assert copy.read_text() == GOOD + "# more\n"
    assert list(copy.parent.iterdir()) == [copy]


def test_a_copy_that_cannot_be_kept_is_logged_and_stops_nothing(file, around, caplog):
    file.write_text(GOOD)
    loaded = load(file, around())
    loaded.settings.last_good.mkdir(parents=True)  # where a file should be
    keep_last_good(loaded)
    assert "last_good_not_kept" in caplog.text
    assert list(loaded.settings.last_good.parent.iterdir()) == [loaded.settings.last_good]


def test_without_a_file_nothing_is_kept(around, tmp_path):
    loaded = load(None, around())
    assert loaded.settings.last_good is None
    keep_last_good(loaded)
    assert not (tmp_path / "home").exists()
    assert load_again(None, around()).settings == loaded.settings
