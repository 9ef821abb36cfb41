"""Old-style sources of all shapes are migrated while they ingest: nobody who reads by name, and no app, notices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.objects import items, lookup
from airflow_provider_mzshare.control.catalog.objects.legacy_sources import legacy_objects
from airflow_provider_mzshare.control.lifecycle.read_table import count_rows
from airflow_provider_mzshare.control.upgrade.plan import LABELS, Action
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.fleet import Fleet
from tests.support.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ids(fleet: Fleet) -> dict[str, tuple[str, str]]:
    """By id: kind and name of all that is not dropped."""
    with fleet.catalog.read() as session:
        found: list[lookup.Item] = [*items.list_sources(session), *items.list_tables(session)]
        return {one.id: (one.kind, one.display) for one in found}


@contextmanager
def reading(fleet: Fleet, names: list[str]) -> Iterator[list[BaseException]]:
    """Somebody who reads by name all the time; what went wrong for them."""
    failures: list[BaseException] = []
    ended = threading.Event()

    def read() -> None:
        counts = dict.fromkeys(names, 0)
        while not ended.wait(0.2):
            for name in names:
                try:
                    count = count_rows(fleet.catalog, fleet.warehouse, name)
                    assert count >= counts[name], f"{name}: {count} rows after {counts[name]}"
                    counts[name] = count
                except BaseException as error:
                    failures.append(error)
                    return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield failures
    finally:
        ended.set()
        thread.join(60)


ALL_LABELS = tuple(one for labels in LABELS.values() for one in labels if one != "migrate_options_copied")
"""Today's statements keep the options of columns on the subsources as well: nothing is left to copy."""


@dataclass(frozen=True)
class Size:
    """How much of it."""

    sources: int
    pace: str
    heartbeat: float
    timeout: float
    kills: tuple[str, ...]


def with_kills(fleet: Fleet, action: Action, size: Size) -> None:
    """Killed at each of the labels in turn, and some sources further with the last one; then to its end."""
    option = [] if action == "migrate" else [f"--{action}"]
    for label in (one for one in size.kills if one.startswith(f"{action}_")):
        fleet.migrate(*option, crash=f"{label}@{size.sources // 4}" if label.endswith("_committed") else label)
    fleet.migrate(*option)


def check_ids(before: dict[str, tuple[str, str]], after: dict[str, tuple[str, str]]) -> None:
    """As promised: none new, none gone; names stay with their rows, sources of one output make room."""
    assert before.keys() == after.keys()
    for one, (kind, name) in before.items():
        if kind != "source":
            assert after[one] == ("table", name)
        elif name in {other for k, other in before.values() if k == "output"}:
            assert after[one] == ("source", name[:-1] + '_source"' if name.endswith('"') else f"{name}_source")
        else:
            assert after[one] == (kind, name)


def go_through(fleet: Fleet, size: Size) -> None:
    fleet.create(size.sources, size.pace)
    fleet.start(lease_seconds=size.heartbeat * 20, heartbeat_seconds=size.heartbeat)
    fleet.wait_ticks(1, size.timeout)
    at, before = fleet.ticks(), ids(fleet)
    seen, commits, places, leases = fleet.seen(at), fleet.commits(), fleet.collections(), fleet.leases()
    assert all(one.count for one in seen.values())

    def check() -> None:
        assert fleet.seen(at) == seen
        assert commits.items() <= fleet.commits().items()
        assert (fleet.collections(), fleet.leases()) == (places, leases)

    with reading(fleet, list(at)[:: max(1, len(at) // 10)]) as failures:
        with_kills(fleet, "migrate", size)
        check_ids(before, ids(fleet))
        check()
        fleet.produce(1_000)
        fleet.wait_ticks(1, size.timeout)
        check()
        with_kills(fleet, "rollback", size)
        assert ids(fleet) == before
        check()
        report = fleet.migrate()
        assert report["counts"]["done"] == size.sources
        check_ids(before, ids(fleet))
        with_kills(fleet, "finalize", size)
        check_ids(before, ids(fleet))
        fleet.wait_ticks(1, size.timeout)
        check()
    assert not failures, failures[0]
    with fleet.catalog.read() as session:
        assert not legacy_objects(session)
        progress = select(ItemRow.name).where(ItemRow.kind == "progress", ItemRow.dropped_at.is_(None))
        assert not session.scalars(progress).all()
    fleet.sql("ALTER SYSTEM SET force_source_table_syntax = true")
    assert count_rows(fleet.catalog, fleet.warehouse, "n0.vv") == 1
    assert count_rows(fleet.catalog, fleet.warehouse, "n0.p") == 1
    fleet.stop()
    fleet.check_complete()


def test_migrated_back_and_again_while_they_ingest(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path) -> None:
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        fleet = Fleet(tmp_path, catalog, kafka, spark)
        few = ("migrate_table_made", "rollback_names_returned")
        go_through(fleet, Size(2, "TRIGGER INTERVAL '500ms', IDLE TICK INTERVAL '1s'", 1, 120, few))


@pytest.mark.full(seconds=730)
@pytest.mark.timeout(7_200)
def test_a_hundred_of_all_shapes(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, postgres: Postgres) -> None:
    name = postgres.create_database()
    with Catalog(postgres.url(name)) as catalog:
        fleet = Fleet(tmp_path, catalog, kafka, spark)
        go_through(fleet, Size(100, "TRIGGER INTERVAL '90s', IDLE TICK INTERVAL '180s'", 20, 1_800, ALL_LABELS))
