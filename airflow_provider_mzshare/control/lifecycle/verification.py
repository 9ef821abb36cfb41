"""Proves a table against its source: reads the range again, without Spark, and compares record by record.

Every record of the range is in the table's data or errors exactly once, as decoding says, or the check fails with the
first offset that is not. It writes nothing, neither upstream nor in the warehouse.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pyarrow as pa

from airflow_provider_mzshare.connectors.base import Records, Upstream
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.connectors.places import Lane, Place
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.control.lifecycle.check_table import explain
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope, Segment, find_scope
from airflow_provider_mzshare.control.upstreams import open_records, open_upstream
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import NotReadable, TerminalError, UpstreamChanged, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.placed_rows import PlacedRows
from airflow_provider_mzshare.storage.comparison import (
    DIFFERS,
    DOUBLE,
    MISSING,
    NOT_UPSTREAM,
    ROLES,
    Rows,
    Sums,
    differences,
    first_of,
)
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import row_hash
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan

PART_OFFSETS = 500_000
PART_BYTES = 64 << 20
"""How much of a partition is compared at once: this bounds the memory."""

Verdict = Literal["exact", "unverifiable"]

_TOLD = {
    MISSING: "is upstream and not in the table",
    DOUBLE: "is in the table more than once",
    DIFFERS: "is not in the table as it is upstream",
    NOT_UPSTREAM: "is in the table and not upstream",
}


class VerificationFailed(TerminalError):
    """A table does not hold what its source holds. ``table`` is written as in SQL.

    :param at: the place of the first record that differs; None where it is no single one.
    :param what: ``missing``, ``double``, ``differs``, ``not upstream``, or a sentence.

    ``offset`` is the number of the place that positions count by, in their lane ``partition``.
    """

    def __init__(self, table: str, place: Place, at: Sequence[Any] | None, what: str) -> None:
        self.table, self.what, self.at = table, what, None if at is None else tuple(at)
        found = {} if at is None else dict(zip(place.given, at, strict=True))
        self.partition, self.offset = found.get(place.lane or ""), found.get(place.counted)
        where = f"{place.tell(at)} " if at is not None else ""
        resnapshot = f"mzshare sql {shlex.quote(f'ALTER TABLE {table} RESNAPSHOT')}"
        super().__init__(
            f"table {table!r} is not exact: {where}{_TOLD.get(what, what)}",
            hint=f"keep its folders to find the cause, then {resnapshot}",
        )


@dataclass(frozen=True)
class VerifiedRange:
    """What was compared of one partition: ``[lower, upper)``, and the rows of it."""

    partition: Lane
    lower: int
    upper: int
    rows: int
    errors: int


@dataclass(frozen=True)
class Verified:
    """The outcome of a check that did not fail.

    :param tick: as of which the table was read.
    :param verdict: ``exact``; or ``unverifiable``, because the upstream no longer has what is to be compared.
    """

    table: str
    tick: int
    partitions: tuple[VerifiedRange, ...]
    rows: int
    errors: int
    data_hash: str
    errors_hash: str
    seconds: float
    verdict: Verdict
    reason: str | None = None
    hash_version: int = 1

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they travel in an XCom or are printed."""
        return {**asdict(self), "partitions": [asdict(each) for each in self.partitions]}


