"""Ids of catalog items (``u1``, ``u2``, …) and of what hangs on them. Never reused; names may change, ids do not."""

from __future__ import annotations

import re
import secrets
from typing import NewType

ItemId = NewType("ItemId", str)
"""A source, table or view."""

CollectionId = NewType("CollectionId", str)
"""One Delta table of ours; also the application id of every commit to it."""

JobId = NewType("JobId", str)
"""One run of an app, chosen by us before it is launched."""

BackfillId = NewType("BackfillId", str)
"""One backfill: tables that are brought up to a source's log together, by one app at a time."""

SnapshotId = NewType("SnapshotId", str)
"""One snapshot of an upstream's tables, from which tables of ours begin."""

JournalId = NewType("JournalId", str)
"""What an upstream that cannot be read twice has said, written down. ``journal:`` and a random part, which is the name
of its folder. The incarnation of a source is this, or ends in it: behind what tells who the upstream is."""

_JOURNAL = re.compile(r"(?:.+:)?(journal:[0-9a-f]+)")
_ITEM = re.compile(r"u[1-9][0-9]*")


def format_item_id(number: int) -> ItemId:
    return ItemId(f"u{number}")


def is_item_id(text: str) -> bool:
    return _ITEM.fullmatch(text) is not None


def new_collection_id(table: ItemId, generation: int, role: str) -> CollectionId:
    """The random part makes the name of a folder unique: a restored catalog counts ids from an earlier number again."""
    return CollectionId(f"{table}-g{generation}-{role}-{secrets.token_hex(4)}")


def new_job_id(kind: str) -> JobId:
    return JobId(f"{kind}-{secrets.token_hex(6)}")


def new_backfill_id() -> BackfillId:
    return BackfillId(f"b-{secrets.token_hex(4)}")


def new_snapshot_id() -> SnapshotId:
    return SnapshotId(f"s-{secrets.token_hex(4)}")


def journal_of(incarnation: str) -> JournalId | None:
    """The journal of a source that has this incarnation, if it has one."""
    match = _JOURNAL.fullmatch(incarnation)
    return JournalId(match[1]) if match else None


def new_journal_id() -> JournalId:
    return JournalId(f"journal:{secrets.token_hex(8)}")
