"""Servers and workspaces: admitted as a whole, by an owner or by their install; guests by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.config.model import AccessSettings
from bot.conversations.reception import _NOT_HERE
from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import CommandBody, MessageBody, PressBody, Privacy, Sender
from core.contracts.people import PlaceState
from core.models.scripted import says
from tests.bot.conversations.hosting import ALICE, CHANNEL, chat, hosting, make_settings

ROOM = replace(chat("C1"), space="T0TEAM")
OTHER_ROOM = replace(chat("C2"), space="T0TEAM")
DIRECT = replace(chat("D1"), space="T0TEAM")
BOB = Sender(identity=f"{CHANNEL}:555", name="Bob")
GUEST = replace(BOB, is_guest=True)
INSTALLED = replace(FAKE_CAPABILITIES, is_installed=True, code_limit=8_000)


def opened(directory, *, installed: bool, access: AccessSettings | None = None):
    settings = make_settings(directory)
    if access is not None:
        settings = replace(settings, access=replace(access, owners=settings.access.owners))
    channel = FakeChannel(CHANNEL, capabilities=INSTALLED) if installed else None
    return hosting(directory, says("one"), says("two"), channel=channel, settings=settings)


async def says_in(host, address, *, who=BOB, privacy=Privacy.PUBLIC, body=None):
    await host.arrives(body or MessageBody(text="hi"), who=who, where=address, privacy=privacy)
    await host.settle()


async def test_one_press_admits_every_room_of_a_server(tmp_path):
    async with opened(tmp_path, installed=False) as host:
        await says_in(host, ROOM)
        await says_in(host, OTHER_ROOM)
        assert (len(host.seen(ROOM)), len(host.seen(OTHER_ROOM))) == (1, 0)
        await says_in(host, ROOM, who=ALICE, body=PressBody(token="g:allow", card="1", acknowledge="q"))
        await says_in(host, OTHER_ROOM)
        assert host.texts(OTHER_ROOM) == ["one"]


async def test_where_the_agent_is_installed_nobody_is_asked(tmp_path):
    async with opened(tmp_path, installed=True) as host:
        await says_in(host, ROOM)
        assert host.texts(ROOM) == ["one"]
        place = await host.stores.people.place(f"{ROOM.channel}/{ROOM.account}/space:T0TEAM")
        assert (place.state, place.by) == (PlaceState.ADMITTED, None)


async def test_a_member_of_an_admitted_workspace_needs_no_code_in_a_direct_chat(tmp_path):
    async with opened(tmp_path, installed=True) as host:
        await says_in(host, DIRECT, privacy=Privacy.DIRECT)
        await says_in(host, DIRECT, privacy=Privacy.DIRECT)
        assert host.texts(DIRECT) == ["one", "two"]


@pytest.mark.parametrize("privacy", [Privacy.DIRECT, Privacy.PUBLIC])
async def test_a_guest_talks_only_where_a_rule_lets_guests(tmp_path, privacy):
    async with opened(tmp_path / "shut", installed=True) as host:
        await says_in(host, ROOM, who=GUEST, privacy=privacy)
        assert host.model.requests == []
        assert host.texts(ROOM)
    async with opened(tmp_path / "open", installed=True, access=AccessSettings(guests=True)) as host:
        await says_in(host, ROOM, who=GUEST, privacy=privacy)
        assert host.texts(ROOM) == ["one"]


async def test_a_command_of_the_platform_is_answered_to_its_giver_alone(tmp_path):
    async with opened(tmp_path, installed=True) as host:
        for text in ("/whoami", "/nonsense", "not a command"):
            await says_in(host, ROOM, body=CommandBody(text=text, acknowledge="q"))
        whoami, unknown, words = [text for _, text in host.channel.acknowledgements]
        assert "member" in whoami
        assert "no command /nonsense" in unknown
        assert "/help" in words
        assert host.seen(ROOM) == []
        assert host.model.requests == []


async def test_where_the_agent_does_not_work_a_command_says_so(tmp_path):
    async with opened(tmp_path, installed=False) as host:
        await says_in(host, ROOM, body=CommandBody(text="/status", acknowledge="q"))
        assert [text for _, text in host.channel.acknowledgements] == [_NOT_HERE]


async def test_a_stranger_gets_a_code_by_a_command_in_a_direct_chat(tmp_path):
    async with opened(tmp_path, installed=False) as host:
        await says_in(host, chat("D9"), privacy=Privacy.DIRECT, body=CommandBody(text="/status", acknowledge="q"))
        ((_, told),) = host.channel.acknowledgements
        assert "code" in told
