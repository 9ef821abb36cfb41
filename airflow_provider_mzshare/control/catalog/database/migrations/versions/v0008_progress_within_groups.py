"""A backfill says how far it is within a group, and how many groups its rate was measured in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("ahead", "groups"):
        op.add_column("backfill_tables", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
