import pytest

from channels.telegram.administrators import Administrators
from channels.telegram.health import PollHealth
from channels.telegram.inbound_senders import BotAccount
from channels.telegram.intake import UpdateIntake
from channels.telegram.limits import Timing
from channels.telegram.presses import PressAnswers
from channels.telegram.transport import BotApi
from core.contracts.errors import NotFound, StorageFull
from tests.channels.telegram.conftest import Sink
from tests.platforms.telegram_json import message
from tests.platforms.telegram_server import TOKEN


@pytest.fixture
async def intake(world):
    api = BotApi(TOKEN, world.server.api_base, lambda text: text)
    health = PollHealth(world.clock)
    health.polled()
    account = BotAccount(channel="telegram", id=900, username="lodger_bot")
    asked = Administrators(api, channel="telegram", clock=world.clock, timing=Timing())
    async with PressAnswers(api, world.clock, Timing()) as presses, asked as administrators:
        reader = UpdateIntake(account, clock=world.clock, health=health, presses=presses, administrators=administrators)
        yield reader, health
    await api.aclose()


async def test_an_event_is_handed_over_and_may_be_confirmed(intake):
    reader, _ = intake
    sink = Sink()
    event = await reader.read({"update_id": 1, "message": message(text="hi")})

    assert await reader.hand_over(event, sink)
    assert sink.texts == ["hi"]


async def test_an_event_that_was_not_stored_may_not_be_confirmed_and_is_told_once(intake, caplog):
    reader, health = intake
    event = await reader.read({"update_id": 1, "message": message()})
    full = Sink(errors=[StorageFull("full"), StorageFull("full")])

    assert [await reader.hand_over(event, full) for _ in range(3)] == [False, False, True]
    assert [record.message for record in caplog.records] == ["telegram_event_not_stored"]
    assert health.probe().healthy


@pytest.mark.parametrize("bug", [RuntimeError("a bug"), NotFound("agent", "x")])
async def test_an_event_that_breaks_the_host_is_done_with(intake, caplog, bug):
    reader, _ = intake
    event = await reader.read({"update_id": 1, "message": message(text="secret words")})

    assert await reader.hand_over(event, Sink(errors=[bug]))
    assert [(record.message, record.event_key) for record in caplog.records] == [
        ("telegram_event_crashed", "message/111/7")
    ]
    assert "secret words" not in caplog.text


async def test_a_malformed_update_is_logged_without_what_it_says(intake, caplog):
    reader, _ = intake

    assert await reader.read({"message": {"text": "secret words"}}) is None
    assert await reader.read("no object") is None
    assert [record.message for record in caplog.records] == ["telegram_update_malformed"] * 2
    assert "secret words" not in caplog.text
