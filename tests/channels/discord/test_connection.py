import httpx
import pytest

from channels.discord.connection import INTERACTION, open_clients, with_interaction
from tests.platforms.other_host import OtherHost

TOKEN = "bot-token-of-its-own"


async def test_the_token_goes_to_the_api_alone_and_never_with_files():
    async with OtherHost() as own, OtherHost() as other:
        api, files = open_clients(TOKEN, f"{own.base}/api/v10", read_seconds=5)
        await api.get("/users/@me")
        await api.get(f"{other.base}/x")
        await files.get(f"{other.base}/y")
        await files.get(f"{own.base}/z")
        await files.aclose()
        await api.aclose()

    assert ["/api/v10/users/@me" in request for request in own.requests] == [True, False]
    assert [f"Bot {TOKEN}" in request for request in own.requests] == [True, False]
    assert [TOKEN in request for request in other.requests] == [False, False]


@pytest.mark.parametrize("token", ["to\nken.x", "t\u00f6ken.x", "to ken\r\nX-Evil: 1"])
async def test_a_token_that_no_header_can_hold_is_sent_in_another_form_and_shown_to_nobody(token):
    async with OtherHost() as own:
        api, files = open_clients(f" {token} ", own.base, read_seconds=5)
        response = await api.get("/x")
        await files.aclose()
        await api.aclose()

    assert response.status_code == 200
    assert token not in own.requests[0]
    assert "'X-Evil'" not in own.requests[0]


async def test_an_interactions_token_takes_the_place_of_its_stand_in_and_of_the_bots():
    async with OtherHost() as own:
        api, files = open_clients(TOKEN, own.base, read_seconds=5)
        request = api.build_request(
            "POST", f"/interactions/5/{INTERACTION}/callback", extensions=with_interaction("a/b c")
        )
        await api.send(request)
        await files.aclose()
        await api.aclose()

    assert "/interactions/5/a%2Fb%20c/callback" in own.requests[0]
    assert TOKEN not in own.requests[0]
    assert request.url.path == f"/interactions/5/{INTERACTION}/callback"


async def test_every_request_names_the_kind_of_program_that_discord_asks_for():
    async with OtherHost() as own:
        api, files = open_clients(TOKEN, own.base, read_seconds=5)
        for client in (api, files):
            await client.get(own.base)
            await client.aclose()

    assert ["DiscordBot (" in request for request in own.requests] == [True, True]


def test_no_client_follows_the_api_elsewhere():
    api, files = open_clients(TOKEN, "http://127.0.0.1:1", read_seconds=5)

    assert isinstance(api, httpx.AsyncClient)
    assert (api.follow_redirects, files.follow_redirects) == (False, True)
