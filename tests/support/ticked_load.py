"""A large table in a catalog, with as many ticks as asked for: no app, no records, no pass.

What a tick does after the pass is the product's, so is what is done beside it, and what the catalog notes.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from sqlalchemy import select

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.composition import open_catalog
from airflow_provider_mzshare.core.ids import CollectionId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.core.ticklog.state import Done, Tick, Written
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import CommitResult, FileWritten, NewFiles, commit_tick
from airflow_provider_mzshare.storage.collections.vectors.files import write_rows
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.upkeep import Upkeep
from tests.perf.peers.task import COLUMNS
from tests.support.keyed_load import KEY, KeyedLoad, fill, member_plan, rows_of

NAME = "t"


class TickedLoad:
    """:param home: as ``connect(home=…)`` takes it. :param keys: rows that the table has before its first tick.

    :param keyed: ticks change rows; else they add some.
    """

    def __init__(self, home: Path, keys: int, *, keyed: bool = True) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.root = home, home / "warehouse"
        self.root.mkdir()
        self.catalog = open_catalog(f"sqlite:///{home / 'catalog.db'}")
        self.catalog.ensure()
        with self.catalog.write() as session:
            source_id = items.create_source(
                session,
                name=("public", "s"),
                spec=KafkaSourceSpec(connection="broker", topic="topic"),
                incarnation="one",
                start=Position(),
            )
            spec = _spec(keyed=keyed)
            self.table_id = items.create_table(session, name=("public", NAME), source_id=source_id, spec=spec)
            mine = (CollectionRow.table_id == self.table_id) & (CollectionRow.role == "data")
            self.name: CollectionId = session.scalars(select(CollectionRow.id).where(mine)).one()
        self._rows: _Rows = (_Changed if keyed else _Added)(self.root, self.name, keys)
        self._store = CatalogTickStore(self.catalog, source_id)
        self._holder = self._store.claim(JobId("ingest-1"))
        self.ticks: list[tuple[int, int]] = []
        """Their times, and the versions that they have made."""

    @property
    def path(self) -> Path:
        return self.root / self.name

    def run(self, ticks: int, changes: int) -> None:
        """As many more, and beside them what an app does."""
        upper = self._store.load().upper
        upkeep = Upkeep(str(self.root), lambda: None, _no_damage, self._rows.states)
        for _ in range(ticks):
            lower, upper = upper, Position({"0": upper["0"] + changes})
            tick = self._store.mint(self._holder, lower=lower, upper=upper, incarnation="one")
            result = self._rows.commit(tick, changes)
            assert result.version is not None
            at = {"tick": tick.number, "mz_timestamp": tick.mz_timestamp}
            done = Done((Written(self.name, result.version, changes, f"{0:032x}", **at),), rows=changes)
            self._store.commit(self._holder, tick.number, {self.table_id: done}, {})
            self.ticks.append((tick.mz_timestamp, result.version))
            upkeep.committed(self._rows.collection)
            self._put(upkeep)
            upkeep.after_tick()
        upkeep.close()
        self._put(upkeep)

    def _put(self, upkeep: Upkeep) -> None:
        for _, done in upkeep.rewritten():
            self._rows.states.put_rewritten(self._rows.collection, done)

    def close(self) -> None:
        self._rows.states.close()
        self.catalog.close()


class _Rows(ABC):
    """A collection with so many rows, and what a tick does to it."""

    collection: Collection
    states: KeyStates

    @abstractmethod
    def commit(self, tick: Tick, changes: int) -> CommitResult: ...


class _Changed(_Rows):
    def __init__(self, root: Path, name: CollectionId, keys: int) -> None:
        self._load = KeyedLoad(root, keys, name=name)
        self.collection, self.states = self._load.collection, self._load.states

    def commit(self, tick: Tick, changes: int) -> CommitResult:
        return self._load.commit(self._load.events(changes), tick.mz_timestamp)


class _Added(_Rows):
    def __init__(self, root: Path, name: CollectionId, keys: int) -> None:
        self.states, self._next = KeyStates(root / "scratch"), keys
        create_collection(str(root), name, member_plan().schema)
        self.collection = Collection.open(str(root), name)
        fill(self.collection, keys)

    def commit(self, tick: Tick, changes: int) -> CommitResult:
        keys = np.arange(self._next, self._next + changes)
        self._next += changes
        rows = rows_of(keys, tick.number, self.collection.schema)
        file = write_rows(self.collection.uri, self.collection.filesystem, rows)
        return commit_tick(
            self.collection,
            mz_timestamp=tick.mz_timestamp,
            content=NewFiles([FileWritten(file.path, file.size, file.stats, time.time())]),
            metadata={"mz_tick": str(tick.number)},
            knows=lambda _: True,
            force=False,
        )


def _spec(*, keyed: bool) -> TableSpec:
    return TableSpec(
        reference="topic",
        format="json",
        columns=tuple(ColumnSpec(name=name, type=kind) for name, kind in COLUMNS),
        include=(Include(what="key", name=KEY),),
        **({"envelope": "upsert"} if keyed else {}),
    )


def _no_damage(name: CollectionId, damage: str) -> None:
    raise AssertionError(f"{name}: {damage}")
