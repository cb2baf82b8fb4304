from core.contracts.people import AuditEntry
from tests.bot.console.console_kit import running_console
from tests.bot.console.fake_host import NOW


async def test_the_trail_names_who_did_what_and_when():
    async with running_console() as kit, kit.signed_in() as browser:
        page = (await browser.get("/audit")).text
        assert '<time datetime="2026-01-01T12:00:00+00:00" data-full>' in page
        assert "<td>Ada</td>" in page
        assert "<td>approval_decided</td>" in page
        assert '<span class="muted">tool</span> shell' in page


async def test_an_entry_cannot_bring_markup_into_the_page():
    async with running_console() as kit, kit.signed_in() as browser:
        attack = "<script>alert(1)</script>"
        kit.host.trail = [AuditEntry(at=NOW, who=attack, what=attack, detail={attack: attack})]
        page = (await browser.get("/audit")).text
        assert "<script>" not in page
        assert page.count("&lt;script&gt;") == 4


async def test_an_empty_trail_is_said():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.trail = []
        assert "Nothing was recorded yet." in (await browser.get("/audit")).text
