import pytest

from tests.bot.console.console_kit import SCRIPT, running_console
from tests.bot.console.fake_host import approval


async def test_an_open_approval_is_shown_whole_with_its_rule_and_choices():
    async with running_console() as kit, kit.signed_in() as browser:
        shown = "printf '<b>' && " + "x" * 20_000 + "\nend"
        kit.host.approvals = [approval(shown=shown)]
        page = (await browser.get("/approvals")).text
        assert shown.replace("<", "&lt;").replace(">", "&gt;").replace("&&", "&amp;&amp;").replace("'", "&#39;") in page
        assert "{ tool = &#34;shell&#34;, match = &#34;git push *&#34; }" in page
        for choice in ("approve", "conversation", "always", "deny"):
            assert f'name="choice" value="{choice}"' in page


async def test_where_no_rule_can_cover_the_call_none_is_offered():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.approvals = [approval(remember="")]
        page = (await browser.get("/approvals")).text
        assert 'value="approve"' in page
        assert 'value="always"' not in page
        assert 'value="conversation"' not in page


async def test_an_approval_that_reads_differently_from_what_runs_shows_why():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.approvals = [approval(shown="rm \u202eexe.txt")]
        page = (await browser.get("/approvals")).text
        assert "\u202e" not in page
        assert "U+202E" in page


@pytest.mark.parametrize("choice", ["approve", "conversation", "always", "deny"])
async def test_a_decision_reaches_the_host_and_its_outcome_is_told_once(choice):
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "choice": choice, "reason": " not on Fridays "}
        answer = await browser.post("/approvals/approval-1", data=fields, follow_redirects=True)
        assert kit.host.decided == [("approval-1", choice, "Ada", "not on Fridays")]
        assert f"Decided: {choice}." in answer.text
        assert "Nothing waits" not in answer.text
        assert f"Decided: {choice}." not in (await browser.get("/approvals")).text


async def test_the_reason_stands_beside_deny_so_that_enter_in_it_never_approves():
    async with running_console() as kit, kit.signed_in() as browser:
        page = (await browser.get("/approvals")).text
        (form,) = [part for part in page.split("<form")[1:] if 'name="reason"' in part]
        assert 'value="deny"' in form.partition("</form>")[0]
        assert 'value="approve"' not in form.partition("</form>")[0]


async def test_a_choice_that_does_not_exist_decides_nothing():
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/approvals/approval-1", data={"csrf": kit.csrf(), "choice": "maybe"})
        assert answer.status_code == 400
        assert kit.host.decided == []


async def test_an_approval_that_is_gone_is_not_found():
    async with running_console() as kit, kit.signed_in() as browser:
        fields = {"csrf": kit.csrf(), "choice": "deny"}
        answer = await browser.post("/approvals/approval-9", json=fields, headers=SCRIPT)
        assert answer.status_code == 404


async def test_every_page_says_how_many_approvals_wait():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.approvals = [approval(id=f"approval-{n}") for n in range(3)]
        assert 'title="waiting for you">3</span>' in (await browser.get("/audit")).text
        kit.host.approvals = []
        assert 'title="waiting for you" hidden>0</span>' in (await browser.get("/audit")).text


async def test_a_pairing_request_can_be_accepted():
    async with running_console() as kit, kit.signed_in() as browser:
        assert "telegram:222" in (await browser.get("/approvals")).text
        answer = await browser.post("/pairings", data={"csrf": kit.csrf(), "code": "k7wq2m"}, follow_redirects=True)
        assert kit.host.paired == [("k7wq2m", "Ada")]
        assert "Grace may talk to the agent now." in answer.text


async def test_a_code_that_the_host_does_not_know_is_refused():
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post("/pairings", data={"csrf": kit.csrf(), "code": "x"})
        assert answer.status_code == 400
        assert kit.host.paired == []


async def test_nothing_waiting_is_said():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.approvals, kit.host.waiting_pairings = [], []
        assert "Nothing waits for you." in (await browser.get("/approvals")).text
