"""Keyed tables may have deletion vectors: the relation of exports shows the option of each table.

Nothing is stored for it here. The views are made anew with each revision.
"""

from __future__ import annotations

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: specs are stored as text, and what they do not say is at its default."""
