"""The real host behind a webhook: told with a secret, believed with it alone, and nothing lost over a restart."""

from __future__ import annotations

import socket

import httpx

from tests.acceptance.processes import OWNER, running_host
from tests.acceptance.telegram_talk import WAIT, talking

PUBLIC = "https://bot.example.org"
SECRET = "s3cret-" + "w" * 20
_HEADER = "X-Telegram-Bot-Api-Secret-Token"


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


async def test_updates_are_posted_proven_and_over_a_restart_answered_once(tmp_path):
    listen = free_address()
    reach = f'webhook_url = "{PUBLIC}/hook"\nwebhook_secret = "{SECRET}"\nwebhook_listen = "{listen}"\n'
    async with talking(tmp_path, reach=reach, more='direct_messages = "open"') as talk:
        telegram = talk.telegram
        telegram.webhook.proxies[PUBLIC] = f"http://{listen}"
        await telegram.wait_for(lambda: telegram.calls_of("setWebhook"), timeout=WAIT)
        assert telegram.calls_of("setWebhook")[0].params["secret_token"] == SECRET
        assert "message" in telegram.calls_of("setWebhook")[0].params["allowed_updates"]
        telegram.user_says(OWNER, "one")
        await talk.said("I heard: one")
        await forged_updates_are_refused(f"http://{listen}/hook")

        assert await talk.host.stop() == 0
        telegram.user_says(OWNER, "two")
        telegram.user_says(OWNER, "three")
        await telegram.wait_for(lambda: "last_error_message" in telegram.webhook.describe(), timeout=WAIT)
        async with running_host(talk.place):
            await talk.said("I heard: two")
            await talk.said("I heard: three")
        answers = [message.text for message in telegram.visible(OWNER)]
        assert answers == ["I heard: one", "I heard: two", "I heard: three"]
        assert telegram.updates.unconfirmed == []
        assert telegram.calls_of("getUpdates") == []
        stored = (talk.place.data / "host.db").read_bytes()
        assert b"I heard: three" in stored
        assert b"forged" not in stored
        assert SECRET not in talk.host.output


async def forged_updates_are_refused(url: str) -> None:
    person = {"id": 444, "is_bot": False, "first_name": "Mallory"}
    message = {"message_id": 1, "from": person, "chat": {"id": 444, "type": "private"}, "date": 1, "text": "forged"}
    async with httpx.AsyncClient(trust_env=False) as client:
        for headers in ({}, {_HEADER: SECRET + "x"}):
            answer = await client.post(url, json={"update_id": 9_999, "message": message}, headers=headers)
            assert answer.status_code == 401
