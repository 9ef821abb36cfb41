"""Certificates as values: the stored proof of each cutover. Changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import CertificateRow, ItemRow, TableRow
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.objects.shown_names import known_as
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.core.positions import Position

_POSITIONS = frozenset({"start", "history_upper", "cutover"})


@dataclass(frozen=True)
class Certificate:
    """Who wrote which range of a table up to its cutover.

    The backfill has written ``[start, cutover)``: the ticks ``from_tick`` to ``history_tick`` as history, those before
    ``tick`` by following. From ``tick`` on the ingestion app writes. Hashes are sums of row hashes modulo 2^128.
    """

    id: int
    table_id: ItemId
    table: str
    source_id: ItemId
    source: str
    generation: int
    backfill_id: BackfillId
    tick: int
    mz_timestamp: int
    from_tick: int
    history_tick: int
    start: Position
    history_upper: Position
    cutover: Position
    rows: int
    errors: int
    data_hash: str
    errors_hash: str
    backfill_jobs: tuple[JobId, ...]
    ingestion_job: JobId | None
    created_at: int
    hash_version: int = 1
    """What a row's hash is."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they travel in an XCom or are printed."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        ranges = {name: json.loads(plain[name].to_json()) for name in _POSITIONS}
        return {**plain, **ranges, "backfill_jobs": list(self.backfill_jobs)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Certificate:
        ranges = {name: Position.from_json(json.dumps(plain[name])) for name in _POSITIONS}
        return cls(**{**plain, **ranges, "backfill_jobs": tuple(plain["backfill_jobs"])})


def last_certificate(session: Session, table_id: ItemId) -> Certificate | None:
    found = certificates(session, table_id, limit=1)
    return found[0] if found else None


def certificates(
    session: Session, table_id: ItemId | None = None, *, limit: int | None = None
) -> Sequence[Certificate]:
    """Newest first; of one table or of all."""
    query = select(CertificateRow).order_by(CertificateRow.number.desc()).limit(limit)
    if table_id is not None:
        query = query.where(CertificateRow.table_id == table_id)
    rows = session.scalars(query).all()
    sources = select(ItemRow.id, ItemRow).where(ItemRow.id.in_({row.source_id for row in rows}))
    tables = select(TableRow.id, ItemRow).select_from(TableRow).join(ItemRow, known_as())
    tables = tables.where(TableRow.id.in_({row.table_id for row in rows}))
    named = [*session.execute(sources), *session.execute(tables)]
    names = {item_id: display_name((item.schema_name, item.name)) for item_id, item in named}
    return [to_certificate(row, names) for row in rows]


def to_certificate(row: CertificateRow, names: Mapping[ItemId, str]) -> Certificate:
    return Certificate(
        id=row.number,
        table_id=row.table_id,
        table=names[row.table_id],
        source_id=row.source_id,
        source=names[row.source_id],
        generation=row.generation,
        backfill_id=row.backfill_id,
        tick=row.tick,
        mz_timestamp=row.mz_timestamp,
        from_tick=row.from_tick,
        history_tick=row.history_tick,
        start=row.start,
        history_upper=row.history_upper,
        cutover=row.cutover,
        rows=row.rows,
        errors=row.errors,
        data_hash=row.data_hash,
        errors_hash=row.errors_hash,
        backfill_jobs=tuple(json.loads(row.backfill_jobs)),
        ingestion_job=row.ingestion_job,
        created_at=row.created_at,
        hash_version=row.hash_version,
    )
