"""Pairing: a stranger gets a code, an owner lets them in with it, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.config.model import DirectMessages
from bot.conversations.pairing import CODE_LIVES
from core.contracts.addresses import MessageBody
from core.models.scripted import says
from tests.bot.conversations.hosting import ALICE, MIKE, OPAL, SAM, chat, hosting, make_settings

SAMS = chat("444")


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or [says("Hello Sam")] * 3), **more)

    return open_host


def code_in(text: str) -> str:
    return text.split("code: ")[1].split(maxsplit=1)[0]


async def code_of_sam(host) -> str:
    await host.says("hi", who=SAM, where=SAMS)
    return code_in(host.texts(SAMS)[-1])


async def test_a_stranger_gets_a_code_and_no_turn(opened):
    async with opened() as host:
        code = await code_of_sam(host)
        assert len(code) == 8
        assert code.isalnum()
        assert host.model.requests == []


async def test_writing_again_gives_the_same_code(opened):
    async with opened() as host:
        assert await code_of_sam(host) == await code_of_sam(host)
        assert len(await host.stores.people.pairings()) == 1


async def test_with_the_code_an_owner_lets_them_in(opened):
    async with opened() as host:
        await host.says(f"/pair {await code_of_sam(host)}")
        assert host.texts()[-1] == "Sam (telegram:444) may talk to me now."
        await host.says("hi again", who=SAM, where=SAMS)
        assert host.texts(SAMS)[-1] == "Hello Sam"
        assert "paired" in await host.audited()


async def test_small_letters_and_spaces_do_not_matter(opened):
    async with opened() as host:
        code = await code_of_sam(host)
        await host.says(f"/pair   {code.lower()} ")
        assert "may talk to me now" in host.texts()[-1]


async def test_a_code_works_once(opened):
    async with opened() as host:
        code = await code_of_sam(host)
        await host.says(f"/pair {code}")
        await host.says(f"/pair {code}")
        assert "There is no open code" in host.texts()[-1]


async def test_a_code_ends_after_an_hour_and_a_new_one_is_given(opened):
    async with opened() as host:
        code = await code_of_sam(host)
        await host.clock.advance(CODE_LIVES)
        await host.says(f"/pair {code}")
        assert "There is no open code" in host.texts()[-1]
        assert await code_of_sam(host) != code


@pytest.mark.parametrize("who", [MIKE, OPAL, SAM], ids=["member", "operator", "the stranger"])
async def test_nobody_but_an_owner_lets_people_in(opened, who):
    async with opened() as host:
        code = await code_of_sam(host)
        where = SAMS if who is SAM else chat(who.identity)
        await host.says(f"/pair {code}", who=who, where=where)
        assert len(await host.stores.people.pairings()) == 1
        await host.says("hi", who=SAM, where=SAMS)
        assert host.model.requests == []


@pytest.mark.parametrize("code", ["", "NOTACODE", "' OR 1=1 --", "x" * 500])
async def test_a_wrong_code_is_answered(opened, code):
    async with opened() as host:
        await host.says(f"/pair {code}")
        assert host.texts()[-1].startswith(("Which code?", "There is no open code"))


async def test_where_only_the_list_counts_no_code_is_offered(opened, tmp_path):
    settings = make_settings(tmp_path)
    closed = replace(settings, access=replace(settings.access, direct_messages=DirectMessages.ALLOWLIST))
    async with opened(settings=closed) as host:
        await host.says("hi", who=SAM, where=SAMS)
        assert host.texts(SAMS) == [
            "I do not know you, so I cannot help you here. My owner can add you to the allow list."
        ]
        assert await host.stores.people.pairings() == ()


async def test_an_owner_needs_no_code(opened):
    async with opened() as host:
        await host.clock.advance(timedelta(days=1))
        await host.says("hi", who=ALICE)
        assert host.texts() == ["Hello Sam"]


async def test_a_code_that_an_owner_forwards_lets_nobody_in(opened):
    """A stranger writes "/pair CODE", and the owner only shows it to the agent."""
    async with opened() as host:
        code = await code_of_sam(host)
        await host.arrives(MessageBody(text=f"/pair {code}", forwarded_from="Sam"))
        await host.settle()
        assert not await host.stores.people.is_admitted(SAM.identity)
        assert "paired" not in await host.audited()
