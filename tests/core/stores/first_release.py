"""A database as the first release left it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from tests.core.stores.samples import START

AT = int(START.timestamp() * 1_000_000)
EVENT = (
    '{"address":{"channel":"telegram","account":"bot","chat":"111","thread":null},"key":"e1",'
    '"sender":{"identity":"telegram:111","name":"Alice","is_bot":false},'
    '"body":{"type":"message","text":"hi","attachments":[],"addressed":true},'
    f'"privacy":"direct","sent_at_us":{AT},"external_id":"m1"}}'
)
ADDRESS_JSON = '{"channel":"telegram","account":"bot","chat":"111","thread":null}'
CONTENT = '{"type":"text","markdown":"hi","silent":false}'
ROWS = (
    (
        "INSERT INTO agents VALUES ('agent-1','lodger','{\"name\":\"main\",\"model\":\"scripted/demo\"}','ask',"
        f"'default','/srv/space','memory-1',{AT})"
    ),
    f"INSERT INTO conversations VALUES ('conv-1','agent-1','[\"everyone\"]',NULL,3,1,{AT},'',0,'')",
    f"INSERT INTO bindings VALUES ('telegram/bot/111','{ADDRESS_JSON}','agent-1','conv-1',{AT})",
    (
        "INSERT INTO inbox (channel,account,event_key,address_key,state,conversation_id,turn_id,event,received_at)"
        f" VALUES ('telegram','bot','e1','telegram/bot/111','queued','conv-1',NULL,'{EVENT}',{AT})"
    ),
    (
        "INSERT INTO outbox VALUES ('o1',1,0,'telegram/bot/111','telegram/bot/111',"
        f"'{ADDRESS_JSON}','{CONTENT}','m1',NULL,1,'pending',NULL,{AT},NULL,{AT},'')"
    ),
)
"""Rows as the first release wrote them."""


def make_first_release(path: Path, *, inbox_rows: int = 1) -> None:
    """Write the database, with its event as many times as wanted, each under a key of its own."""
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", "core.stores:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    filled = sqlite3.connect(path)
    with filled:
        for row in ROWS:
            filled.execute(row)
        copy = (
            "INSERT INTO inbox (channel,account,event_key,address_key,state,conversation_id,turn_id,event,received_at)"
            " SELECT channel,account,?,address_key,'done',conversation_id,turn_id,event,received_at"
            " FROM inbox WHERE channel='telegram' AND account='bot' AND event_key='e1'"
        )
        filled.executemany(copy, [(f"copy-{number}",) for number in range(1, inbox_rows)])
    filled.close()
