"""Tables may have ENVELOPE DEBEZIUM, and name their key: the relation of exports shows it.

Nothing is stored for it here. The views are made anew with each revision.
"""

from __future__ import annotations

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: specs are stored as text, and what they do not say is at its default."""
