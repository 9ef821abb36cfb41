"""A journal in the catalog: lock the partition's row, ask the rules, write what they say, in one short transaction.

Announcing costs the same few statements, however many segments there are and however many batches are announced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, delete, func, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.base import Journals
from airflow_provider_mzshare.control.catalog.database import batches as paging
from airflow_provider_mzshare.control.catalog.database.clock import database_ms
from airflow_provider_mzshare.control.catalog.database.compare_and_set import change
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.control.catalog.database.journal_models import (
    JournalBatchRow,
    JournalPartitionRow,
    JournalSegmentRow,
)
from airflow_provider_mzshare.control.catalog.log import journal_statements as statements
from airflow_provider_mzshare.core.ids import JobId, JournalId
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.state import Batch, PartitionState, Segment
from airflow_provider_mzshare.core.journal.stores import JournalStore, PartitionStore
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease

_LET_GO_AT_ONCE = 1_000
_ANY_OFFSET = (1 << 63) - 1
_NO_SYNC = {"synchronize_session": False}


class CatalogJournal(JournalStore):
    def __init__(self, catalog: Catalog, journal: JournalId) -> None:
        self._catalog, self._journal = catalog, journal

    @property
    def journal(self) -> JournalId:
        return self._journal

    def partition(self, number: int) -> CatalogPartition:
        return CatalogPartition(self._catalog, self._journal, number)

    def partitions(self) -> Sequence[PartitionState]:
        newest = and_(
            JournalSegmentRow.journal == JournalPartitionRow.journal,
            JournalSegmentRow.partition == JournalPartitionRow.partition,
            JournalSegmentRow.first == JournalPartitionRow.newest_first,
            JournalSegmentRow.epoch == JournalPartitionRow.newest_epoch,
            JournalSegmentRow.number == JournalPartitionRow.newest_number,
        )
        query = select(JournalPartitionRow, JournalSegmentRow).outerjoin(JournalSegmentRow, newest)
        ordered = query.where(JournalPartitionRow.journal == self._journal).order_by(JournalPartitionRow.partition)
        with self._catalog.read() as session:
            return [_to_state(row, segment) for row, segment in session.execute(ordered)]

    def segments(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        row = JournalSegmentRow
        mine = and_(row.journal == self._journal, row.partition == partition)
        # Offsets have no holes: the last segment that begins at or before ``lower`` is the first that can have it.
        before = select(row.first).where(mine, row.first <= lower).order_by(row.first.desc()).limit(1)
        query = (
            select(row)
            .where(mine, row.first >= func.coalesce(before.scalar_subquery(), lower), row.first < upper)
            .where(row.end > lower, row.end > row.first)
            .order_by(row.first, row.epoch, row.number)
            .limit(limit)
        )
        with self._catalog.read() as session:
            return [_to_segment(one) for one in session.scalars(query)]

    def positioned(self, partition: int, lower: int, upper: int, *, limit: int | None = None) -> Sequence[Segment]:
        row = JournalSegmentRow
        mine = and_(row.journal == self._journal, row.partition == partition)
        # Positions grow with offsets, so both are found by walking the key: from its end, and from there on.
        begins = select(row.first).where(mine, row.low < lower).order_by(row.first.desc()).limit(1).scalar_subquery()
        from_there = and_(mine, row.first >= func.coalesce(begins, 0))
        beyond = select(row.first).where(from_there, row.low >= upper).order_by(row.first).limit(1).scalar_subquery()
        query = (
            select(row)
            .where(from_there, row.first <= func.coalesce(beyond, _ANY_OFFSET))
            .order_by(row.first, row.epoch, row.number)
            .limit(limit)
        )
        with self._catalog.read() as session:
            return [_to_segment(one) for one in session.scalars(query)]

    def names(self, partition: int) -> frozenset[tuple[int, int]]:
        """Epoch and number of all segments of a partition."""
        row = JournalSegmentRow
        query = select(row.epoch, row.number).where(row.journal == self._journal, row.partition == partition)
        with self._catalog.read() as session:
            return frozenset((epoch, number) for epoch, number in session.execute(query))

    def batches(self, ids: Collection[str]) -> Mapping[str, Batch]:
        with self._catalog.read() as session:
            return _known(session, self._journal, ids)


class CatalogPartition(PartitionStore):
    def __init__(self, catalog: Catalog, journal: JournalId, number: int) -> None:
        self._catalog, self._journal, self._number = catalog, journal, number

    def load(self) -> PartitionState:
        with self._catalog.read() as session:
            return self._state(session, self._query())

    def lease(self) -> Lease:
        return self.load().lease

    # ── the lease ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def claim(self, job_id: JobId, *, stood_still: Lease | None = None) -> Holder:
        """:param stood_still: the lease that was compared with the files (see ``rules.claim``)."""
        with self._catalog.write() as session:
            before = self._locked_lease(session)
            if before.lease == Lease():
                self._make(session)
                before = self._locked_lease(session)
            after = rules.claim(before, job_id, stood_still=stood_still)
            self._write(session, before, _lease_values(after.lease))
            return Holder(job_id, after.lease.epoch)

    def beat(self, holder: Holder) -> None:
        self._change(lambda state: rules.beat(state, holder))

    def release(self, holder: Holder) -> None:
        self._change(lambda state: rules.release(state, holder))

    def _change(self, decide: Callable[[PartitionState], PartitionState]) -> None:
        with self._catalog.write() as session:
            before = self._locked_lease(session)
            self._write(session, before, _lease_values(decide(before).lease))

    # ── announcing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def announce(
        self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]
    ) -> PartitionState:
        try:
            return self._announce(holder, before, after, batches)
        except IntegrityError:
            # Another partition has announced one of the batches since it was looked for: now the rule sees it.
            return self._announce(holder, before, after, batches)

    def _announce(
        self, holder: Holder, before: Segment | None, after: Segment, batches: Sequence[Batch]
    ) -> PartitionState:
        with self._catalog.write() as session:
            found, now = self._locked_at(session)
            known = _known(session, self._journal, [batch.id for batch in batches])
            decided = rules.announce(found, holder, before, after, batches, known)
            if decided is found:
                return found
            stored = replace(after, announced_at=now)
            self._write_end(session, found, decided, begun=before is None)
            self._write_segment(session, before, stored)
            if batches:
                # In one order everywhere: two partitions with the same two batches must not wait for each other.
                rows = [vars(one) for one in sorted(batches, key=lambda one: one.id)]
                same = {"journal": self._journal, "announced_at": now}
                session.execute(insert(JournalBatchRow), [same | row for row in rows])
            return replace(decided, segment=stored)

    def _write_end(self, session: Session, before: PartitionState, after: PartitionState, *, begun: bool) -> None:
        values = {"end": after.end, "size": after.size}
        if not begun or after.segment is None:
            statements.change_partition(session, self._journal, before, values)
            return
        newest = after.segment
        values |= {"newest_first": newest.first, "newest_epoch": newest.epoch, "newest_number": newest.number}
        self._write(session, before, {**values, "segments": JournalPartitionRow.segments + 1})

    # ── letting go ────────────────────────────────────────────────────────────────────────────────────────────────────

    def trim(self, to: int) -> PartitionState:
        """Nobody needs what is before ``to``: nobody begins to read it from now on. See ``rules.trim``."""
        with self._catalog.write() as session:
            found, row = self._locked(session), JournalSegmentRow
            whole = self._segments(row.first >= found.begin, row.first < to, row.end <= to)
            trimmed = rules.trim(found, to, [_to_segment(one) for one in session.scalars(whole)]).state
            if trimmed != found:
                self._write(session, found, {"begin": trimmed.begin})
            return trimmed

    def unread(self, *, grace_ms: int, look_only: bool = False) -> Sequence[Segment]:
        """Segments that were trimmed so long ago that nobody reads them any more. What was trimmed since is noted.

        :param grace_ms: how long a read may take that has begun.
        """
        query = self._query() if look_only else self._query().with_for_update()
        with (self._catalog.read if look_only else self._catalog.write)() as session:
            row = session.scalar(query.execution_options(populate_existing=True))
            now = database_ms(session)
            if row is None or (row.begin_noted and now - row.begin_noted_at < grace_ms):
                return []
            noted, segment = row.begin_noted, JournalSegmentRow
            due = session.scalars(self._segments(segment.first < noted, segment.end <= noted)).all() if noted else []
            if row.begin > noted and not look_only:
                row.begin_noted, row.begin_noted_at = row.begin, now
            return [_to_segment(one) for one in due]

    def forget(self, segments: Sequence[Segment]) -> None:
        """Their files are removed."""
        with self._catalog.write() as session:
            found, row, part = self._locked_lease(session), JournalSegmentRow, JournalPartitionRow
            names = [(one.first, one.epoch, one.number) for one in segments]
            mine = (row.journal == self._journal, row.partition == self._number)
            which = and_(*mine, tuple_(row.first, row.epoch, row.number).in_(names), row.end <= found.begin)
            there = session.execute(select(func.count(), func.coalesce(func.sum(row.length), 0)).where(which)).one()
            session.execute(delete(row).where(which), execution_options=_NO_SYNC)
            self._write(session, found, {"segments": part.segments - there[0], "size": part.size - int(there[1])})

    def forget_batches(self) -> int:
        """Ids whose messages nobody begins to read any more, a bounded number of them. Return how many there were.

        The newest segment is never trimmed, so whoever asks again for what it has just announced still finds its ids.
        """
        row, part = JournalBatchRow, JournalPartitionRow
        begin = select(part.begin).where(part.journal == self._journal, part.partition == self._number)
        # A batch is in one segment, and those are trimmed as a whole.
        gone = select(row.id).where(row.journal == self._journal, row.partition == self._number)
        gone = gone.where(row.first < begin.scalar_subquery()).order_by(row.first).limit(_LET_GO_AT_ONCE)
        with self._catalog.write() as session:
            ids = session.scalars(gone).all()
            if ids:
                which = delete(row).where(row.journal == self._journal, row.id.in_(ids))
                session.execute(which, execution_options=_NO_SYNC)
        return len(ids)

    def _segments(self, *which: ColumnElement[bool]) -> Select[JournalSegmentRow]:
        """Oldest first, so many as are looked at in one transaction."""
        row = JournalSegmentRow
        query = select(row).where(row.journal == self._journal, row.partition == self._number, *which)
        return query.order_by(row.first, row.epoch, row.number).limit(_LET_GO_AT_ONCE)

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _write_segment(self, session: Session, before: Segment | None, after: Segment) -> None:
        if before is None:
            session.execute(insert(JournalSegmentRow).values(journal=self._journal, **vars(after)))
        else:
            statements.change_segment(session, self._journal, before, after)

    def _query(self) -> Select[JournalPartitionRow]:
        row = JournalPartitionRow
        return select(row).where(row.journal == self._journal, row.partition == self._number)

    def _locked(self, session: Session) -> PartitionState:
        """Nobody else writes about this partition until the transaction ends."""
        return self._state(session, self._query().with_for_update())

    def _locked_at(self, session: Session) -> tuple[PartitionState, int]:
        """The same, and what time it is behind the lock, in few statements: each announcement begins so."""
        row = statements.lock_partition(session, self._journal, self._number)
        newest = None if row is None or row.newest_epoch is None else statements.find_newest(session, row)
        now = database_ms(session) if newest is None else int(newest.now)
        return PartitionState(self._number) if row is None else _to_state(row, newest), now

    def _locked_lease(self, session: Session) -> PartitionState:
        """As ``_locked``, for who does not look at the newest segment."""
        row = session.scalar(self._query().with_for_update().execution_options(populate_existing=True))
        return PartitionState(self._number) if row is None else _to_state(row, None)

    def _state(self, session: Session, query: Select[JournalPartitionRow]) -> PartitionState:
        row = session.scalar(query.execution_options(populate_existing=True))
        if row is None:
            return PartitionState(self._number)
        if row.newest_epoch is None:
            return _to_state(row, None)
        # Only now, behind the lock: what was joined to the row while it was waited for would be out of date.
        key = (self._journal, self._number, row.newest_first, row.newest_epoch, row.newest_number)
        return _to_state(row, session.get(JournalSegmentRow, key, populate_existing=True))

    def _make(self, session: Session) -> None:
        """Two may make it at once, and one of them finds it claimed."""
        dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
        zero = dict.fromkeys(("lease_epoch", "lease_beat", "begin", "end", "size", "segments"), 0)
        row = dialect.insert(JournalPartitionRow).values(journal=self._journal, partition=self._number, **zero)
        session.execute(row.on_conflict_do_nothing())

    def _write(self, session: Session, before: PartitionState, values: Mapping[str, object]) -> None:
        row = JournalPartitionRow
        same = (row.journal == self._journal, row.partition == self._number)
        unchanged = (row.lease_epoch == before.lease.epoch, row.lease_beat == before.lease.beat, row.end == before.end)
        change(session, update(row).where(*same, *unchanged).values(values), 1, "the partition")


def _lease_values(lease: Lease) -> Mapping[str, object]:
    return {"lease_epoch": lease.epoch, "lease_job": lease.job_id, "lease_beat": lease.beat}


def _known(session: Session, journal: JournalId, ids: Collection[str]) -> dict[str, Batch]:
    row = JournalBatchRow
    columns = (row.id, row.partition, row.first, row.end, row.digest)
    known: dict[str, Batch] = {}
    for some in paging.batches(ids):
        query = select(*columns).where(row.journal == journal, row.id.in_(some))
        known |= {found.id: Batch(*found) for found in session.execute(query)}
    return known


def _to_state(row: JournalPartitionRow | Row[Any], newest: JournalSegmentRow | Row[Any] | None) -> PartitionState:
    return PartitionState(
        partition=row.partition,
        lease=Lease(row.lease_epoch, row.lease_job, row.lease_beat),
        begin=row.begin,
        end=row.end,
        segment=_to_segment(newest) if newest else None,
        size=row.size,
    )


def _to_segment(row: JournalSegmentRow | Row[Any]) -> Segment:
    return Segment(
        partition=row.partition,
        epoch=row.epoch,
        number=row.number,
        first=row.first,
        end=row.end,
        length=row.length,
        checksum=row.checksum,
        payload=row.payload,
        announced_at=row.announced_at,
        low=row.low,
        boundary=row.boundary,
    )


def journals_of(catalog: Catalog, warehouse: str = "") -> Journals:
    """The journals of a catalog, for connectors. :param warehouse: where their files are, for who reads them."""
    return Journals(partial(CatalogJournal, catalog), warehouse)
