import pytest

from bot.console.chat_pages import NOT_STORED
from core.contracts.addresses import Button, CardContent, MessageBody, PressBody, TextContent
from tests.bot.console.console_kit import OWNER, SCRIPT, form_token, running_console

ATTACK = "<script>alert(1)</script>"


def message(kit, text="Hello", **changes):
    return {"csrf": kit.csrf(), "key": "key-12345678", "text": text} | changes


async def test_a_message_is_handed_to_the_channel_as_the_owner_says_it():
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/chat/main/messages", json=message(kit, "Hi\nthere"), headers=SCRIPT)
        assert answer.status_code == 202
        (event,) = kit.host.events
        assert event.body == MessageBody(text="Hi\nthere")
        assert event.sender == OWNER
        assert event.address == kit.web.address("main")
        assert event.key == "key-12345678"


async def test_a_double_submit_counts_once():
    async with running_console() as kit, kit.signed_in() as browser:
        for _ in range(2):
            await browser.post("/chat/main/messages", json=message(kit), headers=SCRIPT)
        await browser.post("/chat/main/messages", data=message(kit))
        assert len(kit.host.events) == 1


async def test_a_form_without_scripts_works_with_the_key_its_page_was_given():
    async with running_console() as kit, kit.signed_in() as browser:
        page = (await browser.get("/chat/main")).text
        key = page.partition('name="key" value="')[2].partition('"')[0]
        fields = {"csrf": form_token(page), "key": key, "text": "one\r\ntwo"}
        answer = await browser.post("/chat/main/messages", data=fields)
        assert answer.headers["location"] == "/chat/main"
        assert kit.host.events[0].body.text == "one\ntwo"
        assert "one\ntwo" in (await browser.get("/chat/main")).text


@pytest.mark.parametrize("key", ["", "short", "x" * 65, "not a key!"])
async def test_a_message_without_a_usable_key_is_refused(key):
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/chat/main/messages", json=message(kit, key=key), headers=SCRIPT)
        assert answer.status_code == 400
        assert kit.host.events == []


async def test_text_that_cannot_be_stored_is_said_and_given_back():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.refuse_events = True
        form = await browser.post("/chat/main/messages", data=message(kit, "keep <me>"))
        script = await browser.post("/chat/main/messages", json=message(kit), headers=SCRIPT)
        assert form.status_code == 503
        assert NOT_STORED in form.text
        assert "keep &lt;me&gt;</textarea>" in form.text
        assert script.status_code == 503
        assert script.json() == {"error": NOT_STORED}


async def test_a_channel_that_does_not_run_stores_nothing_and_says_so():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.web._sink = None
        answer = await browser.post("/chat/main/messages", json=message(kit), headers=SCRIPT)
        assert answer.json() == {"error": NOT_STORED}


@pytest.mark.parametrize(("text", "status"), [("", 400), (" \n ", 400), ("x" * 100_001, 413)])
async def test_an_empty_or_endless_text_is_refused(text, status):
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/chat/main/messages", json=message(kit, text), headers=SCRIPT)
        assert answer.status_code == status
        assert kit.host.events == []


async def test_a_body_beyond_all_measure_is_not_read():
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/chat/main/messages", json=message(kit, "x" * 3_000_000), headers=SCRIPT)
        assert answer.status_code == 413


async def test_a_press_carries_token_and_card():
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "token": "t1", "card": "turn-1/2"}
        assert (await browser.post("/chat/main/press", json=fields, headers=SCRIPT)).status_code == 202
        body = kit.host.events[0].body
        assert isinstance(body, PressBody)
        assert (body.token, body.card) == ("t1", "turn-1/2")


@pytest.mark.parametrize("missing", ["token", "card"])
async def test_a_press_of_nothing_is_refused(missing):
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "token": "t1", "card": "c1"} | {missing: ""}
        answer = await browser.post("/chat/main/press", json=fields, headers=SCRIPT)
        assert answer.status_code == 400
        assert kit.host.events == []


async def test_a_press_that_cannot_be_stored_is_said():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.down = True
        fields = {"csrf": kit.csrf(), "token": "t1", "card": "c1"}
        answer = await browser.post("/chat/main/press", json=fields, headers=SCRIPT)
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("Not stored")


async def test_nothing_that_anybody_wrote_runs_in_the_page():
    """XSS by the user's text, the model's text, a card's text, code, label and token, and the title."""
    async with running_console() as kit, kit.signed_in() as browser:
        key = kit.web.address("main").key
        kit.host.remember(key, "a", "Ada", TextContent(markdown=ATTACK))
        kit.host.remember(key, "b", "", TextContent(markdown=f"{ATTACK} [x](javascript:alert(1))"))
        button = Button(token=f'"{ATTACK}', label=ATTACK)
        kit.host.remember(key, f'"{ATTACK}', "", CardContent(text=ATTACK, code=ATTACK, rows=((button,),)))
        page = (await browser.get("/chat/main")).text
        assert "<script>" not in page
        assert 'href="javascript' not in page
        assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 9


async def test_the_chat_shows_cards_with_the_token_of_the_session():
    async with running_console() as kit, kit.signed_in() as browser:
        card = CardContent(text="May I?", rows=((Button(token="t1", label="Yes"),),))
        kit.host.remember(kit.web.address("main").key, "card-1", "", card)
        page = (await browser.get("/chat/main")).text
        assert f'action="/chat/main/press"><input type="hidden" name="csrf" value="{kit.csrf()}">' in page


async def test_a_new_conversation_is_a_fresh_address_every_time():
    async with running_console() as kit, kit.signed_in() as browser:
        places = {(await browser.post("/chats", data={"csrf": kit.csrf()})).headers["location"] for _ in range(3)}
        assert len(places) == 3
        assert (await browser.get(places.pop())).status_code == 200


@pytest.mark.parametrize("name", ["UPPER", "a%2Fb", "a.b", "x" * 33, "%3Cscript%3E"])
async def test_what_no_chat_is_called_is_not_found(name):
    async with running_console() as kit, kit.signed_in() as browser:
        assert (await browser.get(f"/chat/{name}")).status_code == 404
        answer = await browser.post(f"/chat/{name}/messages", json=message(kit), headers=SCRIPT)
        assert answer.status_code == 404


async def test_a_host_without_its_database_says_so():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.down = True
        answer = await browser.get("/chat/main")
        assert answer.status_code == 503
        assert "cannot use its database" in answer.text
