"""Which part of a table is verified, and at which versions it is read: decided from the catalog. Reads no rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.places import Lane, Place
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects.lookup import (
    SourceItem,
    TableItem,
    get_source_item,
    get_table_item,
)
from airflow_provider_mzshare.control.catalog.objects.table_specs import versions_of
from airflow_provider_mzshare.control.catalog.queries.certificates import Certificate, last_certificate
from airflow_provider_mzshare.control.catalog.queries.reads import ReadPoint, table_read_point
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.spec_versions import FIRST_TICK
from airflow_provider_mzshare.envelopes.registry import envelope_named
from airflow_provider_mzshare.errors import NotReadable
from airflow_provider_mzshare.storage.writing.member_plans import partitions_of


@dataclass(frozen=True)
class Segment:
    """``[lower, upper)`` of one partition, that is, of one lane of the source's positions, as its records name it.

    :param certified: all of it was written by the certificate's backfill.
    :param version: of the table's specs in ``Scope.specs``, the one that all of it was written with.
    """

    partition: Lane
    lower: int
    upper: int
    certified: bool = False
    version: int = 0


@dataclass(frozen=True)
class Scope:
    """``[lower, upper)`` of a source, compared with the table as it is at ``point``.

    :param reached: where the table is at ``point``; nothing may lie past it.
    :param partitions: those that the table's records come from; empty is all.
    :param specs: all that the table has had, each with where it begins; oldest first.
    :param spec_ticks: the first tick of each of them.
    """

    source: SourceItem
    table: TableItem
    point: ReadPoint
    lower: Position
    upper: Position
    reached: Position
    certificate: Certificate | None
    partitions: tuple[Lane, ...] = ()
    specs: tuple[tuple[Position, TableSpec], ...] = ()
    spec_ticks: tuple[int, ...] = ()

    @property
    def is_keyed(self) -> bool:
        """Whether records change rows, so that keys are compared."""
        return not envelope_named(self.point.spec.envelope).appends

    @property
    def place(self) -> Place:
        return self.source.place

    @property
    def hash_version(self) -> int:
        """The certificate's version, because other versions have other sums; without one, that of the collections."""
        return self.certificate.hash_version if self.certificate else self.point.hash_version

    def segments(self) -> Sequence[Segment]:
        """Ranges of each partition, cut where the backfill began or ended and where the spec changed. None is empty."""
        return [segment for partition in self._own(self.upper) for segment in self._segments(partition)]

    def _own(self, position: Position) -> Iterator[Lane]:
        lanes = map(self.place.lane_of, position)
        return (lane for lane in lanes if not self.partitions or lane in self.partitions)

    def _segments(self, partition: Lane) -> list[Segment]:
        lower, upper = self.lower[partition], self.upper[partition]
        begin = end = lower
        if self.certificate is not None:
            begin, end = self.certificate.start[partition], self.certificate.cutover[partition]
        inside = (begin, end, *(position[partition] for position, _ in self.specs))
        cuts = sorted({lower, upper, *(at for at in inside if lower < at < upper)})
        return [
            Segment(partition, a, b, begin <= a and b <= end, self._version(partition, a))
            for a, b in pairwise(cuts)
            if a < b
        ]

    def _version(self, partition: Lane, offset: int) -> int:
        """The version of the spec for the tick that holds this offset: the last version that begins at or before it."""
        begun = [number for number, (position, _) in enumerate(self.specs) if position[partition] <= offset]
        return max(begun, default=0)

    def covered(self) -> Mapping[Lane, tuple[int, int]]:
        """By partition, the range that the table may have rows of."""
        return {p: (self.table.start[p], self.reached[p]) for p in self._own(self.reached)}


def find_scope(session: Session, table_id: ItemId, *, everything: bool) -> Scope:
    """The range of the last certificate with the cutover's tick; all that the table has, where there is none.

    Where records change rows, a state is made by all records before it: the range begins with the table.
    """
    table = get_table_item(session, table_id)
    certificate = last_certificate(session, table_id)
    by_certificate = certificate if not everything else None
    point = _point(session, table, by_certificate)
    reached = _upper(session, table, point.tick)
    lower, upper = table.start, reached
    if by_certificate is not None and envelope_named(point.spec.envelope).appends:
        lower = by_certificate.start
        upper = _upper(session, table, min(by_certificate.tick, point.tick))
    source = get_source_item(session, table.source_id)
    firsts, specs = zip(*_specs(session, table, point), strict=True)
    return Scope(source, table, point, lower, upper, reached, certificate, partitions_of(point.spec), specs, firsts)


def _specs(session: Session, table: TableItem, point: ReadPoint) -> Iterator[tuple[int, tuple[Position, TableSpec]]]:
    """The specs up to the point's tick. A change that does not affect rows is left out."""
    before: TableSpec | None = None
    for version in versions_of(session, table.id):
        spec, first = version.spec.handled_as(point.spec), version.first_tick
        if first <= point.tick and spec != before:
            yield first, (table.start if first == FIRST_TICK else _tick(session, table, first).lower, spec)
            before = spec


def _point(session: Session, table: TableItem, certificate: Certificate | None) -> ReadPoint:
    """Read at the cutover's tick if possible, else at the newest one."""
    if certificate is not None:
        try:
            return table_read_point(session, table.id, tick=certificate.tick)
        except NotReadable:
            pass
    return table_read_point(session, table.id)


def _upper(session: Session, table: TableItem, tick: int) -> Position:
    return _tick(session, table, tick).upper


def _tick(session: Session, table: TableItem, number: int) -> TickRow:
    row = session.get(TickRow, (table.source_id, number))
    if row is None:
        raise NotReadable(f"{table.display} cannot be verified: the log has lost tick {number}", hint="mzshare status")
    return row
