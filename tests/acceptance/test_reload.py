"""C73 on the real host: a bad edit of the configuration neither ends it nor keeps it from starting again."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from tests.acceptance.processes import OWNER, STRANGER, Place, lodger, make_place, openai_model, running_host
from tests.acceptance.test_telegram_host import WAIT, said
from tests.platforms.model_script import Answer, Call, Status
from tests.platforms.openai_server import OpenAIServer
from tests.platforms.telegram_server import TOKEN, TelegramServer

REFUSED = "The new configuration is refused"
STARTED = "I have started with the last one that worked"


@pytest.fixture
async def telegram():
    async with TelegramServer(TOKEN) as server:
        yield server


def place_for(tmp_path, telegram, **more):
    return make_place(tmp_path, telegram_base=telegram.api_base, token=TOKEN, **more)


BAD = (
    lambda text: f"{text}\n[host\n",  # (a) a syntax error
    lambda text: text.replace("time_zone", "time_zoen"),  # (b) an unknown key
    lambda text: "",  # (e) a writer that was killed
    lambda text: text[: text.index("[access]") + 20],  # (e) half a file
)


async def test_bad_edits_are_refused_the_turn_goes_on_and_the_next_start_uses_what_worked(tmp_path, telegram):
    """C73.1 and C73.2 for (a), (b), (e)."""
    release = asyncio.Event()
    async with OpenAIServer([Answer(text=["the ", "answer"], gates={1: release}), Answer(text="again")]) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        good = place.config.read_text()
        async with running_host(place) as host:
            telegram.user_says(OWNER, "hello")
            await telegram.wait_for(lambda: model.bodies, timeout=WAIT)
            for number, damage in enumerate(BAD, start=1):
                place.config.write_text(damage(good))
                host.process.send_signal(signal.SIGHUP)
                await telegram.wait_for(lambda n=number: len(refusals(telegram)) == n, timeout=WAIT)
            release.set()
            await said(telegram, "the answer")
            assert len(refusals(telegram)) == len(BAD)
            await host.kill()
        async with running_host(place) as host:
            assert STARTED in host.output
            assert str(place.config) in host.output
            await said(telegram, STARTED)
            telegram.user_says(OWNER, "hello")
            await said(telegram, "again")


def refusals(telegram):
    return [message for message in telegram.visible(OWNER) if REFUSED in message.text]


async def test_a_corrected_file_is_taken_on_by_an_owners_command(tmp_path, telegram):
    place = place_for(tmp_path, telegram)
    good = place.config.read_text()
    async with running_host(place):
        telegram.user_says(STRANGER, "/reload")
        await said(telegram, "We have not met", STRANGER)
        place.config.write_text(f"{good}\n[acess]\n")
        telegram.user_says(OWNER, "/reload")
        assert 'acess: unknown key (did you mean "access"?)' in (await said(telegram, REFUSED)).text
        place.config.write_text(good.replace(f'"telegram:{OWNER}"', f'"telegram:{OWNER}", "telegram:{STRANGER}"'))
        telegram.user_says(OWNER, "/reload")
        await said(telegram, "In force now: access.owners.")
        telegram.user_says(STRANGER, "/whoami")
        await said(telegram, "owner here", STRANGER)


async def test_a_rule_and_a_model_are_in_force_from_the_next_turn_on(tmp_path, telegram):
    script = [Answer(calls=[Call("c1", "shell", '{"command":"make x"}')]), Answer(text="Denied.")]
    async with OpenAIServer(script) as model:
        place = place_for(tmp_path, telegram)
        async with running_host(place):
            telegram.user_says(OWNER, "hello")
            await said(telegram, "scripted demo model")
            text = place.config.read_text().replace('model = "scripted/demo"', openai_model(model.base_url))
            place.config.write_text(
                f'{text}\n[[permissions.rules]]\ntool = "shell"\nmatch = "make x"\naction = "deny"\n'
            )
            telegram.user_says(OWNER, "/reload")
            await said(telegram, "permissions.rules")
            telegram.user_says(OWNER, "make it")
            await said(telegram, "Denied.")
        assert "a rule of this host denies it" in json.dumps(model.bodies[1])


async def test_a_refused_token_ends_that_channel_alone(tmp_path, telegram):
    """C73 (c): at the reload it waits for the restart; then only the channel has failed."""
    place = place_for(tmp_path, telegram)
    async with running_host(place) as host:
        place.config.write_text(place.config.read_text().replace(TOKEN, "123456789:" + "E" * 35))
        telegram.user_says(OWNER, "/reload")
        await said(telegram, "These need a restart: channels.telegram.token.")
        await host.kill()
    async with running_host(place) as host:
        await host.wait_line("channel_refused")
        assert "E" * 35 not in host.output
        ended = await lodger(place, "run", "-p", "hello")
        assert "scripted demo model" in ended.out


async def test_a_model_that_does_not_exist_fails_the_turns_of_its_agent_alone(tmp_path, telegram):
    """C73 (d): at the reload and at the next start."""
    gone = Status(status=404, body='{"error": {"message": "no such model", "code": "model_not_found"}}')
    async with OpenAIServer([gone]) as model:
        place = place_for(tmp_path, telegram)
        async with running_host(place) as host:
            place.config.write_text(
                place.config.read_text()
                + f"\n[models.gone]\n{openai_model(model.base_url)}\n"
                + f'[agents.second]\nmodel = "gone"\nworkspace = "{tmp_path}/second"\n'
            )
            telegram.user_says(OWNER, "/reload")
            await said(telegram, "agents.second")
            await only_the_second_fails(place)
            await host.kill()
        async with running_host(place):
            await only_the_second_fails(place)
            telegram.user_says(OWNER, "hello")
            await said(telegram, "scripted demo model")


async def only_the_second_fails(place: Place) -> None:
    failed = await lodger(place, "run", "--agent", "second", "-p", "hello")
    assert failed.code == 1
    assert failed.out.strip()
    assert "Traceback" not in failed.out + failed.err
    assert (await lodger(place, "run", "--agent", "lodger", "-p", "hello")).code == 0


async def test_without_anything_that_worked_a_refused_file_ends_the_start_at_once(tmp_path, telegram):
    """C72, C73.2."""
    place = place_for(tmp_path, telegram)
    place.config.write_text("[host\n")
    ended = await lodger(place, "up")
    assert ended.code == 2
    assert "line 1" in ended.err


async def test_an_agent_that_asks_nobody_still_cannot_edit_the_configuration(tmp_path, telegram):
    """C73.4: by its file tool it is refused; by its shell it is not even there."""
    arguments = json.dumps({"path": "../config.toml", "text": "[host\n"})
    line = json.dumps({"command": "cat ../config.toml; echo x > ../config.toml"})
    calls = [Call("c1", "write", arguments), Call("c2", "shell", line)]
    async with OpenAIServer([Answer(calls=calls), Answer(text="It stays.")]) as model:
        place = place_for(tmp_path, telegram, model=openai_model(model.base_url))
        text = place.config.read_text().replace("[agents.lodger]", '[agents.lodger]\npermission_mode = "unrestricted"')
        place.config.write_text(text)
        async with running_host(place):
            telegram.user_says(OWNER, "break it")
            await said(telegram, "It stays.")
        assert place.config.read_text() == text
        written, run = (message["content"] for message in model.bodies[1]["messages"][-2:])
        assert "config.toml" in str(written)
        assert "No such file" in str(run)
