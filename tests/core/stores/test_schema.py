"""The schema: what migrations make is what the tables say."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from core.contracts.errors import StoreUnavailable
from core.stores import schema
from core.stores.connection import Database
from core.stores.tables.metadata import METADATA
from tests.core.stores.samples import ROOT

NAMES = {
    *("agents", "conversations", "prompts", "messages", "runs", "run_events", "turns", "tool_calls", "approvals"),
    *("grants", "bindings", "inbox", "outbox", "people", "identities", "pairings", "audit", "work_items"),
    *("attachments", "places", "session_lines"),
}


@pytest.fixture
async def migrated(tmp_path):
    await Database.open(tmp_path / "host.db").close()
    return tmp_path / "host.db"


def definitions(path) -> dict[str, object]:
    """Return what a database consists of by name; the order of a table's columns does not count."""
    query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    connection = sqlite3.connect(path)
    found = {
        name: table_shape(connection, name, sql) if kind == "table" else re.sub(r'[\s"]+', " ", sql)
        for kind, name, sql in connection.execute(query).fetchall()
        if name != "alembic_version"
    }
    connection.close()
    return found


def table_shape(connection: sqlite3.Connection, name: str, sql: str) -> object:
    columns = {row[1:] for row in connection.execute(f"PRAGMA table_info({name})")}
    references = {row[2:] for row in connection.execute(f"PRAGMA foreign_key_list({name})")}
    unique = {
        tuple(column[2] for column in connection.execute(f"PRAGMA index_info({index[1]})"))
        for index in connection.execute(f"PRAGMA index_list({name})")
        if index[2]
    }
    return columns, references, unique, "AUTOINCREMENT" in sql


def test_the_tables_are_those_of_the_design():
    assert set(METADATA.tables) == NAMES


def test_a_migrated_database_has_the_schema_of_the_tables(migrated, tmp_path):
    direct = create_engine(f"sqlite:///{tmp_path / 'direct.db'}", poolclass=NullPool)
    schema.create(direct)
    expected = definitions(tmp_path / "direct.db")
    assert definitions(migrated) == expected
    assert set(expected) > NAMES


def test_alembic_finds_nothing_to_change(migrated):
    engine = create_engine(f"sqlite:///{migrated}", poolclass=NullPool)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_the_newest_revision_is_that_of_the_scripts():
    config = Config()
    config.set_main_option("script_location", "core.stores:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [schema.HEAD]
    assert {script.revision for script in scripts.walk_revisions()} == schema.KNOWN


async def test_opening_an_up_to_date_database_imports_no_alembic(migrated):
    program = (
        "import sys; from core.stores.connection import Database;"
        "import asyncio; asyncio.run(Database.open(sys.argv[1]).close());"
        "print('alembic' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(migrated)], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    assert result.stdout == "False\n"


def test_a_database_of_a_newer_release_is_refused_and_left_alone(migrated):
    connection = sqlite3.connect(migrated)
    with connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = migrated.read_bytes()
    with pytest.raises(StoreUnavailable, match="9999"):
        Database.open(migrated)
    assert migrated.read_bytes() == before
