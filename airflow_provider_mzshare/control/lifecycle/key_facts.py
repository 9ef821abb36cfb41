"""What the catalog knows of a table whose rows change, to be compared: its ticks, and the sums of its commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.connectors.places import Lane, Place
from airflow_provider_mzshare.control.catalog.database.models import CommitRow, TickRow
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope
from airflow_provider_mzshare.core.schema import TICK
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS

Sum = tuple[int, int]
"""Rows, and their hash; of commits, afterwards less before."""


@dataclass(frozen=True)
class LaneTicks:
    """Where the ticks end in which a lane has moved, and their numbers."""

    ends: npt.NDArray[Any]
    numbers: npt.NDArray[np.int64]

    def at(self, tick: int) -> int:
        """Where the lane is after a tick."""
        index = int(np.searchsorted(self.numbers, tick, side="right"))
        return int(self.ends[index - 1]) if index else 0

    def of(self, counted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The ticks that hold these numbers, all of which lie before the last end."""
        return self.numbers[np.searchsorted(self.ends, counted, side="right")]


@dataclass(frozen=True)
class KeyFacts:
    """:param ticks: all up to the one that is compared, by lane.
    :param written: what all commits up to there sum up to.
    :param certified: what those of the certificate's backfill sum up to.
    """

    ticks: Mapping[Lane, LaneTicks]
    written: Sum
    certified: Sum

    def numbered(self, events: pa.RecordBatch, lane: Lane, place: Place) -> pa.RecordBatch:
        """The events of a lane, each with the tick whose range holds its place."""
        counted = events.column(place.column(place.counted).name).to_numpy(zero_copy_only=False)
        index = events.schema.get_field_index(TICK)
        return events.set_column(index, events.schema.field(TICK), pa.array(self.ticks[lane].of(counted), pa.int64()))


def find_key_facts(session: Session, scope: Scope) -> KeyFacts:
    upto = CommitRow.mz_timestamp <= scope.point.mz_timestamp
    certificate, certified = scope.certificate, (0, 0)
    if certificate is not None:
        wrote = CommitRow.tick.between(certificate.from_tick, certificate.tick - 1)
        certified = _sum(session, scope, wrote)
    return KeyFacts(_ticks(session, scope), _sum(session, scope, upto), certified)


def _sum(session: Session, scope: Scope, condition: ColumnElement[bool]) -> Sum:
    commits = select(CommitRow.rows, CommitRow.hash).where(CommitRow.collection_id == scope.point.data, condition)
    found = session.execute(commits).all()
    return sum(rows for rows, _ in found), sum(int(hash, 16) for _, hash in found) % MODULUS


def _ticks(session: Session, scope: Scope) -> dict[Lane, LaneTicks]:
    """A log has many ticks and few of them move a lane, so only these are kept."""
    query = select(TickRow.number, TickRow.upper).where(
        TickRow.source_id == scope.table.source_id, TickRow.number <= scope.point.tick
    )
    moves: dict[str, list[tuple[int, int]]] = {}
    for number, upper in session.execute(query.order_by(TickRow.number)):
        for lane, end in upper.entries:
            known = moves.setdefault(lane, [])
            if not known or known[-1][0] < end:
                known.append((end, number))
    kind: Any = object if scope.place.column(scope.place.counted).is_wide else np.int64
    return {
        scope.place.lane_of(lane): LaneTicks(
            np.array([end for end, _ in found], kind), np.array([number for _, number in found], np.int64)
        )
        for lane, found in moves.items()
    }
