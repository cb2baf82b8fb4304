"""What was said in recordings, images that tools showed, and images that models are not given any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns to attachments, and let one belong to no message."""
    with op.batch_alter_table("attachments") as attachments:
        attachments.alter_column("inbox_id", existing_type=sa.BigInteger(), nullable=True)
        attachments.add_column(sa.Column("transcript", sa.Text(), server_default="", nullable=False))
        attachments.add_column(sa.Column("unheard", sa.Text(), server_default="", nullable=False))
        attachments.add_column(sa.Column("left_out", sa.String(), nullable=True))
