"""`lodger chat` over a pipe: a script talks as a person would."""

import asyncio

from tests.acceptance.processes import lodger, make_place, openai_model, running_host
from tests.platforms.model_script import Answer
from tests.platforms.openai_server import OpenAIServer

BOUND_SECONDS = 60


async def test_every_line_is_answered_before_the_next_and_a_number_presses_its_button(tmp_path):
    place = make_place(tmp_path)
    ended = await lodger(place, "chat", stdin="list files\n\n#2\nhello\n")
    lines = ended.out.splitlines()

    assert (ended.code, ended.err) == (0, "")
    assert lines[0].startswith("Talking to lodger. ")
    assert "    ls -la && echo hello from the sandbox" in lines
    assert "  #1 Approve  #2 Deny" in lines
    assert "You said no, so `shell` did not run." in ended.out
    assert ended.out.index("You said no") < ended.out.index("I am a scripted demo model")


async def test_the_history_of_a_chat_is_shown_again_and_another_name_is_another_chat(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place):
        await lodger(place, "chat", stdin="hello\n")
        again, other = await asyncio.gather(lodger(place, "chat"), lodger(place, "chat", "--name", "b & b?", stdin=""))
        wrong = await lodger(place, "chat", stdin="#9\nhello\n")
    assert again.out.count("I am a scripted demo model") == 1
    assert ": hello\n" in again.out
    assert other.out.count("\n") == 1
    assert (wrong.code, wrong.err) == (1, "lodger: there is no such button\n")


async def test_what_no_chat_can_be_is_a_usage_error(tmp_path):
    place = make_place(tmp_path)
    slash = await lodger(place, "chat", "--name", "a/b")
    agent = await lodger(place, "chat", "--agent", "other")
    assert (slash.code, slash.err) == (2, "lodger: the name of a chat has no '/'\n")
    assert agent.code == 2
    assert agent.err.startswith("lodger: in the terminal 'lodger' answers; ")


async def test_the_first_agent_of_the_configuration_answers_and_is_named(tmp_path):
    more = f'[agents.amy]\nworkspace = "{tmp_path / "amy"}"'
    place = make_place(tmp_path, more=more)
    async with running_host(place):
        ended = await lodger(place, "chat", stdin="/status\n")
        listed = await lodger(place, "agents")
        asked = await lodger(place, "run", "--agent", "amy", "-p", "hello")
        of_amy = await lodger(place, "conversations", "--agent", "amy")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["amy", "lodger"]
    assert ended.out.startswith("Talking to lodger. ")
    assert asked.code == 0
    assert of_amy.out.split()[1::3] == ["amy"]


async def test_a_host_that_dies_under_an_answer_ends_the_script(tmp_path):
    async with OpenAIServer([Answer(text=["I ", "wait"], gates={1: asyncio.Event()})]) as model:
        place = make_place(tmp_path, model=openai_model(model.base_url))
        async with running_host(place) as host, asyncio.timeout(BOUND_SECONDS), asyncio.TaskGroup() as group:
            chat = group.create_task(lodger(place, "chat", stdin="hello\nand more\n"))
            while not model.requests:
                await asyncio.sleep(0.01)
            await host.kill()
    assert chat.result().code == 1
    assert chat.result().err == "lodger: the host stopped before the answer came\n"
    assert "(The host stopped." in chat.result().out
