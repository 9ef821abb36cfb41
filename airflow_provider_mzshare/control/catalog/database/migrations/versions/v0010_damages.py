"""What was found damaged stays known until it is replaced or whole again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "damages",
        sa.Column("collection_id", sa.Text(), sa.ForeignKey("collections.id"), primary_key=True),
        sa.Column("table_id", sa.Text(), sa.ForeignKey("tables.id"), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
    )
    op.create_index("damages_table", "damages", ["table_id"])
