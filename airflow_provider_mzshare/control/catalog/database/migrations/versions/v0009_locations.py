"""The relation mz_tables says where tables are: nothing changes but the relations, which are made anew."""

from __future__ import annotations

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass
