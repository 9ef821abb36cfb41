"""A table to which every record is a row: compared with its upstream record by record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_mzshare.connectors.base import Records, Upstream
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.upstream_parts import BySpec, Parts, check_history, cut
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope, Segment
from airflow_provider_mzshare.control.lifecycle.verified import VerificationFailed, Verified, VerifiedRange
from airflow_provider_mzshare.storage.collections.placed_rows import PlacedRows
from airflow_provider_mzshare.storage.comparison import NOT_UPSTREAM, Rows, Sums, differences, first_of
from airflow_provider_mzshare.storage.fanout.hashing import row_hash


class RecordCheck:
    """One run of the check, with its sums so far."""

    def __init__(self, scope: Scope, warehouse: str, report: Callable[[Progress], None]) -> None:
        self._scope, self._report, point = scope, report, scope.point
        self._segments = scope.segments()
        self._total = sum(segment.upper - segment.lower for segment in self._segments)
        self._hash = row_hash(scope.hash_version)
        self._errors = PlacedRows(warehouse, point.errors, point.errors_version, scope.place)
        self._by_version = [BySpec(scope, warehouse, spec) for _, spec in scope.specs]
        self._began = time.monotonic()
        self._done = self._lost = 0
        self._why = ""
        self._sums: dict[Segment, Sums] = {}

    def run(self, reader: Records, upstream: Upstream) -> str | None:
        """Compare every segment. Returns why this is no proof, if a compacted topic has lost records."""
        for segment in self._segments:
            by_spec = self._by_version[segment.version]
            batches = reader.read(segment.partition, segment.lower, segment.upper)
            for lower, upper, records in cut(batches, segment.lower, segment.upper, self._scope.place.counted):
                stored = by_spec.data.between(segment.partition, lower, upper)
                self._compare(segment, (lower, upper), by_spec.decode(records), stored, reader, upstream)
        return self._lost_rows()

    def _compare(
        self,
        segment: Segment,
        ends: tuple[int, int],
        wanted: Parts,
        stored: Sequence[pa.RecordBatch],
        reader: Records,
        upstream: Upstream,
    ) -> None:
        """One part of a segment: the rows of the data that are ``stored``, and the error rows that are there."""
        place = self._scope.place
        errors = self._errors.between(segment.partition, *ends)
        found = Rows.of({"data": stored, "errors": errors}, place, self._hash)
        kinds = differences(Rows.of(wanted, place, self._hash), found, place)
        if NOT_UPSTREAM in kinds and (excuse := self._explain(reader, upstream)):
            self._lost, self._why = self._lost + len(kinds.pop(NOT_UPSTREAM)), excuse
        if first := first_of(kinds):
            raise self._failed(place.in_lane(segment.partition, first.at), first.what)
        self._sums[segment] = self._sums.get(segment, Sums()) + found.sums()
        self._done += ends[1] - ends[0]
        self._report(Progress(self._done, self._total, time.monotonic() - self._began, "verifying"))

    def _lost_rows(self) -> str | None:
        return f"the table has rows that are not upstream ({self._lost}), {self._why}" if self._lost else None

    def _failed(self, at: Sequence[Any] | None, what: str) -> VerificationFailed:
        return VerificationFailed(self._scope.table.display, self._scope.place, at, what)

    def _explain(self, reader: Records, upstream: Upstream) -> str | None:
        """Why records that were there may be missing upstream; None if they cannot be."""
        check_history(upstream, self._scope)
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
        summed = self._certified()
        hashes = (int(certificate.data_hash, 16), int(certificate.errors_hash, 16))
        if summed != Sums(certificate.rows, certificate.errors, *hashes):
            raise self._failed(
                None,
                f"the certificate of backfill {certificate.backfill_id} says {certificate.rows} rows and "
                f"{certificate.errors} errors, but the range holds {summed.rows} and {summed.errors}"
                + (", with different hashes" if summed[:2] == (certificate.rows, certificate.errors) else ""),
            )

    def _certified(self) -> Sums:
        """What was found of the range that the certificate is about."""
        return sum((each for segment, each in self._sums.items() if segment.certified), Sums())

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


def _ranges(sums: Mapping[Segment, Sums]) -> Iterator[VerifiedRange]:
    for partition in sorted({segment.partition for segment in sums}):
        own = {segment: each for segment, each in sums.items() if segment.partition == partition}
        total = sum(own.values(), Sums())
        ends = min(segment.lower for segment in own), max(segment.upper for segment in own)
        yield VerifiedRange(partition, *ends, total.rows, total.errors)
