import logging

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from bot.console.security import SafeResponses
from tests.bot.console.console_kit import ORIGIN, running_console

JSON = {"content-type": "application/json"}
PAGES = ("/", "/chat/main", "/chat/main/events", "/approvals", "/memory", "/memory/lodger", "/audit", "/session")


def submission_paths(app):
    return [
        route.path.format(name="main", id="approval-1", agent="lodger", revision="3f2a91c0")
        for route in app.routes
        if "POST" in (getattr(route, "methods", None) or ())
    ]


@pytest.mark.parametrize("path", PAGES)
async def test_nobody_reads_a_page_without_signing_in(path):
    async with running_console() as kit, kit.browser() as browser:
        answer = await browser.get(path)
        assert answer.status_code == 401
        assert "The host prints a link" in answer.text


async def test_every_route_that_changes_something_needs_a_session_and_its_token():
    async with running_console() as kit, kit.browser() as stranger, kit.signed_in() as browser:
        paths = submission_paths(kit.app)
        assert len(paths) >= 7
        for path in paths:
            assert (await stranger.post(path, data={"text": "hi"})).status_code == 401
            assert (await browser.post(path, data={"text": "hi"})).status_code == 403
            assert (await browser.post(path, data={"csrf": "wrong"})).status_code == 403
            assert (await browser.post(path, content=b'{"csrf": "\\ud800"}', headers=JSON)).status_code == 403
        assert kit.host.events == []
        assert kit.host.decided == []
        assert kit.host.undone == []


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"origin": "http://["},
    ],
)
async def test_a_submission_from_another_site_is_refused_even_with_the_token(headers):
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "text": "hi", "key": "key-12345678"}
        answer = await browser.post("/chat/main/messages", data=fields, headers=headers)
        assert answer.status_code == 403
        assert kit.host.events == []


async def test_a_submission_from_the_own_page_is_taken():
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "text": "hi", "key": "key-12345678"}
        headers = {"sec-fetch-site": "same-origin", "origin": ORIGIN}
        assert (await browser.post("/chat/main/messages", data=fields, headers=headers)).status_code == 303
        assert len(kit.host.events) == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost.evil", ""])
async def test_a_foreign_host_name_is_refused_because_of_dns_rebinding(host):
    async with running_console() as kit, kit.signed_in() as browser:
        for path in ("/", "/login", "/static/console.css"):
            assert (await browser.get(path, headers={"host": host})).status_code == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8787", "127.0.0.1:1", "[::1]", "[::1]:8787", "localhost:oops"]
)
async def test_names_of_this_machine_are_answered_at_any_port(host):
    async with running_console() as kit, kit.browser() as browser:
        assert (await browser.get("/", headers={"host": host})).status_code == 401


async def test_other_host_names_can_be_allowed_and_replace_the_usual_ones():
    async with running_console(allowed_hosts=["Console.example"]) as kit, kit.browser() as browser:
        assert (await browser.get("/", headers={"host": "console.example"})).status_code == 401
        assert (await browser.get("/")).status_code == 421


async def test_every_answer_carries_the_strict_policy_and_is_not_kept():
    async with running_console() as kit, kit.browser() as stranger, kit.signed_in() as browser:
        answers = [
            await browser.get("/chat/main"),
            await browser.get("/nowhere"),
            await browser.get("/static/console.css"),
            await stranger.get("/"),
            await stranger.get("/healthz"),
            await browser.get("/", headers={"host": "evil.example"}),
        ]
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'self';")
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"


async def test_no_page_has_an_inline_script_style_or_handler():
    async with running_console() as kit, kit.signed_in() as browser:
        pages = ("/chat/main", "/approvals", "/memory/lodger", "/memory/lodger/commits/3f2a91c0", "/audit", "/nowhere")
        for page in pages:
            html = (await browser.get(page)).text
            assert "<style" not in html
            assert " style=" not in html
            assert "<script>" not in html
            assert " onclick=" not in html


async def test_a_page_that_breaks_is_logged_without_its_query_and_answers_500(caplog):
    async def broken(_request):
        raise RuntimeError("a bug")

    app = Starlette(routes=[Route("/broken", broken)], middleware=[Middleware(SafeResponses)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=ORIGIN) as browser:
        with caplog.at_level(logging.ERROR):
            answer = await browser.get("/broken?token=not-for-the-log")
    assert answer.status_code == 500
    assert "a bug" not in answer.text
    assert [record.message for record in caplog.records] == ["console_request_crashed"]
    assert "not-for-the-log" not in caplog.text
