"""A job notes which machine its process is of, so that somebody there can know for sure that it is gone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("machine", sa.Text(), nullable=True))
