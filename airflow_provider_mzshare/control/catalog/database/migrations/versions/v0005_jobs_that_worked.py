"""A job keeps when it began to get on, also after its end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("running_at", sa.BigInteger(), nullable=True))
    # Of earlier runs nobody knows it any more: none of them is held against its tables.
    op.execute("UPDATE jobs SET running_at = started_at")
