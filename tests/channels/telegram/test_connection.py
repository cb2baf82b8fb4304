import httpx
import pytest

from channels.telegram.connection import TokenTransport, plain_client
from tests.platforms.other_host import OtherHost

TOKEN = "123456789:" + "D" * 35


@pytest.mark.parametrize(
    ("base", "url", "is_own"),
    [
        ("https://api.telegram.org", "https://api.telegram.org/x", True),
        ("https://api.telegram.org", "https://api.telegram.org.evil.example/x", False),
        ("https://api.telegram.org", "http://api.telegram.org/x", False),
        ("https://api.telegram.org", "https://api.telegram.org:8443/x", False),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081/x", True),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8082/x", False),
        ("http://bot-api.example", "https://bot-api.example/x", True),
    ],
)
async def test_the_token_goes_to_the_apis_own_host_alone(base, url, is_own):
    transport = TokenTransport(TOKEN, base)

    assert transport._is_own(httpx.URL(url)) is is_own
    await transport.aclose()


async def test_the_stand_in_is_replaced_once_and_only_where_the_token_belongs():
    async with OtherHost(b"ok") as host, plain_client(TokenTransport(TOKEN, host.base), read_seconds=5) as client:
        await client.get(f"{host.base}/file/botTOKEN/documents/botTOKEN/x")
        await client.get(f"{host.base}/other/TOKEN")

    assert [request.split()[1] for request in host.requests] == [
        f"/file/bot{TOKEN}/documents/botTOKEN/x",
        "/other/TOKEN",
    ]
