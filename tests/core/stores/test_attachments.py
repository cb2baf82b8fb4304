"""The image shelf: rows say what is left out, the disk says what is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.contracts.attachments import LeftOut, MissingImage
from core.stores.attachments import StoredImages
from tests.contracts.test_attachments_contract import PHOTO, REFUSED
from tests.core.stores.samples import open_world, seed


@pytest.fixture
async def world():
    async with open_world(":memory:") as opened:
        await seed(opened)
        yield opened


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"the image")
    return replace(PHOTO, path=str(path))


@pytest.fixture
async def shelf(world, photo):
    await world.stores.attachments.add_attachments([photo, REFUSED])
    return StoredImages(world.stores.attachments)


async def test_an_image_is_read_from_its_file(shelf, photo):
    assert await shelf.read(photo.id) == b"the image"
    assert await shelf.missing([photo.id]) == {}


async def test_what_was_never_stored_or_never_taken_is_not_there(shelf):
    assert await shelf.read("no-such-file") is None
    assert await shelf.read(REFUSED.id) is None


async def test_a_file_that_retention_deleted_is_gone_and_not_recorded_yet(shelf, photo, tmp_path):
    (tmp_path / "photo.jpg").unlink()
    assert await shelf.read(photo.id) is None
    assert await shelf.missing([photo.id]) == {photo.id: MissingImage(why=LeftOut.GONE, recorded=False)}
    await shelf.leave_out([photo.id], LeftOut.GONE)
    assert await shelf.missing([photo.id]) == {photo.id: MissingImage(why=LeftOut.GONE, recorded=True)}


async def test_what_was_left_out_stays_out_though_its_file_is_there(shelf, photo):
    await shelf.leave_out([photo.id], LeftOut.TOO_LARGE)
    assert await shelf.missing([photo.id]) == {photo.id: MissingImage(why=LeftOut.TOO_LARGE, recorded=True)}


async def test_what_the_store_never_knew_is_nothing_new(shelf):
    assert await shelf.missing(["elsewhere"]) == {"elsewhere": MissingImage(why=LeftOut.GONE, recorded=True)}
    assert await shelf.missing([]) == {}
