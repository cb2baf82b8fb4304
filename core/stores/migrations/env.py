"""What Alembic runs: migrations on the connection that `core.stores.schema` hands over."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from core.stores.tables.metadata import METADATA

connection: Connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
