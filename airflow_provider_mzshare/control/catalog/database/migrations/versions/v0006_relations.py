"""What the relations show beside the tables that are there: printed statements, and counters.

The relations themselves are views, made anew after every upgrade (``relations.install``).
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COUNTERS = ("messages_received", "bytes_received", "updates_staged", "updates_committed", "offset_known")


def upgrade() -> None:
    op.create_table(
        "definitions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("create_sql", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("definitions_pkey")),
        sa.ForeignKeyConstraint(["id"], ["items.id"], name=op.f("definitions_id_fkey")),
    )
    op.create_table(
        "statistics",
        sa.Column("id", sa.Text(), nullable=False),
        *(_counter(name) for name in _COUNTERS),
        sa.PrimaryKeyConstraint("id", name=op.f("statistics_pkey")),
        sa.ForeignKeyConstraint(["id"], ["items.id"], name=op.f("statistics_id_fkey")),
    )
    _count_what_was()


def _counter(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def _count_what_was() -> None:
    """From what is known: commits, and how far sources have come. Of bytes read before, nobody knows."""
    op.execute(
        "INSERT INTO statistics (id, messages_received, updates_staged, updates_committed) "
        "SELECT c.table_id, SUM(w.rows), SUM(w.rows), "
        "SUM(CASE WHEN c.generation <= t.generation THEN w.rows ELSE 0 END) FROM commits AS w "
        "JOIN collections AS c ON c.id = w.collection_id JOIN tables AS t ON t.id = c.table_id GROUP BY c.table_id"
    )
    bind = op.get_bind()
    sources = bind.execute(
        sa.text(
            "SELECT o.id, o.start, k.upper FROM sources AS o JOIN ticks AS k ON k.source_id = o.id AND k.number = "
            "(SELECT MAX(m.number) FROM ticks AS m WHERE m.source_id = o.id AND m.committed)"
        )
    ).all()
    for source_id, start, upper in sources:
        read = sum(json.loads(upper).values()) - sum(json.loads(start).values())
        counted = sa.text("INSERT INTO statistics (id, messages_received) VALUES (:id, :read)")
        bind.execute(counted, {"id": source_id, "read": read})
