"""Keyed tables: what has to be known of compacted upstreams, so that no table keeps a key that should be gone.

The relations show keys. Specs stay as they are: fields that they do not have are at their defaults.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """All tables of before append only."""
    op.add_column("tables", sa.Column("keyed", sa.Boolean(), nullable=False, server_default=sa.false()))
    for table in ("tables", "replacements"):
        op.add_column(table, sa.Column("begun_at", sa.BigInteger(), nullable=True))
        op.add_column(table, sa.Column("known_from", sa.Text(), nullable=False, server_default="{}"))
        op.add_column(table, sa.Column("gone", sa.Text(), nullable=False, server_default="{}"))
    op.create_table(
        "upstream_ends",
        sa.Column("source_id", sa.Text(), sa.ForeignKey("sources.id"), primary_key=True),
        sa.Column("at", sa.BigInteger(), primary_key=True),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("kept_ms", sa.BigInteger(), nullable=True),
        sa.Column("lag_ms", sa.BigInteger(), nullable=False),
    )
