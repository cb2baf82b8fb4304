"""What every AttachmentStore promises; run on SQLite in a file and in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.attachments import StoredAttachment
from tests.core.stores.samples import CONVERSATION, START, World, open_world, seed

PHOTO = StoredAttachment(
    id="file-1",
    conversation_id=CONVERSATION,
    inbox_id=7,
    position=0,
    name="photo.jpg",
    media_type="image/jpeg",
    size_bytes=9,
    path="/data/attachments/conv-1/7-0-photo.jpg",
    created_at=START,
)
REFUSED = replace(PHOTO, id="file-2", position=1, name="film.mp4", path="", refusal="It is larger than 20 MB.")


@pytest.fixture(params=["file", "memory"])
async def world(request, tmp_path):
    async with open_world(":memory:" if request.param == "memory" else tmp_path / "host.db") as opened:
        await seed(opened)
        yield opened


async def test_attachments_come_back_in_the_order_of_their_message(world: World):
    other = replace(PHOTO, id="file-0", inbox_id=6)
    await world.stores.attachments.add_attachments([REFUSED, PHOTO, other])
    assert await world.stores.attachments.attachments_of([7, 6]) == (other, PHOTO, REFUSED)
    assert await world.stores.attachments.attachments_of([6]) == (other,)
    assert await world.stores.attachments.attachments_of([]) == ()


async def test_an_attachment_is_stored_once(world: World):
    await world.stores.attachments.add_attachments([PHOTO])
    await world.stores.attachments.add_attachments([replace(PHOTO, id="file-9", name="again.jpg"), REFUSED])
    assert await world.stores.attachments.attachments_of([7]) == (PHOTO, REFUSED)
