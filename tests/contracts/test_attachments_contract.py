"""What every AttachmentStore promises; run on SQLite in a file and in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.attachments import LeftOut, StoredAttachment
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


SHOWN = replace(PHOTO, id="file-3", inbox_id=None, path="/data/attachments/conv-1/file-3.png")


async def test_attachments_are_found_by_id(world: World):
    await world.stores.attachments.add_attachments([PHOTO, REFUSED, SHOWN])
    assert await world.stores.attachments.attachments(["file-3", "no-such-file", "file-1"]) == (PHOTO, SHOWN)
    assert await world.stores.attachments.attachments([]) == ()


async def test_what_tools_showed_belongs_to_no_message_and_does_not_meet(world: World):
    other = replace(SHOWN, id="file-4")
    await world.stores.attachments.add_attachments([SHOWN])
    await world.stores.attachments.add_attachments([other])
    assert await world.stores.attachments.attachments(["file-3", "file-4"]) == (SHOWN, other)
    assert await world.stores.attachments.attachments_of([0, 7]) == ()


async def test_what_was_heard_is_recorded_once(world: World):
    store = world.stores.attachments
    await store.add_attachments([PHOTO, SHOWN])
    await store.set_transcript("file-1", transcript="hello")
    await store.set_transcript("file-1", unheard="too long")
    await store.set_transcript("file-3", unheard="too long")
    await store.set_transcript("file-3", transcript="hello")
    heard = [(file.transcript, file.unheard) for file in await store.attachments(["file-1", "file-3"])]
    assert heard == [("hello", ""), ("", "too long")]


async def test_an_image_is_left_out_once_and_for_good(world: World):
    store = world.stores.attachments
    await store.add_attachments([PHOTO, SHOWN, REFUSED])
    await store.leave_out(["file-1"], LeftOut.TOO_LARGE)
    await store.leave_out(["file-1", "file-3"], LeftOut.GONE)
    await store.leave_out([], LeftOut.GONE)
    found = {file.id: file.left_out for file in await store.attachments(["file-1", "file-2", "file-3"])}
    assert found == {"file-1": LeftOut.TOO_LARGE, "file-2": None, "file-3": LeftOut.GONE}


async def test_any_number_of_images_can_be_asked_for(world: World):
    store = world.stores.attachments
    many = [replace(SHOWN, id=f"image-{number:04}") for number in range(1_200)]
    await store.add_attachments(many)
    ids = [file.id for file in many]
    await store.leave_out(ids, LeftOut.GONE)
    found = await store.attachments(ids)
    assert [file.id for file in found] == ids
    assert {file.left_out for file in found} == {LeftOut.GONE}
