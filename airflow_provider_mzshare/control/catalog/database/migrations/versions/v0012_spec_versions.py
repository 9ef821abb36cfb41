"""A table's spec is kept in all its versions, each with the first tick that it is valid for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of tables that are there, only the newest is known: it was valid for all ticks, as far as columns go."""
    op.create_table(
        "table_specs",
        sa.Column("table_id", sa.Text(), sa.ForeignKey("tables.id"), primary_key=True),
        sa.Column("version", sa.BigInteger(), primary_key=True),
        sa.Column("first_tick", sa.BigInteger(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
    )
    op.execute(
        "INSERT INTO table_specs (table_id, version, first_tick, spec) SELECT id, spec_version, 1, spec FROM tables"
    )
