"""A journal as an upstream: what is announced is there, and nothing else. The catalog answers every question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.connectors.base import Inspection, ReferenceInfo
from airflow_provider_mzshare.connectors.journal.specs import REFERENCE, JournalSpec
from airflow_provider_mzshare.core.journal.stores import JournalStore
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import UpstreamChanged

SEGMENTS = 20
"""So many are looked at for the size of a record."""


@dataclass(frozen=True)
class JournalInfo:
    incarnation: str
    partitions: tuple[int, ...]


class JournalUpstream:
    def __init__(self, spec: JournalSpec, store: JournalStore) -> None:
        self._spec, self._store = spec, store

    def inspect(self, start: Start) -> Inspection:
        return Inspection(self.describe(), self.resolve_start(start))

    def describe(self) -> JournalInfo:
        return JournalInfo(self._store.journal, tuple(range(self._spec.partitions)))

    def references(self) -> tuple[ReferenceInfo, ...]:
        return (ReferenceInfo(None, REFERENCE),)

    def check_readable(self) -> None:
        """Whoever has the catalog may read it."""

    def check_identity(self, incarnation: str) -> None:
        if incarnation != self._store.journal:
            raise UpstreamChanged(
                "journal_changed", f"the journal is now {self._store.journal}, but this source read {incarnation}"
            )

    def check_history(self, lower: Position) -> None:
        found = {str(state.partition): state for state in self._store.partitions()}
        for partition, offset in lower.entries:
            end = found[partition].end if partition in found else 0
            if offset > end:
                raise UpstreamChanged(
                    "journal_behind",
                    f"partition {partition}: records up to {offset} were read, but the catalog knows only those up to "
                    f"{end}: it was restored from an old copy",
                    hint="restore a newer backup of the catalog; or DROP SOURCE … CASCADE and create it again",
                )
        for partition, begin in Position({name: state.begin for name, state in found.items()}).entries:
            if begin > lower[partition]:
                raise UpstreamChanged(
                    "history_gone",
                    f"partition {partition}: the next record to read is {lower[partition]}, but the journal now begins "
                    f"at {begin}: {begin - lower[partition]} records are gone",
                )

    def compaction(self) -> None:
        """Records are never removed because of later ones."""

    def begin_offsets(self) -> Position:
        return Position({found.partition: found.begin for found in self._store.partitions()})

    def end_offsets(self) -> Position:
        return Position({found.partition: found.end for found in self._store.partitions()})

    def resolve_start(self, start: Start) -> Position:
        return self.begin_offsets()

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        sizes: dict[str, float] = {}
        for name in upper:
            segments = self._store.segments(int(name), lower[name], upper[name], limit=SEGMENTS)
            if messages := sum(segment.messages for segment in segments):
                sizes[name] = sum(segment.payload for segment in segments) / messages
        return sizes

    def close(self) -> None:
        """Nothing is held open: the catalog is its opener's."""

    def __enter__(self) -> JournalUpstream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
