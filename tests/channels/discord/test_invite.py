import base64
from urllib.parse import parse_qs, urlsplit

import pytest

from channels.discord.invite import NEEDED, Permission, application_of, invite_link
from tests.platforms.discord_account import TOKEN
from tests.platforms.discord_guilds import BOT


def test_the_link_asks_for_what_the_bot_needs_and_no_more():
    link = urlsplit(invite_link("8000"))

    assert (link.scheme, link.netloc, link.path) == ("https", "discord.com", "/oauth2/authorize")
    assert parse_qs(link.query) == {
        "client_id": ["8000"],
        "scope": ["bot applications.commands"],
        "permissions": ["309237763136"],
    }
    assert not NEEDED & Permission.ADMINISTRATOR


def test_a_token_names_its_application():
    assert application_of(TOKEN) == str(BOT)
    assert application_of(f" {TOKEN}\n") == str(BOT)


@pytest.mark.parametrize("token", ["", "abc", "....", "\u00fc.x.y", base64.b64encode(b"no number").decode() + ".x.y"])
def test_what_is_no_token_names_none(token):
    assert application_of(token) is None
