"""The relations show the keys of tables. Specs stay as they are: fields that they do not have are at their defaults."""

from __future__ import annotations

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The relations are made anew after every upgrade."""
