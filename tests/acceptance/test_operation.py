"""Operating the real host: what is well, what is counted, what happened, and who hears of trouble."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager

import httpx

from tests.acceptance.processes import OWNER, lodger
from tests.acceptance.telegram_talk import WAIT, talking
from tests.platforms.model_script import Answer, Call, Status
from tests.platforms.telegram_server import TOKEN

CHAT = "/chat/trouble"


@asynccontextmanager
async def console(host):
    """Give a browser that is signed in to the host's page."""
    link = re.search(r"http\S+", await host.wait_line("Open http"))[0]
    base = link.partition("/login")[0]
    async with httpx.AsyncClient(base_url=base, trust_env=False, follow_redirects=True, timeout=WAIT) as browser:
        assert (await browser.get(link)).status_code == 200
        yield browser


async def page_shows(browser, part: str) -> str:
    """Read the chat's page until it holds `part`, and return it."""
    async with asyncio.timeout(WAIT):
        while part not in (page := (await browser.get(CHAT)).text):
            await asyncio.sleep(0.01)
    return page


async def says_on_the_page(browser, text: str) -> None:
    page = (await browser.get(CHAT)).text
    csrf, key = (re.search(rf'name="{name}" value="([^"]+)"', page)[1] for name in ("csrf", "key"))
    origin = str(browser.base_url).rstrip("/")
    sent = await browser.post(
        f"{CHAT}/messages", data={"csrf": csrf, "key": key, "text": text}, headers={"origin": origin}
    )
    assert sent.status_code == 200, sent.text


async def readiness(browser, status: int) -> str:
    """Ask until the answer has that status, and return it."""
    async with asyncio.timeout(WAIT):
        while (answer := await browser.get("/readyz")).status_code != status:
            await asyncio.sleep(0.01)
    return answer.text


async def test_a_revoked_token_turns_readiness_red_and_its_owner_hears_of_it_on_the_page(tmp_path):
    async with talking(tmp_path) as talk, console(talk.host) as browser:
        await readiness(browser, 200)
        await says_on_the_page(browser, "hello")
        await page_shows(browser, "I heard: hello")
        talk.telegram.revoked = True
        talk.telegram.updates.end_poll("revoked")
        assert "telegram" in await readiness(browser, 503)
        page = await page_shows(browser, "I am cut off from telegram")
        assert TOKEN not in page + talk.host.output
        await says_on_the_page(browser, "still here?")
        await page_shows(browser, "I heard: still here?")


async def test_turns_are_counted_and_traced_without_secrets(tmp_path):
    async with talking(tmp_path) as talk:
        secret = f"sk-{'a' * 20}"
        talk.mind.on("list it", Answer(calls=[Call("c1", "glob", '{"pattern":"*"}')]), Answer(text=f"It is {secret}."))
        talk.telegram.user_says(OWNER, "list it")
        await talk.said("It is ")
        talk.mind.on("hello", Answer(text=f"I heard: hello and {secret}"))
        told = await lodger(talk.place, "run", "-p", "hello", "--output-format", "json")
        async with console(talk.host) as browser:
            counted = (await browser.get("/metrics")).text
        turn = json.loads(told.out)["turn_id"]
        traced = await lodger(talk.place, "trace", turn)
        whole = await lodger(talk.place, "trace", turn, "--json")
        unknown = await lodger(talk.place, "trace", "turn-of-nobody")
    assert re.search(r'lodger_turns_total\{channel="telegram",outcome="completed"\} 1.0', counted), counted
    assert re.search(r'lodger_tool_calls_total\{outcome="ok",tool="glob"\} 1.0', counted)
    assert traced.code == whole.code == 0
    assert f"turn {turn}" in traced.out
    assert "I heard: hello" in traced.out
    assert json.loads(whole.out)["turn"]["id"] == turn
    assert secret not in traced.out + whole.out + counted + talk.host.output
    assert unknown.code == 1


async def test_the_doctor_proves_every_part_and_names_the_fix_for_what_fails(tmp_path):
    async with talking(tmp_path) as talk:
        telegram, place = talk.telegram, talk.place
        await telegram.wait_for(lambda: telegram.updates.is_polled, timeout=WAIT)
        well = await lodger(place, "doctor")
        assert (well.code, "FAIL" in well.out) == (0, False), well.out
        assert "Everything works." in well.out
        assert "Telegram knows the bot as @lodger_bot" in well.out

        rejected = Status(status=401, body='{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}')
        talk.mind.on("the one word", *[rejected] * 9)
        await fails(place, "FAIL  model of lodger", "Check the model's name, its api_key and its api_base.")
        talk.mind.on("the one word")

        async with httpx.AsyncClient(trust_env=False) as other:
            await other.get(f"{telegram.api_base}/bot{TOKEN}/getUpdates")
        await talk.host.wait_line("telegram_poll_conflict")
        await fails(place, "FAIL  telegram: receiving", "another program polls with the same bot token. Stop it")

        telegram.webhook.set({"url": "https://other.example/hook"})
        await fails(place, "FAIL  telegram: webhook", "remove it with the Bot API method deleteWebhook")

        telegram.revoked = True
        assert await talk.host.stop() == 0
        text = place.config.read_text()
        place.config.write_text(re.sub('api_base = "http://[^"]+/v1"', 'api_base = "http://127.0.0.1:9/v1"', text))
        out = await fails(place, "FAIL  telegram: token", "Ask @BotFather for the bot's token")
        assert "FAIL  model of lodger" in out
        assert "Check the network, the api_base" in out
        assert "2 of these failed." in out


async def fails(place, what: str, fix: str) -> str:
    """Let the doctor look, who finds that failing and names the fix; return all that it says."""
    found = await lodger(place, "doctor")
    assert found.code == 1, found.out
    assert what in found.out
    assert fix in found.out
    assert TOKEN not in found.out + found.err
    return found.out
