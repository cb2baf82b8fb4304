import os

import pytest

from bot.config.errors import ConfigError
from bot.config.syntax import read_document


def failure(file, data):
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(ConfigError) as caught:
        read_document(file)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "told"),
    [
        ("a = 1\nmode = fast\n", 2, 8, "quotes"),
        ('name = "helper\n', 1, 15, "closing quote"),
        ('[agent]\nmodel = "a"\nmodel = "b"\n', 3, None, "written twice"),
        ("[agent]\na = 1\n[agent]\nb = 2\n", 3, None, "twice"),
        ('\n\npath = "C:\\Users\\x"\n', 3, None, "single quotes"),
        ('path = "C:\\data"\n', 1, None, "single quotes"),
        ("a\u00a0= 1\n", 1, None, "NO-BREAK SPACE (U+00A0)"),
        ("\u00a0\u00a0a = 1\n", 1, None, "plain space"),
        ("a = \u200b1\n", 1, None, "U+200B"),
        ("a = [1,\n", 2, 1, ""),
        ("just text\n", 1, None, ""),
    ],
)
def test_a_typing_error_is_told_with_file_line_column_and_remedy(tmp_path, text, line, column, told):
    """C72."""
    error = failure(tmp_path / "config.toml", text)
    assert error.file == tmp_path / "config.toml"
    assert error.line == line
    assert error.column is not None
    assert column in {None, error.column}
    assert told in str(error)
    assert "\n" not in str(error)
    assert str(tmp_path / "config.toml") in str(error)


def test_a_file_with_a_byte_order_mark_is_told(tmp_path):
    """C72."""
    error = failure(tmp_path / "c.toml", b"\xef\xbb\xbfa = 1\n")
    assert "byte order mark" in str(error)
    assert (error.line, error.column) == (1, 1)


def test_a_file_that_is_not_utf_8_is_told(tmp_path):
    error = failure(tmp_path / "c.toml", b'a = 1\nb = "\xff"\n')
    assert (error.line, error.column) == (2, 6)


def test_a_typing_error_beside_a_secret_does_not_show_it(tmp_path):
    error = failure(tmp_path / "c.toml", 'token = "123456789:' + "D" * 35 + "\n")
    assert "DDDD" not in str(error)


def test_a_missing_file_and_a_directory_are_told(tmp_path):
    """C72."""
    with pytest.raises(ConfigError, match="no such file"):
        read_document(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="directory"):
        read_document(tmp_path)


def test_a_file_that_cannot_be_opened_is_told(tmp_path):
    """C72; a link to itself, because root may read any file."""
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_document(tmp_path / "loop.toml")
    assert str(tmp_path / "loop.toml") in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_read_permission_is_told(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("a = 1")
    file.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(file)


def test_windows_line_ends_are_read_with_the_right_positions(tmp_path):
    file = tmp_path / "c.toml"
    file.write_bytes(b"a = 1\r\n\r\n[b]\r\nc = 2\r\n")
    document = read_document(file)
    assert document.table == {"a": 1, "b": {"c": 2}}
    assert document.positions[("b", "c")].line == 4
