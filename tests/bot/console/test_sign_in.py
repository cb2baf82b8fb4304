from tests.bot.console.console_kit import SCRIPT, running_console


async def test_a_link_sets_a_strict_cookie_and_leads_to_the_chat():
    async with running_console() as kit, kit.browser() as browser:
        answer = await browser.get("/login", params={"token": kit.sessions.new_link_token()})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert cookie.startswith("lodger_session_8787=")
        assert (await browser.get("/", follow_redirects=True)).status_code == 200


async def test_a_used_link_signs_nobody_else_in():
    async with running_console() as kit, kit.browser() as first, kit.browser() as second:
        token = kit.sessions.new_link_token()
        await first.get("/login", params={"token": token})
        answer = await second.get("/login", params={"token": token})
        assert answer.status_code == 401
        assert "used before" in answer.text
        assert "set-cookie" not in answer.headers
        assert (await first.get("/login", params={"token": token})).status_code == 303


async def test_a_preview_of_the_link_does_not_use_it_up():
    async with running_console() as kit, kit.browser() as browser:
        token = kit.sessions.new_link_token()
        assert (await browser.head("/login", params={"token": token})).status_code == 401
        assert (await browser.get("/login", params={"token": token})).status_code == 303


async def test_signing_out_ends_the_session():
    async with running_console() as kit, kit.signed_in() as browser:
        assert (await browser.get("/session")).status_code == 204
        assert (await browser.post("/logout", data={"csrf": kit.csrf()})).status_code == 303
        answer = await browser.get("/session", headers=SCRIPT)
        assert answer.status_code == 401
        assert answer.json() == {"error": "You are not signed in."}
