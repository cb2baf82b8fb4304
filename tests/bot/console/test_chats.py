from core.contracts.addresses import TextContent
from tests.bot.console.console_kit import SCRIPT, running_console


async def say(kit, browser, name, text, key):
    fields = {"csrf": kit.csrf(), "key": key, "text": text}
    answer = await browser.post(f"/chat/{name}/messages", json=fields, headers=SCRIPT)
    assert answer.status_code == 202


async def test_chats_in_which_something_was_said_stay_in_the_sidebar_newest_first():
    async with running_console() as kit, kit.signed_in() as browser:
        await say(kit, browser, "main", "First things", "key-00000001")
        await say(kit, browser, "abc", "Second <thoughts>", "key-00000002")
        await browser.get("/chat/neversaid")
        page = (await browser.get("/audit")).text
        assert page.index(">Second &lt;thoughts&gt;<") < page.index(">First things<")
        assert "neversaid" not in page
        assert (await browser.get("/")).headers["location"] == "/chat/abc"


async def test_a_title_is_the_beginning_of_what_the_person_said_first():
    async with running_console() as kit, kit.signed_in() as browser:
        key = kit.web.address("main").key
        kit.host.remember(key, "a", "", TextContent(markdown="Good morning"))
        kit.host.remember(key, "b", "Ada", TextContent(markdown="Plan\nmy " + "very " * 20 + "long day"))
        kit.host.remember(key, "c", "Ada", TextContent(markdown="Later"))
        page = (await browser.get("/chat/main")).text
        assert "<h1>Plan my very very very very very very very very…</h1>" in page


async def test_a_spoilt_cookie_does_no_harm():
    async with running_console() as kit, kit.signed_in() as browser:
        browser.cookies.set("lodger_chats", "../../x.main.<b>." + ".".join(f"c{n}" for n in range(100)))
        page = (await browser.get("/chat/main")).text
        assert page.count('href="/chat/') == 30
        assert "<b>" not in page
