"""The schema of a database: created, checked or migrated when it is opened."""

from __future__ import annotations

import logging
from typing import Final

from sqlalchemy import Connection, Engine, inspect

from core.contracts.errors import StoreUnavailable
from core.stores.tables.metadata import METADATA

logger = logging.getLogger(__name__)

HEAD: Final = "0003"
"""The newest migration in `core/stores/migrations/versions`."""

KNOWN: Final = frozenset({"0001", "0002", "0003"})
"""Every revision this release can start from."""


def create(engine: Engine) -> None:
    """Create the newest schema in an empty database that nobody will ever migrate."""
    with engine.begin() as connection:
        METADATA.create_all(connection)


def upgrade(engine: Engine) -> None:
    """Bring a database to the newest schema, in one transaction; nothing to do is quick.

    Raises:
        StoreUnavailable: A newer release wrote the database.
    """
    with engine.begin() as connection:
        revision = stored_revision(connection)
        if revision == HEAD:
            return
        if revision is not None and revision not in KNOWN:
            raise StoreUnavailable(f"the database is at revision {revision!r}, newer than this release ({HEAD!r})")
        _migrate(connection)
    # A new database is nothing to tell a newcomer about; a change of an old one is.
    level = logging.DEBUG if revision is None else logging.INFO
    logger.log(level, "schema_migrated", extra={"from_revision": revision, "to_revision": HEAD})


def stored_revision(connection: Connection) -> str | None:
    """Return the revision of a database, None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return revision


def _migrate(connection: Connection) -> None:
    from alembic import command  # a start without a migration needs no Alembic
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "core.stores:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
