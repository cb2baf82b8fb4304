"""The web chat in a real browser, driven as a person would."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from bot.console.app import build_console
from bot.console.server import serve
from bot.console.sessions import ConsoleSessions
from channels.feed import FeedChannel
from core.contracts.addresses import Sender, TextContent
from core.contracts.clock import SystemClock
from tests.acceptance.scripted_host import COMMAND, ScriptedHost

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 390, "height": 844}

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() and os.environ.get("CI") != "true",
    reason=f"no Chromium at {CHROMIUM}; with CI=true this fails instead",
)
pytestmark = [pytest.mark.browser, needs_chromium]


class Visit:
    """One browser page with everything that went wrong on it, and the server behind it."""

    def __init__(self, page, host, link, server) -> None:
        self.page = page
        self.host = host
        self.link = link
        self.server = server
        self.complaints = []
        page.on("console", lambda message: self.complain(message.type, message.text))
        page.on("pageerror", lambda error: self.complain("error", str(error)))

    def complain(self, kind, text):
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    async def send(self, text):
        await self.page.get_by_label("Your message").fill(text)
        await self.page.keyboard.press("Enter")

    async def shoot(self, folder, name):
        await self.page.screenshot(path=folder / f"{name}.png", animations="disabled")


class Server:
    """A console that can be stopped and started again at its address."""

    def __init__(self, app) -> None:
        self.app = app
        self.address = "127.0.0.1:0"
        self._running = AsyncExitStack()

    async def start(self):
        self.address = await self._running.enter_async_context(serve(self.app, listen=self.address))

    async def stop(self):
        await self._running.aclose()


@asynccontextmanager
async def visit(**context):
    """Serve a console with a scripted host and open its one-time link."""
    clock = SystemClock()
    web = FeedChannel("web", clock)
    host = ScriptedHost(web)
    sessions = ConsoleSessions(clock)
    owner = Sender(identity="web:local", name="Ada")
    server = Server(build_console(api=host, web=web, sessions=sessions, clock=clock, owner=owner))
    roles = [asyncio.create_task(web.run(host)), asyncio.create_task(host.play())]
    await server.start()
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
            page = await (await browser.new_context(**context)).new_page()
            seen = Visit(page, host, sessions.login_link(server.address), server)
            await page.goto(seen.link)
            yield seen
            await browser.close()
    finally:
        await server.stop()
        for role in roles:
            role.cancel()
        await asyncio.gather(*roles, return_exceptions=True)


async def to_the_approval(seen):
    await seen.send("Please publish the site.\nThe usual way, with <b>care</b>.")
    await expect(seen.page.locator("#status")).to_have_text("thinking")
    seen.host.go_on.put_nowait(None)
    await expect(seen.page.locator(".preview")).to_contain_text("Let me look. **Bui")
    seen.host.go_on.put_nowait(None)
    await expect(seen.page.locator(".preview")).to_have_text("Let me look. Building now.")
    await expect(seen.page.locator("#status")).to_have_text("running shell")
    await expect(seen.page.locator(".card pre")).to_have_text(COMMAND)


async def test_a_person_sees_the_answer_grow_approves_and_finds_diff_and_undo(tmp_path):
    async with visit(color_scheme="light") as seen:
        page = seen.page
        await expect(page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
        await seen.shoot(tmp_path, "welcome")
        await to_the_approval(seen)
        await seen.shoot(tmp_path, "approval")
        await expect(page.get_by_role("button", name="Always")).to_be_visible()
        await expect(page.get_by_role("button", name="Deny")).to_be_visible()
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator(".card.settled")).to_contain_text("Approved by Ada.")
        await expect(page.locator(".card.settled button.good")).to_have_count(0)
        seen.host.go_on.put_nowait(None)
        await expect(page.locator(".answer")).to_contain_text("the site is built and published")
        await expect(page.locator(".preview")).to_have_count(0)
        await expect(page.locator(".answer")).to_have_count(1)
        await expect(page.locator(".card.settled + .answer")).to_be_visible()
        await expect(page.locator("h1")).to_have_text("Please publish the site. The usual way, with <b…")
        await expect(page.locator("#status")).to_be_hidden()
        await expect(page.locator("b")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".notice")).to_have_text("Nothing to undo.")
        await page.get_by_role("button", name="Diff").click()
        await expect(page.locator(".card pre").last).to_have_text("-old\n+new")
        await expect(page.get_by_label("Your message")).to_be_focused()
        await seen.shoot(tmp_path, "answer")
        assert seen.complaints == []


async def test_a_reload_shows_the_same_chat_and_the_link_works_only_once(tmp_path):
    async with visit() as seen:
        await to_the_approval(seen)
        await seen.page.get_by_role("button", name="Approve", exact=True).click()
        await expect(seen.page.locator(".card.settled")).to_be_visible()
        await seen.page.reload()
        await expect(seen.page.locator(".card.settled")).to_contain_text("Approved by Ada.")
        await expect(seen.page.locator(".bubble")).to_have_text(
            "Please publish the site.\nThe usual way, with <b>care</b>."
        )
        await seen.page.context.clear_cookies()
        answer = await seen.page.goto(seen.link)
        assert answer.status == 401
        await expect(seen.page.get_by_role("heading", name="Sign in")).to_be_visible()
        await seen.shoot(tmp_path, "signed-out")


async def test_a_new_conversation_is_empty_and_both_stay_in_the_sidebar(tmp_path):
    async with visit() as seen:
        await seen.send("hello")
        await expect(seen.page.locator(".answer .prose")).to_have_text("Hello! This is a conversation of its own.")
        async with seen.page.expect_event("load"):
            await seen.page.get_by_role("button", name="New conversation").click()
        await expect(seen.page.get_by_role("heading", name="What can I do for you?")).to_be_visible()
        await expect(seen.page.locator(".bubble")).to_have_count(0)
        await seen.send("hello")
        await expect(seen.page.locator(".answer")).to_have_count(1)
        await expect(seen.page.locator(".chats a[aria-current]")).to_have_text("hello")
        await seen.page.reload()
        await expect(seen.page.locator(".chats a")).to_have_text(["hello", "hello"])
        assert len({event.address.key for event in seen.host.events}) == 2
        assert seen.complaints == []


async def test_text_that_was_not_stored_stays_in_the_box(tmp_path):
    async with visit() as seen:
        seen.host.down = True
        await seen.send("Do not lose me")
        await expect(seen.page.locator("#error")).to_contain_text("Not stored, try again")
        await expect(seen.page.get_by_label("Your message")).to_have_value("Do not lose me")
        await seen.shoot(tmp_path, "not-stored")
        seen.host.down = False
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.locator(".bubble")).to_have_text("Do not lose me")
        await expect(seen.page.get_by_label("Your message")).to_have_value("")
        await expect(seen.page.locator("#error")).to_be_hidden()


async def test_on_a_phone_the_menu_opens_and_closes_over_the_page(tmp_path):
    async with visit(viewport=PHONE) as seen:
        approvals = seen.page.get_by_role("link", name="Approvals")
        await expect(approvals).to_be_hidden()
        await seen.page.get_by_role("button", name="Menu").click()
        await expect(approvals).to_be_visible()
        await seen.shoot(tmp_path, "menu")
        await seen.page.keyboard.press("Escape")
        await expect(approvals).to_be_hidden()
        assert seen.complaints == []


async def test_a_lost_host_is_told_and_what_was_missed_comes_when_it_is_back(tmp_path):
    async with visit() as seen:
        connection = seen.page.locator("#connection")
        await expect(connection).to_be_hidden()
        await seen.server.stop()
        await expect(connection).to_have_text("Connection lost. Reconnecting…")
        await seen.shoot(tmp_path, "lost")
        await seen.send("Are you there?")
        await expect(seen.page.locator("#error")).to_have_text("The host cannot be reached. Try again.")
        address = seen.host.web.address("main")
        await seen.host.show(address, "missed", TextContent(markdown="This came while you were away."))
        await seen.server.start()
        await expect(seen.page.locator(".answer")).to_contain_text("while you were away", timeout=20_000)
        await expect(connection).to_be_hidden()
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.locator(".bubble")).to_have_text("Are you there?")


async def test_another_text_after_a_failure_is_another_message():
    async with visit() as seen:
        seen.host.down = True
        await seen.send("first thought")
        await expect(seen.page.locator("#error")).to_be_visible()
        seen.host.down = False
        await seen.send("second thought")
        await seen.send("third thought")
        await expect(seen.page.locator(".bubble")).to_have_text(["second thought", "third thought"])
        assert len({event.key for event in seen.host.events}) == 2


async def test_shift_enter_starts_a_line_and_enter_sends_both():
    async with visit() as seen:
        await seen.page.keyboard.type("one")
        await seen.page.keyboard.press("Shift+Enter")
        await seen.page.keyboard.type("two")
        await seen.page.keyboard.press("Enter")
        await expect(seen.page.locator(".bubble")).to_have_text("one\ntwo")
        assert [event.body.text for event in seen.host.events] == ["one\ntwo"]


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "has_touch": True}),
        ("phone-dark", {"viewport": PHONE, "color_scheme": "dark"}),
    ],
)
async def test_nothing_is_wider_than_the_screen(tmp_path, name, context):
    async with visit(**context) as seen:
        await to_the_approval(seen)
        await seen.shoot(tmp_path, f"{name}-approval")
        await seen.page.get_by_role("button", name="Approve", exact=True).click()
        seen.host.go_on.put_nowait(None)
        await expect(seen.page.get_by_role("button", name="Undo")).to_be_visible()
        await seen.shoot(tmp_path, f"{name}-answer")
        for path in (
            "/approvals",
            "/memory",
            "/memory/lodger/file?path=human.md",
            "/memory/lodger/commits/3f2a91c0",
            "/audit",
        ):
            await seen.page.goto(seen.link.partition("/login")[0] + path)
            await seen.shoot(tmp_path, f"{name}{path.replace('/', '-').partition('?')[0]}")
            assert await seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen.complaints == []
