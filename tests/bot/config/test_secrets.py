import pytest

from bot.config.secrets import Secret, SecretMissing, SecretSources


@pytest.fixture
def sources(tmp_path):
    entries = {"bot": "from-keyring\n", "void": ""}
    return SecretSources(
        environ={"TOKEN": "value-${HOME}-$1", "LINE": "abc\n", "EMPTY": "", "BLANK": " \n"},
        folder=tmp_path,
        home=tmp_path / "home",
        keyring=entries.get,
    )


def test_a_secret_shows_its_value_to_nobody_but_the_caller_of_reveal():
    secret = Secret("hunter2-hunter2", source="env TOKEN")
    for written in (str(secret), repr(secret), f"{secret}", f"{secret!r}", f"{[secret]}"):
        assert "hunter2" not in written
    assert "env TOKEN" in repr(secret)
    assert secret.reveal() == "hunter2-hunter2"


def test_secrets_are_equal_by_value():
    assert Secret("a", source="x") == Secret("a", source="y")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a") != "a"


def test_a_variable_gives_its_value_which_is_not_expanded_again(sources):
    """C70."""
    assert sources.from_env("TOKEN").reveal() == "value-${HOME}-$1"
    assert sources.from_env("LINE").reveal() == "abc"


@pytest.mark.parametrize("name", ["MISSING", "EMPTY", "BLANK"])
def test_a_missing_or_empty_variable_is_named(sources, name):
    """C70."""
    with pytest.raises(SecretMissing, match=name):
        sources.from_env(name)


def test_a_file_gives_its_content_without_the_line_end(sources, tmp_path):
    (tmp_path / "token").write_bytes(b"  a$b\r\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text("of-home\n\n")
    assert sources.from_file("token").reveal() == "  a$b"
    assert sources.from_file(str(tmp_path / "token")).reveal() == "  a$b"
    assert sources.from_file("~/token").reveal() == "of-home"


def test_a_file_that_gives_nothing_is_named(sources, tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("none", "empty", "bytes", "."):
        with pytest.raises(SecretMissing, match=str(tmp_path)):
            sources.from_file(name)


def test_the_keyring_gives_its_entry(sources):
    assert sources.from_keyring("bot").reveal() == "from-keyring"
    for name in ("void", "none"):
        with pytest.raises(SecretMissing, match=name):
            sources.from_keyring(name)
