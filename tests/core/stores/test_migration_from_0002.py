"""Attachments of a database at revision 0002 are there afterwards, and can be more than they were."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from tests.contracts.test_attachments_contract import PHOTO
from tests.core.stores.first_release import AT, make_first_release
from tests.core.stores.samples import open_world

ROW = (
    "INSERT INTO attachments (id,conversation_id,inbox_id,position,name,media_type,size_bytes,path,refusal,created_at)"
    f" VALUES ('file-1','conv-1',7,0,'photo.jpg','image/jpeg',9,'{PHOTO.path}','',{AT})"
)


def make_second(path) -> None:
    make_first_release(path)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "core.stores:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
    filled = sqlite3.connect(path)
    with filled:
        filled.execute(ROW)
    filled.close()


async def test_attachments_are_kept_and_those_of_tools_can_be_added(tmp_path):
    make_second(tmp_path / "host.db")
    shown = replace(PHOTO, id="file-2", inbox_id=None)
    async with open_world(tmp_path / "host.db") as world:
        store = world.stores.attachments
        assert await store.attachments_of([7]) == (PHOTO,)
        await store.add_attachments([shown, replace(PHOTO, id="file-3")])
        await store.set_transcript("file-1", transcript="hello")
        assert await store.attachments(["file-1", "file-2", "file-3"]) == (replace(PHOTO, transcript="hello"), shown)