def verify_table(
    catalog: Catalog,
    connections: ConnectionStore,
    warehouse: str,
    table: TableItem,
    *,
    everything: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Verified:
    """Compare what the table's last backfill wrote, up to and with the cutover's tick, with the source.

    :param everything: compare from the table's start to its present position instead; so, too, without any cutover.
    """
    with catalog.read() as session:
        scope = find_scope(session, table.id, everything=everything)
    try:
        return _verify(_Check(scope, warehouse, report or (lambda progress: None)), scope, connections)
    except (NotReadable, WarehouseUnreachable) as error:
        raise explain(catalog, warehouse, [scope.point], error) from error


def _verify(check: _Check, scope: Scope, connections: ConnectionStore) -> Verified:
    source = scope.source
    with open_upstream(connections, source.spec, source.incarnation) as upstream:
        try:
            upstream.check_identity(source.incarnation)
            _check_history(upstream, scope)
            with open_records(connections, source.spec, source.incarnation) as reader:
                lost = check.run(reader, upstream)
            upstream.check_identity(source.incarnation)
        except UpstreamChanged as gone:
            return check.result(gone.message)
    check.check_strays()
    check.check_certificate()
    return check.result(lost)


def _check_history(upstream: Upstream, scope: Scope) -> None:
    begin, show = upstream.begin_offsets(), scope.place.show
    for segment in scope.segments():
        if begin[segment.partition] > segment.lower:
            raise UpstreamChanged(
                "history_gone",
                f"partition {segment.partition} now begins at offset {show(begin[segment.partition])} upstream, "
                f"but the range begins at {show(segment.lower)}",
            )


class _Check:
    """One run of the check, with its sums so far."""

    def __init__(self, scope: Scope, warehouse: str, report: Callable[[Progress], None]) -> None:
        self._scope, self._report, point = scope, report, scope.point
        self._segments = scope.segments()
        self._total = sum(segment.upper - segment.lower for segment in self._segments)
        self._hash = row_hash(scope.hash_version)
        self._errors = PlacedRows(warehouse, point.errors, point.errors_version, scope.place)
        self._by_version = [_BySpec(scope, warehouse, spec) for _, spec in scope.specs]
        self._began = time.monotonic()
        self._done = 0
        self._sums: dict[Segment, Sums] = {}

    def run(self, reader: Records, upstream: Upstream) -> str | None:
        """Compare every segment. Returns why this is no proof, if a compacted topic has lost records."""
        lost, why = 0, ""
        for segment in self._segments:
            self._sums[segment] = Sums()
            by_spec = self._by_version[segment.version]
            placed = {"data": by_spec.data, "errors": self._errors}
            batches = reader.read(segment.partition, segment.lower, segment.upper)
            for lower, upper, records in cut(batches, segment.lower, segment.upper, self._scope.place.counted):
                stored = {role: placed[role].between(segment.partition, lower, upper) for role in ROLES}
                found = Rows.of(stored, self._scope.place, self._hash)
                kinds = differences(by_spec.decode(records), found, self._scope.place)
                if NOT_UPSTREAM in kinds and (excuse := self._explain(reader, upstream)):
                    lost, why = lost + len(kinds.pop(NOT_UPSTREAM)), excuse
                if first := first_of(kinds):
                    raise self._failed(self._scope.place.in_lane(segment.partition, first.at), first.what)
                self._sums[segment] += found.sums()
                self._done += upper - lower
                self._report(Progress(self._done, self._total, time.monotonic() - self._began, "verifying"))
        return f"the table has rows that are not upstream ({lost}), {why}" if lost else None

    def _failed(self, at: Sequence[Any] | None, what: str) -> VerificationFailed:
        return VerificationFailed(self._scope.table.display, self._scope.place, at, what)

    def _explain(self, reader: Records, upstream: Upstream) -> str | None:
        """Why records that were there may be missing upstream; None if they cannot be."""
        _check_history(upstream, self._scope)
        return reader.excuse()

    def check_strays(self) -> None:
        """Check that no row lies outside of the ranges that the table's ticks cover."""
        both = (self._by_version[-1].data, self._errors)
        strays = [at for placed in both if (at := placed.first_outside(self._scope.covered()))]
        if strays:
            raise self._failed(min(strays), NOT_UPSTREAM)

    def check_certificate(self) -> None:
        certificate = self._scope.certificate
        if certificate is None:
            return
        summed = sum((self._sums[s] for s in self._segments if s.certified), Sums())
        hashes = (int(certificate.data_hash, 16), int(certificate.errors_hash, 16))
        if summed != Sums(certificate.rows, certificate.errors, *hashes):
            raise self._failed(
                None,
                f"the certificate of backfill {certificate.backfill_id} says {certificate.rows} rows and "
                f"{certificate.errors} errors, but the range holds {summed.rows} and {summed.errors}"
                + (", with different hashes" if summed[:2] == (certificate.rows, certificate.errors) else ""),
            )

    def result(self, reason: str | None) -> Verified:
        total = sum(self._sums.values(), Sums())
        return Verified(
            table=self._scope.table.display,
            tick=self._scope.point.tick,
            partitions=tuple(_ranges(self._sums)),
            rows=total.rows,
            errors=total.errors,
            data_hash=f"{total.data_hash:032x}",
            errors_hash=f"{total.errors_hash:032x}",
            seconds=round(time.monotonic() - self._began, 3),
            verdict="unverifiable" if reason else "exact",
            reason=reason,
            hash_version=self._hash.version,
        )


class _BySpec:
    """What the table's rows are, as one version of its spec says: how records decode, and the rows that are there."""

    def __init__(self, scope: Scope, warehouse: str, spec: TableSpec) -> None:
        member = member_plan(scope.table.id, spec, place=scope.place, hash_version=scope.hash_version)
        self._plan, self._place, self._hash = FanoutPlan(1, (member,)), scope.place, row_hash(scope.hash_version)
        self.data = PlacedRows(warehouse, scope.point.data, scope.point.data_version, scope.place, member.schema)

    def decode(self, records: Iterable[pa.RecordBatch]) -> Rows:
        parts: dict[str, list[pa.RecordBatch]] = {role: [] for role in ROLES}
        for batch in records:
            (decoded,) = decode_batch(batch, self._plan).values()
            for role, rows in (("data", decoded.data), ("errors", decoded.errors)):
                if rows:
                    parts[role].append(rows.batch)
        return Rows.of(parts, self._place, self._hash)


def _ranges(sums: Mapping[Segment, Sums]) -> Iterator[VerifiedRange]:
    for partition in sorted({segment.partition for segment in sums}):
        own = {segment: each for segment, each in sums.items() if segment.partition == partition}
        total = sum(own.values(), Sums())
        ends = min(segment.lower for segment in own), max(segment.upper for segment in own)
        yield VerifiedRange(partition, *ends, total.rows, total.errors)


def cut(
    batches: Iterable[pa.RecordBatch],
    lower: int,
    upper: int,
    counted: str,
    *,
    offsets: int = PART_OFFSETS,
    size: int = PART_BYTES,
) -> Iterator[tuple[int, int, Sequence[pa.RecordBatch]]]:
    """Parts of ``[lower, upper)`` without a gap between them, each with its records.

    Records of one number are in one part: a database's are those of one transaction.
    """
    kept: list[pa.RecordBatch] = []
    for batch in batches:
        numbers = batch.column(counted)
        end = int(kept[-1].column(counted)[-1].as_py()) + 1 if kept else lower
        is_large = end - lower >= offsets or sum(each.nbytes for each in kept) >= size
        if is_large and numbers[0].as_py() >= end:
            yield lower, end, kept
            lower, kept = end, []
        kept.append(batch)
    if lower < upper:
        yield lower, upper, kept
