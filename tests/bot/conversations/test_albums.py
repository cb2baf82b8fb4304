"""Albums: what was sent as one is one message, however its parts arrive."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.conversations.albums import ALBUM_PAUSE, sent_together
from core.contracts.addresses import Attachment, DeleteBody, EditBody, MessageBody, Privacy
from core.contracts.delivery import INBOX_QUEUE, InboxState
from core.contracts.messages import ReminderPart, TextPart
from core.models.scripted import says
from core.stores.connection import Database
from tests.bot.conversations.grouping import BOB, GROUP, admitted
from tests.bot.conversations.hosting import ALICE, HERE, MIKE, hosting

MOMENT = timedelta(milliseconds=100)


@pytest.fixture
def opened(tmp_path):
    def open_host(*steps, **more):
        return hosting(tmp_path, *(steps or [says("one"), says("two"), says("three")]), **more)

    return open_host


def photo(name: str, text: str = "", *, album: str = "mg1", addressed: bool = True) -> MessageBody:
    file = Attachment(handle=name, name=f"{name}.jpg", media_type="image/jpeg")
    return MessageBody(text=text, attachments=(file,), album=album, addressed=addressed)


async def arrives(host, body, **more) -> None:
    """Let a part arrive, be routed, and a moment pass."""
    for name in ("p1", "p2", "p3", "p4"):
        host.channel.files[name] = b"data of " + name.encode()
    await host.arrives(body, **more)
    await host.settle()
    await host.clock.advance(MOMENT)


async def pauses(host, where=HERE) -> None:
    """Let no further part come for so long that the album is whole."""
    await host.clock.advance(ALBUM_PAUSE)
    await host.ring(INBOX_QUEUE, where.key)
    await host.settle()


def asked(host) -> list[list[str]]:
    """Return the texts of the newest user message of each request."""
    return [
        [part.text for part in request.messages[-1].parts if isinstance(part, TextPart)]
        for request in host.model.requests
    ]


def reminder(host, kind: str) -> list[str]:
    parts = [part for message in host.model.requests[-1].messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, ReminderPart) and part.kind == kind]


async def test_an_album_is_one_turn_with_its_files_in_order_and_its_caption_once(opened):
    """C10."""
    async with opened() as host:
        for body in (photo("p1", "which is sharpest?"), photo("p2"), photo("p3")):
            await arrives(host, body)
        assert asked(host) == []
        await pauses(host)
        assert asked(host) == [["which is sharpest?", "[p2.jpg]", "[p3.jpg]"]]
        assert [text.count(f"p{number}.jpg (image/jpeg") for number, text in enumerate(files(host), 1)] == [1, 1, 1]
        assert host.texts() == ["one"]


def files(host) -> list[str]:
    return reminder(host, "attachments")


async def test_a_part_that_comes_a_little_later_is_part_of_the_same_turn(opened):
    """C10, first variant."""
    async with opened() as host:
        for body in (photo("p1", "which is sharpest?"), photo("p2")):
            await arrives(host, body)
        await host.clock.advance(timedelta(seconds=1.2) - 2 * MOMENT)
        await arrives(host, photo("p3"))
        await pauses(host)
        assert [len(texts) for texts in asked(host)] == [3]


async def test_a_text_between_the_parts_is_a_turn_of_its_own_behind_the_album(opened):
    """C10, second variant."""
    async with opened() as host:
        await arrives(host, photo("p1", "which is sharpest?"))
        await arrives(host, photo("p2"))
        await arrives(host, MessageBody(text="hurry"))
        await arrives(host, photo("p3"))
        await pauses(host)
        assert asked(host) == [["which is sharpest?", "[p2.jpg]", "[p3.jpg]"], ["hurry"]]


async def test_a_part_that_comes_too_late_is_a_message_of_its_own_that_says_where_it_belongs(opened):
    """C10: a documented follow-up, never lost."""
    async with opened() as host:
        await arrives(host, photo("p1", "which is sharpest?"))
        await pauses(host)
        assert reminder(host, "album") == []
        await arrives(host, photo("p2"))
        await pauses(host)
        assert asked(host) == [["which is sharpest?"], ["[p2.jpg]"]]
        assert reminder(host, "album") == ["What follows belongs to the album before."]


async def test_a_restart_in_the_middle_of_an_album_does_no_harm(tmp_path, opened):
    """C10: what waits is rows, and their times are stored."""
    database = Database.open(":memory:")
    async with opened(database=database) as first:
        await arrives(first, photo("p1", "which is sharpest?"))
    more = {"memory": first.memory, "clock": first.clock, "channel": first.channel, "model": first.model}
    async with opened(database=database, **more) as second:
        await arrives(second, photo("p2"))
        await pauses(second)
        assert asked(second) == [["which is sharpest?", "[p2.jpg]"]]
    await database.close()


async def test_while_an_album_may_grow_other_people_and_commands_are_heard(opened):
    async with opened() as host:
        await arrives(host, photo("p1"))
        await arrives(host, MessageBody(text="/whoami"))
        await arrives(host, MessageBody(text="hello"), who=MIKE)
        assert "You are Alice" in host.texts()[0]
        assert asked(host) == [["hello"]]


async def test_the_wait_for_further_parts_ends_when_it_should(opened):
    async with opened() as host:
        await host.arrives(photo("p1"))
        assert (await host.ring(INBOX_QUEUE, HERE.key)).wait == ALBUM_PAUSE
        await host.clock.advance(timedelta(seconds=1))
        assert (await host.ring(INBOX_QUEUE, HERE.key)).wait == timedelta(seconds=0.5)
        await host.clock.advance(timedelta(seconds=0.5))
        assert await host.ring(INBOX_QUEUE, HERE.key) is None


async def test_a_clock_that_is_set_back_does_not_hold_an_album(opened):
    async with opened() as host:
        await host.arrives(photo("p1"))
        host.channel.files["p1"] = b"data"
        host.clock.step_wall(-timedelta(hours=2))
        assert await host.ring(INBOX_QUEUE, HERE.key) is None


async def test_an_album_with_a_mention_in_its_caption_is_for_the_agent_as_a_whole(opened):
    async with opened() as host:
        await admitted(host)
        more = {"who": BOB, "where": GROUP, "privacy": Privacy.PRIVATE_GROUP}
        await arrives(host, photo("p1", addressed=False), **more)
        await arrives(host, photo("p2", "@agent which?"), **more)
        await pauses(host, GROUP)
        assert asked(host) == [["[p1.jpg]", "@agent which?"]]


async def test_an_album_that_is_not_for_the_agent_is_overheard(opened):
    async with opened() as host:
        await admitted(host)
        more = {"who": BOB, "where": GROUP, "privacy": Privacy.PRIVATE_GROUP}
        for name in ("p1", "p2"):
            await arrives(host, photo(name, addressed=False), **more)
        await pauses(host, GROUP)
        rows = [
            row for row in await host.stores.delivery.inbox_of(GROUP.key) if isinstance(row.event.body, MessageBody)
        ]
        assert [row.state for row in rows] == [InboxState.DONE, InboxState.DONE]
        assert asked(host) == []


async def test_the_caption_may_be_edited_and_a_part_deleted_while_the_album_waits(opened):
    async with opened() as host:
        await arrives(host, photo("p1", "wich?"), key="one")
        await arrives(host, photo("p2"), key="two")
        await arrives(host, EditBody(message_key="one", text="which?"))
        await arrives(host, DeleteBody(message_key="two"))
        await pauses(host)
        assert asked(host) == [["which?"]]


async def test_albums_of_two_people_are_two(opened):
    async with opened() as host:
        await arrives(host, photo("p1"), who=ALICE)
        await arrives(host, photo("p2"), who=MIKE)
        await pauses(host)
        assert asked(host) == [["[p1.jpg]"], ["[p2.jpg]"]]


async def test_what_is_no_album_is_sent_by_itself(opened):
    async with opened() as host:
        for body in (MessageBody(text="a"), photo("p1"), MessageBody(text="b"), photo("p2"), photo("p3", album="mg2")):
            await host.arrives(body)
        rows = await host.stores.delivery.new_events(HERE.key)
        first = rows[0].id
        assert [[row.id - first for row in together] for together in sent_together(rows)] == [[0], [1, 3], [2], [4]]


async def test_a_late_part_of_an_album_that_was_for_the_agent_is_for_it_too(opened):
    """In a group one part alone carries the mention."""
    async with opened() as host:
        await admitted(host)
        more = {"who": BOB, "where": GROUP, "privacy": Privacy.PRIVATE_GROUP}
        await arrives(host, photo("p1", "@agent which?"), **more)
        await pauses(host, GROUP)
        await arrives(host, photo("p2", addressed=False), **more)
        await pauses(host, GROUP)
        assert asked(host) == [["@agent which?"], ["[p2.jpg]"]]
        await arrives(host, photo("p3", album="mg2", addressed=False), **more)
        await pauses(host, GROUP)
        assert len(asked(host)) == 2
