"""Keyed tables: how many of their records are no rows of their own, so that statistics count records, not rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What keyed tables have folded until now was not counted."""
    for table in ("tables", "replacements"):
        op.add_column(table, sa.Column("folded", sa.BigInteger(), nullable=False, server_default="0"))
