"""Many sources of all shapes, whose holders commit all the time, are migrated, killed, taken back, and again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CommitRow, MembershipRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.legacy_sources import legacy_objects
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.upgrade.plan import LABELS, Action
from airflow_provider_mzshare.core.ids import ItemId
from tests.support.catalog import Log, wrote_all
from tests.support.legacy import BIDS, SHAPES, add_multi, add_single, add_view, definitions, killed_command

ODD = ["", "_source", " 🦊", ".b", '"q"', "$(x)", "--conf", "{{ x }}", "`y`", "_source_1", "'s"]
HOLDERS = 4


def create(catalog: Catalog, count: int) -> dict[ItemId, Log]:
    """Each with a view on it, a view on that, and one on its progress."""
    made = {}
    for number in range(count):
        schema, name = f"n{number}", f"s{number}{ODD[number % len(ODD)]}"
        quoted = '"{}"'.format(name.replace('"', '""'))
        if number % 5 == 4:
            bare = BIDS.model_copy(update={"text_columns": ()})
            source_id, _ = add_multi(catalog, (schema, name), {(schema, "bids"): BIDS if number % 2 else bare})
            quoted = "bids"
        else:
            source_id, _ = add_single(catalog, (schema, name), list(SHAPES.values())[number % 5])
        add_view(catalog, (schema, "v"), f"SELECT count(*) AS c FROM {schema}.{quoted} AS x")
        progress = '"{}_progress"'.format(name.replace('"', '""'))
        add_view(catalog, (schema, "p"), f"SELECT p.tick FROM {schema}.{progress} AS p")
        add_view(catalog, (schema, "vv"), f"SELECT v.c FROM {schema}.v, {schema}.v AS w")
        made[source_id] = Log(catalog, source_id)
    return made


@contextmanager
def ticking(logs: dict[ItemId, Log]) -> Iterator[list[BaseException]]:
    """Holders that go on all the time; what stopped one of them."""
    failures: list[BaseException] = []
    ended = threading.Event()

    def hold(own: list[Log]) -> None:
        version = 0
        while not ended.is_set():
            version += 1
            for log in own:
                try:
                    log.commit(log.mint(), wrote_all(log.store.members(), version))
                except BaseException as error:
                    failures.append(error)
                    return
                if ended.wait(0.02):
                    return

    every = list(logs.values())
    threads = [threading.Thread(target=hold, args=(every[first::HOLDERS],)) for first in range(HOLDERS)]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)


def commits(catalog: Catalog) -> set[tuple[str, int, int, int, str]]:
    with catalog.read() as session:
        rows = session.scalars(select(CommitRow))
        return {(row.collection_id, row.mz_timestamp, row.version, row.rows, row.hash) for row in rows}


def memberships(catalog: Catalog) -> set[tuple[str, int, int | None]]:
    with catalog.read() as session:
        rows = session.scalars(select(MembershipRow))
        return {(row.table_id, row.joined_at, row.left_at) for row in rows}


def with_kills(catalog: Catalog, action: Action, count: int, labels: Collection[str]) -> None:
    for label in (one for one in LABELS[action] if one in labels):
        killed_command(catalog.url, action, f"{label}@{count // 10}" if label.endswith("_committed") else label)
    assert not run(catalog, Wanted(everything=True), Run(action, apply=True)).failed


def go_through(catalog: Catalog, count: int, labels: Collection[str]) -> None:
    logs = create(catalog, count)
    before = definitions(catalog)
    for log in logs.values():
        log.tick()
    first, members = commits(catalog), memberships(catalog)
    with ticking(logs) as failures:
        with_kills(catalog, "migrate", count, labels)
        after = definitions(catalog)
        with_kills(catalog, "rollback", count, labels)
        assert definitions(catalog) == before
        with_kills(catalog, "migrate", count, labels)
        assert definitions(catalog) == after
        with_kills(catalog, "finalize", count, labels)
    assert not failures, failures[0]
    assert first <= commits(catalog)
    assert memberships(catalog) == members
    with catalog.read() as session:
        assert not legacy_objects(session)
        tables = {table.id: table for table in lookup.list_tables(session)}
    ids = {row[0] for row in before["tables"]}
    assert tables.keys() == ids
    assert {table.status for table in tables.values()} == {"live"}
    for source_id, log in logs.items():
        assert log.store.load().lease.epoch == 1, source_id


@pytest.mark.parametrize("catalog_url", ["postgres"], indirect=True)
def test_some(catalog: Catalog) -> None:
    go_through(catalog, 10, ("migrate_tables_made", "rollback_names_returned", "finalize_alias_dropped"))


@pytest.mark.full(seconds=600)
@pytest.mark.timeout(1_800)
def test_a_hundred(catalog: Catalog) -> None:
    go_through(catalog, 100, [one for labels in LABELS.values() for one in labels])
