"""Tables with keys whose past another has written: a catalog from before, a collection from before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.control.lifecycle.repair import repair_catalog
from airflow_provider_mzshare.core.ids import CollectionId, JobId
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.errors import CatalogBehind
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.writing import member_commits
from tests.support.driven import DrivenIngestion
from tests.support.keyed_cases import PLAIN, Step, assemble
from tests.support.keyed_oracle import adding
from tests.support.keyed_scene import KeyedScene
from tests.support.plugins import ENVELOPE, installed

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'
UNKNOWN = [Step(0, b"unknown", None), Step(1, b"gone", None)]
CASE = assemble(
    PLAIN,
    [
        [Step(0, b"a", ONE), Step(0, b"b", ONE), Step(1, b"c", ONE), Step(1, b"bad", b"{")],
        [Step(0, b"a", TWO), Step(1, b"d", TWO), Step(1, b"c", ONE)],
        [Step(1, b"d", None), Step(0, b"e", ONE)],
        UNKNOWN,
        [Step(0, b"a", None), Step(1, b"f", TWO)],
        [Step(0, b"a", ONE)],
        [Step(1, b"f", None), Step(0, b"b", TWO)],
    ],
)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    made = KeyedScene(tmp_path, CASE, monkeypatch.setattr)
    yield made
    made.close()


@pytest.fixture
def adds() -> Iterator[None]:
    with installed(ENVELOPE, ENVELOPES):
        yield


@pytest.mark.usefixtures("adds")
def test_a_catalog_that_was_restored_is_repaired_by_what_the_tables_know(scene: KeyedScene, tmp_path: Path) -> None:
    """Also a tick that has changed no row, and so has no entry anywhere: it took away keys that were not there. Records
    add up, so that what is applied twice shows."""
    shape = replace(PLAIN, envelope="adding")
    scene.case = replace(CASE, shape=shape)
    states = scene.case.states(adding(shape))
    specs = {
        name: shape.spec.model_copy(update={"deletion_vectors": name == "vectors"}) for name in ("vectors", "merged")
    }
    tables = {name: scene.add_table(name, spec) for name, spec in specs.items()}
    scene.run(CASE.ticks[:2])
    with (
        closing(sqlite3.connect(tmp_path / "catalog.db", timeout=30)) as now,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        now.backup(copy)
        scene.run(CASE.ticks[2:5])
        copy.backup(now)
    with pytest.raises(CatalogBehind):
        scene.app.commits.check_log()
    (repaired,) = repair_catalog(scene.catalog, scene.root)
    assert repaired.ticks == (3, 4, 5)
    scene.app = DrivenIngestion(scene.catalog, scene.root, scene.source_id, scene.records, JobId("ingest-2"))
    assert scene.app.finish_pending() == [3, 4, 5]
    scene.run(CASE.ticks[5:])
    for name, table in tables.items():
        for tick in CASE.ticks:
            scene.check_state(states[tick.number], name, tick=tick.number)
        scene.prove(table, states[7])
        assert scene.check(table).is_whole


def test_a_table_from_before_there_were_vectors_is_merged_until_it_is_filled_again(
    scene: KeyedScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stored spec says nothing of vectors, so it is read with the default; its files say that it has none."""
    states, without = CASE.states(), {"vectors": False}
    table = scene.add_table()
    with monkeypatch.context() as patch:
        patch.setattr(member_commits, "create_collection", lambda *a, **more: create_collection(*a, **more | without))
        scene.run(CASE.ticks[:2])
    scene.run(CASE.ticks[2:4])

    def has_vectors() -> bool:
        return Collection.open(scene.root, CollectionId(scene.point(table).data)).has_vectors

    assert not has_vectors()
    with scene.catalog.write() as session:
        resnapshot_table(session, table)
    scene.backfill(table)
    scene.run(CASE.ticks[4:])
    assert has_vectors()
    for tick in CASE.ticks[4:]:
        scene.check_state(states[tick.number], tick=tick.number)
    scene.prove(table, states[7], everything=True)
