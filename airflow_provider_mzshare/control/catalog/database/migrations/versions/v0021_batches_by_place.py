"""Ids of batches are found by the place of their messages, with which they go."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Those of messages that are gone already go at the next maintenance."""
    op.create_index("journal_batches_place", "journal_batches", ["journal", "partition", "first"])
