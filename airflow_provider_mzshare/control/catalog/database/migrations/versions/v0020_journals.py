"""Journals: what an upstream that cannot be read twice has said, as segments that are announced here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """There was none before."""
    op.create_table(
        "journal_partitions",
        *_keys("journal_partitions", _text("journal"), _number("partition")),
        _number("lease_epoch"),
        sa.Column("lease_job", sa.Text(), nullable=True),
        *map(_number, ("lease_beat", "begin", "end", "size", "segments")),
        *map(_maybe, ("newest_first", "newest_epoch", "newest_number")),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")
            for name in ("begin_noted", "begin_noted_at")
        ),
    )
    of_segment = (_text("journal"), *map(_number, ("partition", "first", "epoch", "number")))
    op.create_table(
        "journal_segments",
        *_keys("journal_segments", *of_segment),
        *map(_number, ("end", "length", "checksum", "payload", "announced_at")),
        *map(_maybe, ("low", "boundary")),
        sqlite_with_rowid=False,
    )
    has_low = sa.text("low IS NOT NULL")
    op.create_index(
        "journal_segments_low",
        "journal_segments",
        ["journal", "partition", "low"],
        sqlite_where=has_low,
        postgresql_where=has_low,
    )
    op.create_table(
        "journal_batches",
        *_keys("journal_batches", _text("journal"), _text("id")),
        *map(_number, ("partition", "first", "end")),
        _text("digest"),
        _number("announced_at"),
        sqlite_with_rowid=False,
    )


def _keys(table: str, *columns: sa.Column[object]) -> tuple[sa.Column[object] | sa.PrimaryKeyConstraint, ...]:
    return (*columns, sa.PrimaryKeyConstraint(*(column.name for column in columns), name=f"{table}_pkey"))


def _text(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.Text(), nullable=False)


def _number(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _maybe(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger(), nullable=True)
