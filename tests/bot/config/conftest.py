import pytest

from bot.config.errors import ConfigError
from bot.config.load import load_settings


@pytest.fixture
def load(tmp_path):
    def from_text(text, **environ):
        file = tmp_path / "config.toml"
        file.write_text(text, encoding="utf-8")
        entries = {"bot": "from-the-keyring"}
        return load_settings(file, environ={"HOME": "/home/someone", **environ}, keyring=entries.get)

    return from_text


@pytest.fixture
def failure(load):
    def of(text, **environ):
        with pytest.raises(ConfigError) as caught:
            load(text, **environ)
        return caught.value

    return of
