"""Every stored hash has a version; those of before are of the first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("collections", "certificates"):
        op.add_column(table, sa.Column("hash_version", sa.BigInteger(), nullable=False, server_default="1"))
