import pytest

from bot.host_api import Check
from tests.bot.console.console_kit import running_console

RED = Check(name="telegram", ok=False, detail="no frame for 60 s")


async def test_anybody_may_ask_whether_the_process_lives():
    async with running_console() as kit, kit.browser() as probe:
        answer = await probe.get("/healthz", headers={"host": "10.0.0.7:8787"})
        assert (answer.status_code, answer.text) == (200, "ok")


@pytest.mark.parametrize(
    ("checks", "status"),
    [
        ((Check(name="store", ok=True, detail=""),), 200),
        ((Check(name="store", ok=True, detail=""), RED), 503),
        ((Check(name="store", ok=True, detail=""), Check(name="remote", ok=False, detail="", required=False)), 200),
    ],
)
async def test_readiness_is_red_when_a_required_check_is(checks, status):
    async with running_console() as kit, kit.browser() as probe:
        kit.host.checks = checks
        answer = await probe.get("/readyz")
        assert answer.status_code == status
        assert answer.json() == {"ready": status == 200}


async def test_details_are_for_the_signed_in():
    async with running_console() as kit, kit.browser() as stranger, kit.signed_in() as browser:
        kit.host.checks = (RED,)
        assert "telegram" not in (await stranger.get("/readyz")).text
        assert (await browser.get("/readyz")).json()["checks"] == [
            {"name": "telegram", "ok": False, "detail": "no frame for 60 s", "required": True}
        ]


async def test_a_store_that_is_down_is_not_ready():
    async with running_console() as kit, kit.browser() as probe:
        kit.host.down = True
        assert (await probe.get("/readyz")).status_code == 503
        assert (await probe.get("/healthz")).status_code == 200


async def test_anybody_may_read_what_is_counted():
    async with running_console() as kit, kit.browser() as probe:
        answer = await probe.get("/metrics", headers={"host": "10.0.0.7:8787"})
        assert (answer.status_code, answer.content) == (200, kit.host.counted)
        assert answer.headers["content-type"].startswith("text/plain; version=")
