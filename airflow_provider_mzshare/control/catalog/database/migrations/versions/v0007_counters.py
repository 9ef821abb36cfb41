"""What a table has now is counted where its progress is, once: the counters keep what it had before."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_NOW = "COALESCE((SELECT t.rows + t.errors FROM tables AS t WHERE t.id = statistics.id), 0)"
_FILLING = "COALESCE((SELECT r.rows + r.errors FROM replacements AS r WHERE r.table_id = statistics.id), 0)"


def upgrade() -> None:
    changes = [
        f"{column} = CASE WHEN {column} > {counted} THEN {column} - {counted} ELSE 0 END"
        for column, counted in (
            ("messages_received", f"({_NOW} + {_FILLING})"),
            ("updates_staged", f"({_NOW} + {_FILLING})"),
            ("updates_committed", _NOW),
        )
    ]
    op.execute(f"UPDATE statistics SET {', '.join(changes)} WHERE id IN (SELECT id FROM tables)")
