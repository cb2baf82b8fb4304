"""A backup of a working host, restored: every conversation goes on as if nothing had happened."""

from __future__ import annotations

import asyncio
import json

from tests.acceptance.processes import lodger, make_place, openai_model, running_host
from tests.platforms.model_script import Answer
from tests.platforms.openai_server import OpenAIServer


def answer(body):
    return Answer(text="I see.")


async def say(place, text, *more):
    ran = await lodger(place, "run", "-p", text, "--output-format", "json", *more)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


async def test_a_restored_host_goes_on_with_the_request_it_would_have_sent(tmp_path):
    async with OpenAIServer([answer]) as server:
        place = make_place(tmp_path, model=openai_model(server.base_url))
        async with running_host(place):
            first = await say(place, "hello")
            conversation = ("--conversation", first["conversation_id"])
            taken = await lodger(place, "backup", "b.tar")
            again = await lodger(place, "backup", "b.tar")
            await say(place, "what did I say?", *conversation)
            refused = await lodger(place, "restore", "b.tar", "--force")
        expected = server.bodies[-1]
        unforced = await lodger(place, "restore", "b.tar")
        restored = await lodger(place, "restore", "b.tar", "--force")
        async with running_host(place):
            await say(place, "what did I say?", *conversation)
        # The last message differs in the time that its reminder tells.
        assert server.bodies[-1]["messages"][:-1] == expected["messages"][:-1]
        assert server.bodies[-1].get("tools") == expected.get("tools")

    assert (taken.code, taken.out.startswith("Backup written: ")) == (0, True), taken.err
    assert (again.code, "exists already" in again.err) == (1, True)
    assert (refused.code, "End it first" in refused.err) == (1, True)
    assert (unforced.code, "--force" in unforced.err) == (1, True)
    assert restored.code == 0, restored.err
    assert len(list(place.data.glob("replaced-*/host.db"))) == 1


async def test_without_a_running_host_a_backup_is_taken_and_restored_elsewhere(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = make_place(tmp_path / "here"), make_place(tmp_path / "there")
    await lodger(here, "run", "-p", "remember that I like green tea")
    taken = await lodger(here, "backup")
    assert taken.code == 0, taken.err
    (backup,) = (here.data / "backups").iterdir()
    restored = await lodger(there, "restore", str(backup))
    shown = await lodger(there, "memory", "show", "notes.md")
    assert restored.code == 0, restored.err
    assert "green tea" in shown.out


async def test_backups_are_taken_while_turns_run(tmp_path):
    place = make_place(tmp_path)
    async with running_host(place):
        talks = [asyncio.create_task(lodger(place, "run", "-p", f"remember that I like tea {n}")) for n in range(3)]
        taken = [await lodger(place, "backup", f"{n}.tar") for n in range(2)]
        assert [ran.code for ran in await asyncio.gather(*talks)] == [0, 0, 0]
    assert [each.code for each in taken] == [0, 0]
    assert (await lodger(place, "restore", "1.tar", "--force")).code == 0
    assert (await lodger(place, "run", "-p", "what do you remember?")).code == 0
