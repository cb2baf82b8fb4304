"""Groups, attachments, steering, late answers, two-way sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns to what is there, then the new tables."""
    _add_columns()
    _create_attachments()
    _create_places()
    _create_session_lines()


def _add_columns() -> None:
    op.add_column("agents", sa.Column("queue_mode", sa.String(), server_default="steer", nullable=False))
    op.add_column("conversations", sa.Column("queue_mode", sa.String(), nullable=True))
    op.add_column("conversations", sa.Column("paused", sa.Boolean(), server_default="0", nullable=False))
    op.add_column("inbox", sa.Column("step", sa.Integer(), server_default="0", nullable=False))
    op.add_column("outbox", sa.Column("shown_at", sa.BigInteger(), nullable=True))
    op.add_column("outbox", sa.Column("unknown_sends", sa.Integer(), server_default="0", nullable=False))
    op.create_index("ix_outbox_shown", "outbox", ["chat_key", "external_id"])


def _create_attachments() -> None:
    op.create_table(
        "attachments",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("inbox_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("refusal", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("inbox_id", "position", name="uq_attachments_position"),
    )


def _create_places() -> None:
    op.create_table(
        "places",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )


def _create_session_lines() -> None:
    op.create_table(
        "session_lines",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("conversation_id", "seq"),
    )
    op.create_index("ix_session_lines_at", "session_lines", ["at"])
