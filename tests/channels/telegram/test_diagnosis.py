"""What a bot proves of itself, tried against the platform."""

import asyncio
from datetime import timedelta

import pytest

from channels.contract import Probe
from channels.telegram.diagnosis import Diagnosis
from channels.telegram.limits import Timing
from channels.telegram.transport import BotApi
from tests.platforms.telegram_faults import Fault
from tests.platforms.telegram_server import TOKEN

HOOK = "https://bot.example.org/telegram/secret-path"
HEALTHY = Probe(healthy=True, detail="Telegram: the last poll succeeded 3 s ago.")


async def diagnosed(world, *, webhook_url="", listening=None, token=TOKEN, watch_seconds=0):
    """Return the findings by name."""
    timing = Timing(second_poller_watch=timedelta(seconds=watch_seconds))
    api = BotApi(token, world.server.api_base, lambda text: text, timing)
    diagnosis = Diagnosis(api, clock=world.clock, timing=timing, webhook_url=webhook_url)
    try:
        return {finding.name: finding for finding in await diagnosis.findings(listening)}
    finally:
        await api.aclose()


def set_webhook(world, url=HOOK):
    world.server.webhook.set({"url": url, "secret_token": "s"})


async def test_a_bot_with_nothing_wrong_proves_it_and_changes_nothing(world):
    world.server.user_says(111, "waiting")
    found = await diagnosed(world)

    assert list(found) == ["token", "clock", "webhook", "receiving", "backlog", "groups"]
    assert [finding.name for finding in found.values() if not finding.ok or finding.fix] == []
    assert "@lodger_bot" in found["token"].detail
    assert len(world.server.updates.unconfirmed) == 1
    assert {call.method for call in world.server.calls} == {"getMe", "getWebhookInfo", "getUpdates"}


async def test_a_refused_token_is_the_only_finding_and_names_the_way_out(world):
    found = await diagnosed(world, token="123456789:" + "X" * 35)

    assert list(found) == ["token"]
    assert not found["token"].ok
    assert "@BotFather" in found["token"].fix
    assert "XXX" not in found["token"].detail


async def test_an_outage_is_told_from_a_refused_token(world):
    await world.server.stop()
    found = await diagnosed(world)
    await world.server.start()

    assert [(name, finding.ok) for name, finding in found.items()] == [("connection", False)]
    assert "api_base" in found["connection"].fix


@pytest.mark.parametrize(("seconds", "ok"), [(29, True), (-29, True), (45, False), (-3600, False)])
async def test_a_clock_that_is_wrong_by_more_than_half_a_minute_is_found(world, seconds, ok):
    world.server.clock_skew = timedelta(seconds=seconds)
    found = (await diagnosed(world))["clock"]

    assert found.ok is ok
    assert str(abs(seconds)) in found.detail
    assert ("clock" in found.fix) is not ok


async def test_a_webhook_that_stands_against_polling_is_named_and_left_alone_c74(world):
    set_webhook(world)
    found = await diagnosed(world)

    assert not found["webhook"].ok
    assert "bot.example.org" in found["webhook"].detail
    assert "secret-path" not in found["webhook"].detail + found["webhook"].fix
    assert "deleteWebhook" in found["webhook"].fix
    assert "receiving" not in found
    assert world.server.updates.webhook_url == HOOK


async def test_another_program_that_polls_is_found_c74(world):
    async def poll_like_another_program():
        async with world.channel_with(timing=Timing(poll_timeout=timedelta(seconds=30))) as other:
            await other.run(world.sink)

    other = asyncio.create_task(poll_like_another_program())
    await world.polls()
    diagnosis = asyncio.create_task(diagnosed(world, watch_seconds=60))
    await world.pass_time(40, step=2)
    found = (await asyncio.wait_for(diagnosis, 30))["receiving"]
    await world.stop(other)

    assert not found.ok
    assert "Another program polls" in found.detail
    assert "@BotFather" in found.fix


async def test_a_host_that_listens_is_asked_instead_of_polled_against(world):
    world.run()
    await world.polls()
    findings = {finding.name: finding for finding in await world.channel.diagnose()}

    assert findings["receiving"].ok
    assert "poll" in findings["receiving"].detail
    assert len(world.server.calls_of("getUpdates")) == 2


async def test_what_the_listening_part_says_is_passed_on(world):
    deaf = Probe(healthy=False, detail="Telegram: messages arrive but cannot be stored.")
    found = (await diagnosed(world, listening=deaf))["receiving"]

    assert (found.ok, found.detail) == (False, deaf.detail)


@pytest.mark.parametrize(
    ("url", "listening", "ok"),
    [(HOOK, HEALTHY, True), (HOOK, None, True), ("", None, True), ("", HEALTHY, False),
     ("https://other.example.org/x", HEALTHY, False), ("https://other.example.org/x", None, False)],
)  # fmt: skip
async def test_a_configured_webhook_has_to_be_the_one_that_is_set(world, url, listening, ok):
    set_webhook(world, url)
    found = await diagnosed(world, webhook_url=HOOK, listening=listening)

    assert found["webhook"].ok is ok
    assert bool(found["webhook"].fix) is not ok
    assert world.server.calls_of("getUpdates") == []


async def test_a_webhook_that_telegram_cannot_reach_says_why_until_it_is_long_ago(world):
    set_webhook(world)
    world.server.user_says(111, "hello")
    await world.until(lambda: "last_error_message" in world.server.webhook.describe())
    fresh = (await diagnosed(world, webhook_url=HOOK, listening=HEALTHY))["webhook"]
    world.server.updates.unconfirmed.clear()
    await world.clock.advance(timedelta(hours=2))
    old = (await diagnosed(world, webhook_url=HOOK, listening=HEALTHY))["webhook"]

    assert (fresh.ok, old.ok) == (False, True)
    assert "Connection refused" in fresh.detail
    assert "HTTPS" in fresh.fix


async def test_a_long_backlog_is_found(world):
    for number in range(100):
        world.server.user_says(111, f"message {number}")
    found = (await diagnosed(world))["backlog"]

    assert (found.ok, found.detail) == (False, "100 updates wait at Telegram.")


@pytest.mark.parametrize(
    ("joins", "reads", "words"),
    [(True, False, "privacy mode is on"), (True, True, "everything"), (False, False, "cannot be added to groups")],
)
async def test_what_is_heard_in_groups_is_noted_as_no_fault(world, joins, reads, words):
    world.server.bot |= {"can_join_groups": joins, "can_read_all_group_messages": reads}
    found = (await diagnosed(world))["groups"]

    assert found.ok
    assert words in found.detail


@pytest.mark.parametrize("method", ["getWebhookInfo", "getUpdates"])
@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.FLOODED])
async def test_a_trial_that_fails_is_a_finding_and_never_raises(world, method, fault):
    world.server.fault(method, fault, seconds=3)
    found = await diagnosed(world)

    failed = [name for name, finding in found.items() if not finding.ok]
    assert failed == [{"getWebhookInfo": "updates", "getUpdates": "receiving"}[method]]
