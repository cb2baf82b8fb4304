"""The web page of the real host with the demo model, from the printed link to the undone commit."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.acceptance.processes import make_place, running_host

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
COMMAND = "ls -la && echo hello from the sandbox"

needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() and os.environ.get("CI") != "true",
    reason=f"no Chromium at {CHROMIUM}; with CI=true this fails instead",
)
pytestmark = [pytest.mark.browser, needs_chromium]


@asynccontextmanager
async def visitor(root: Path):
    """Start the host, open the link it prints, and give the page with what its console complained of."""
    place = make_place(root)
    (place.workspace / "plan.txt").write_text("water the plants\n", encoding="utf-8")
    async with running_host(place) as host, async_playwright() as playwright:
        printed = await host.wait_line("Open http")
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        page = await (await browser.new_context(viewport={"width": 1000, "height": 900})).new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(re.search(r"http\S+", printed)[0])
        try:
            yield page, complaints
        finally:
            await browser.close()


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Your message").fill(text)
    await page.keyboard.press("Enter")


async def shoot(page: Page, folder: Path, name: str) -> None:
    await page.screenshot(path=folder / f"{name}.png", animations="disabled")


def answers(page: Page):
    return page.locator(".answer:not(.preview)")


async def test_a_newcomer_approves_a_command_and_reads_what_it_printed(tmp_path):
    async with visitor(tmp_path) as (page, complaints):
        await shoot(page, tmp_path, "welcome")
        await say(page, "list files")
        await expect(page.locator(".card pre")).to_have_text(COMMAND)
        await expect(page.get_by_title("waiting for you")).to_have_text("1")
        await shoot(page, tmp_path, "asked")
        await page.reload()
        await expect(page.locator(".bubble")).to_have_text("list files")
        await expect(page.locator(".card pre")).to_have_text(COMMAND)
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator(".card.settled")).to_contain_text("Approved by")
        await expect(answers(page).last).to_contain_text("plan.txt")
        await expect(answers(page).last).to_contain_text("hello from the sandbox")
        await expect(page.locator("#status")).to_be_hidden()
        await expect(page.get_by_title("waiting for you")).to_be_hidden()
        await shoot(page, tmp_path, "ran")
        before = await page.locator("#log").inner_text()
        await page.reload()
        await expect(answers(page).last).to_contain_text("hello from the sandbox")
        assert await page.locator("#log").inner_text() == before
        assert complaints == []


async def test_a_remembered_fact_shows_its_diff_lasts_into_a_new_conversation_and_can_be_undone(tmp_path):
    async with visitor(tmp_path) as (page, complaints):
        await say(page, "remember that I like green tea")
        commit = page.locator(".card", has_text="Remembered: I like green tea")
        await expect(commit.get_by_role("button", name="Undo")).to_be_visible()
        await commit.get_by_role("button", name="Diff").click()
        await expect(page.locator(".answer pre")).to_contain_text("+- Noted: I like green tea")
        await shoot(page, tmp_path, "diff")
        async with page.expect_event("load"):
            await page.get_by_role("button", name="New conversation").click()
        await say(page, "what do you remember?")
        await expect(answers(page)).to_contain_text("I like green tea")
        await shoot(page, tmp_path, "remembered")
        await page.get_by_role("link", name="remember that I like green tea").click()
        await commit.get_by_role("button", name="Undo").click()
        await expect(page.get_by_text("Undone").first).to_be_visible()
        await expect(page.locator("#log > :nth-child(2)")).to_contain_text("Remembered: I like green tea")
        await shoot(page, tmp_path, "undone")
        async with page.expect_event("load"):
            await page.get_by_role("button", name="New conversation").click()
        await say(page, "what do you remember?")
        await expect(answers(page)).to_contain_text("I remember nothing yet")
        await shoot(page, tmp_path, "forgotten")
        assert complaints == []


async def test_a_denied_command_does_not_run(tmp_path):
    async with visitor(tmp_path) as (page, complaints):
        await say(page, "run touch made-by-a-command")
        await page.get_by_role("button", name="Deny").click()
        await expect(page.locator(".card.settled")).to_contain_text("Denied by")
        await expect(answers(page).last).to_contain_text("did not run")
        assert not (tmp_path / "workspace" / "made-by-a-command").exists()
        assert complaints == []


async def test_who_approves_a_command_that_cannot_run_reads_why(tmp_path):
    async with visitor(tmp_path) as (page, complaints):
        shutil.rmtree(tmp_path / "workspace")
        await say(page, "list files")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(answers(page).last).to_contain_text("cannot be reached")
        await expect(answers(page).last).to_contain_text("create it again or set another one")
        await shoot(page, tmp_path, "no-workspace")
        assert complaints == []
