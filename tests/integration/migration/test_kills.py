"""Killed at every labelled point, a source is wholly before or wholly after; the same again finishes it."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import comments
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.upgrade.plan import LABELS, Action
from tests.support.catalog import Log
from tests.support.legacy import BIDS, add_multi, add_single, add_view, data, definitions, killed
from tests.support.migrating import ALL, do, on_one


@pytest.fixture
def source(catalog: Catalog) -> str:
    """Of one output: with dependents of each kind."""
    source_id, _ = add_single(catalog, ("public", "orders"))
    add_view(catalog, ("public", "v"), "SELECT id FROM orders")
    add_view(catalog, ("public", "p"), "SELECT tick FROM orders_progress")
    with catalog.write() as session:
        comments.set_comment(session, source_id, "in euros", "amount")
    Log(catalog, source_id).tick()
    return source_id


@pytest.fixture
def source_of_several(catalog: Catalog) -> str:
    bare = BIDS.model_copy(update={"text_columns": ()})
    source_id, _ = add_multi(catalog, ("public", "auction"), {("public", "bids"): bare})
    return source_id


def try_all(catalog: Catalog, action: Action, labels: set[str], way_back: Action) -> None:
    before = definitions(catalog)
    do(catalog, action)
    after, rows = definitions(catalog), data(catalog)
    do(catalog, way_back)
    assert definitions(catalog) == before
    for label in sorted(labels):
        killed(catalog.url, action, label)
        assert definitions(catalog) == (after if label.endswith("_committed") else before), label
        do(catalog, action)
        assert definitions(catalog) == after, label
        do(catalog, way_back)
        assert definitions(catalog) == before, label
    assert data(catalog) == rows


MULTI = {"migrate_options_copied", "migrate_tables_made"}
SINGLE = {"migrate_source_renamed", "migrate_table_made", "migrate_dependents_moved"}


def test_a_source_of_one_output(catalog: Catalog, source: str) -> None:
    try_all(catalog, "migrate", set(LABELS["migrate"]) - MULTI, "rollback")
    do(catalog, "migrate")
    try_all(catalog, "rollback", set(LABELS["rollback"]), "migrate")


@on_one
def test_a_source_of_several_outputs(catalog: Catalog, source_of_several: str) -> None:
    try_all(catalog, "migrate", set(LABELS["migrate"]) - SINGLE, "rollback")


def test_the_end(catalog: Catalog, source: str) -> None:
    do(catalog, "migrate")
    migrated, rows = definitions(catalog), data(catalog)
    for label in LABELS["finalize"][:-1]:
        killed(catalog.url, "finalize", label)
        assert definitions(catalog) == migrated, label
    killed(catalog.url, "finalize", LABELS["finalize"][-1])
    ended = definitions(catalog)
    assert ended != migrated
    do(catalog, "finalize")
    assert definitions(catalog) == ended
    assert data(catalog) == rows


@on_one
def test_a_run_over_many_goes_on_where_it_was_killed(catalog: Catalog, source: str, source_of_several: str) -> None:
    add_single(catalog, ("public", "third"))
    before = definitions(catalog)
    do(catalog, "migrate")
    after = definitions(catalog)
    do(catalog, "rollback")
    for nth, label in enumerate(("migrate_committed", "migrate_noted", "migrate_source_stripped"), start=1):
        killed(catalog.url, "migrate", f"{label}@{nth}")
        report = run(catalog, ALL, Run(apply=True))
        done = nth if label == "migrate_committed" else nth - 1
        assert [one.state for one in report.sources] == ["already"] * done + ["done"] * (3 - done)
        assert definitions(catalog) == after
        do(catalog, "rollback")
        assert definitions(catalog) == before
