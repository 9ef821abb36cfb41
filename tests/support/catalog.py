"""A catalog with something in it, for tests that need more than an empty one."""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogMember, CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Outcome, Tick, Written

TOPIC_ID = "topic-id-1"
SOURCE = KafkaSourceSpec(connection="kafka", topic="events")
TABLE = TableSpec(reference="events", format="json")


def new_sqlite(path: Path) -> str:
    """The URL of a new catalog in that file, of the current version: a copy takes a tenth of the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(_template())) as template, closing(sqlite3.connect(path)) as copy:
        template.backup(copy)
    return f"sqlite:///{path}"


@cache
def _template() -> Path:
    """Made once per process."""
    folder = Path(tempfile.mkdtemp(prefix="mzshare-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with Catalog(f"sqlite:///{folder / 'template.db'}") as catalog:
        catalog.upgrade()
    return folder / "template.db"


def add_source(catalog: Catalog, name: str = "s", *, start: Position = Position()) -> ItemId:  # noqa: B008
    with catalog.write() as session:
        return items.create_source(session, name=("public", name), spec=SOURCE, incarnation=TOPIC_ID, start=start)


def add_tables(catalog: Catalog, source_id: ItemId, *names: str) -> list[ItemId]:
    with catalog.write() as session:
        return [items.create_table(session, name=("public", name), source_id=source_id, spec=TABLE) for name in names]


def counting(start: int = 1_000, step: int = 10) -> Callable[[], int]:
    """A clock of its own: 1000, 1010, 1020, …"""
    now = start - step

    def clock() -> int:
        nonlocal now
        now += step
        return now

    return clock


class Log:
    """A source with its store and a holder, to make ticks with."""

    def __init__(self, catalog: Catalog, source_id: ItemId, *, job: str = "job-1") -> None:
        self.store = CatalogTickStore(catalog, source_id, clock=counting())
        self.source_id = source_id
        self.holder: Holder = self.store.claim(JobId(job))

    def mint(self, records: int = 1) -> Tick:
        lower = self.store.load().upper
        upper = Position({"0": lower[0] + records})
        return self.store.mint(self.holder, lower=lower, upper=upper, incarnation=TOPIC_ID)

    def empty(self) -> Tick:
        return self.store.mint_empty(self.holder, at=self.store.load().upper, incarnation=TOPIC_ID)

    def commit(self, tick: Tick, outcomes: dict[ItemId, Outcome] | None = None) -> None:
        chosen = {member.table_id: Done() for member in self.store.members()} | (outcomes or {})
        self.store.commit(self.holder, tick.number, chosen, {"read_ms": 1.5})

    def tick(self, records: int = 1, outcomes: dict[ItemId, Outcome] | None = None) -> Tick:
        tick = self.mint(records)
        self.commit(tick, outcomes)
        return tick

    def member(self, table_id: ItemId) -> CatalogMember:
        return next(member for member in self.store.members() if member.table_id == table_id)


def wrote(member: CatalogMember, version: int, rows: int = 3, errors: int = 0) -> Done:
    """The outcome of a member whose data, and errors if there are any, got a commit."""
    written = [Written(member.data, version, rows, "0" * 32)]
    if errors:
        written.append(Written(member.errors, version, errors, "f" * 32))
    return Done(tuple(written), rows, errors)


def wrote_all(members: Sequence[CatalogMember], version: int) -> dict[ItemId, Outcome]:
    return {member.table_id: wrote(member, version, errors=1) for member in members}
