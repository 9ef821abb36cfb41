"""The example DAG's load into a real Postgres: again, killed, left out. The target is the table as of the end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.operators.changes import ReadChangesOperator
from tests.support.change_streams import Rows, rows_of
from tests.support.filled import Filled
from tests.support.keyed_cases import drawn
from tests.support.keyed_oracle import Shape, Tick
from tests.support.keyed_scene import KeyedScene
from tests.support.postgres import OWNER, Postgres
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
DAG = ROOT / "dags" / "mzshare_changes_to_postgres.py"
SHAPE = Shape(
    columns=(("n", "bigint"), ("name", "text"), ("x", "double")), include=(("key", "key"), ("timestamp", "at"))
)
KILLED = """
import json, sys
import tests.support.airflow
from tests.integration.airflow.test_changes_to_postgres import Loading
Loading(**json.loads(sys.argv[1])).run(*json.loads(sys.argv[2]))
"""
BLOCK = """
CREATE FUNCTION block() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); RETURN NULL; END $$;
CREATE TRIGGER block BEFORE INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION block()"""


def dag_file() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changes_to_postgres", DAG)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Loading:
    """The task of the DAG, for one table. :param form: as a user fills it in."""

    def __init__(self, **form: str | None) -> None:
        self.form = {"target": None, "key": None, "postgres_conn_id": "pg", **form}
        self._load = dag_file().load

    def run(self, start: int, end: int) -> dict[str, Any]:
        task = ReadChangesOperator(
            task_id=f"t{uuid4().hex}", table=str(self.form["table"]), start=start, end=end, process=self._load,
            mzshare_conn_id="mz",
        )  # fmt: skip
        answer: dict[str, Any] = task.execute(Context(params=self.form))  # type: ignore[typeddict-item]
        return dict(answer["result"])


@pytest.fixture
def server(postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """The target's, in a database of its own."""
    name = postgres.create_database()
    found = {"conn_type": "postgres", "host": "127.0.0.1", "port": postgres.port, "login": OWNER, "schema": name}
    monkeypatch.setenv("AIRFLOW_CONN_PG", json.dumps(found))
    monkeypatch.setenv("AIRFLOW_CONN_MZ", json.dumps({"conn_type": "mzshare", "extra": {"home": str(tmp_path)}}))
    with postgres.connect(name) as connection:
        yield connection
    postgres.drop_database(name)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyedScene]:
    made = KeyedScene(tmp_path, drawn(5, SHAPE, ticks=10, most=40), monkeypatch.setattr)
    made.add_table("orders")
    yield made
    made.close()


class Ticks:
    """Runs the scene's ticks; knows where each ends, and the rows then."""

    def __init__(self, scene: KeyedScene) -> None:
        self._scene, self._coming = scene, list(scene.case.ticks)
        self.ends: list[int] = []
        self.states: list[Rows] = []

    def run(self, count: int) -> None:
        ticks: Sequence[Tick] = [self._coming.pop(0) for _ in range(count)]
        for tick in ticks:
            self._scene.run([tick])
        self.ends.append(self._scene.table(ItemId("u2")).upper)
        self.states.append(rows_of(self._scene.read("orders"), ["n", "name", "x", "key", "at"]))


def target(server: psycopg.Connection, columns: str = "n, name, x, key, at", name: str = "orders") -> Rows:
    found = server.execute(f"SELECT {columns} FROM {name}".encode()).fetchall()
    names = [one.strip() for one in columns.split(",")]
    types = {"n": pa.int64(), "id": pa.int64(), "x": pa.float64(), "at": pa.timestamp("us", "UTC")}
    schema = pa.schema([(one, types.get(one, pa.string())) for one in names])
    return rows_of(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in found], schema), names)


def slices(server: psycopg.Connection) -> list[tuple[Any, ...]]:
    return server.execute("SELECT slice_start, slice_end, snapshot FROM mzshare_slices ORDER BY slice_end").fetchall()


@pytest.mark.parametrize("key", ["key", None])
def test_every_slice_is_loaded_once_however_often_its_task_runs(
    scene: KeyedScene, server: psycopg.Connection, key: str | None
) -> None:
    ticks, loading = Ticks(scene), Loading(table="orders", key=key)
    for number in range(4):
        ticks.run(2)
        bounds = (ticks.ends[-2] if number else 1, ticks.ends[-1])
        assert loading.run(*bounds)["loaded"] == ("changes" if number else "snapshot")
        assert loading.run(*bounds) == {"loaded": "before"}
        assert target(server) == ticks.states[-1], f"after slice {number}"
    assert loading.run(1, ticks.ends[0]) == {"loaded": "before"}
    assert target(server) == ticks.states[-1]
    assert slices(server) == [
        (start, end, number == 0) for number, (start, end) in enumerate(zip([1, *ticks.ends], ticks.ends, strict=False))
    ]


def test_runs_that_were_left_out_are_made_up_for(scene: KeyedScene, server: psycopg.Connection) -> None:
    ticks, loading = Ticks(scene), Loading(table="orders", target="public.copy")
    for _ in range(4):
        ticks.run(2)
    ends = ticks.ends
    for bounds, loaded in (
        ((1, ends[0]), "snapshot"),
        ((ends[1], ends[2]), "snapshot"),
        ((ends[2], ends[3]), "changes"),
    ):
        assert loading.run(*bounds)["loaded"] == loaded
        assert target(server, name="copy") == ticks.states[ends.index(bounds[1])]
    server.execute("DELETE FROM mzshare_slices")
    assert loading.run(ends[2], ends[3])["loaded"] == "snapshot"
    assert target(server, name="copy") == ticks.states[-1]


def test_a_task_that_is_killed_has_loaded_nothing_and_its_retry_everything(
    scene: KeyedScene, server: psycopg.Connection, tmp_path: Path
) -> None:
    ticks, loading = Ticks(scene), Loading(table="orders", key="key")
    ticks.run(4)
    loading.run(1, ticks.ends[0])
    ticks.run(4)
    server.execute(BLOCK.encode())
    server.execute("SELECT pg_advisory_lock(7)")
    command = [sys.executable, "-c", KILLED, json.dumps({"table": "orders", "key": "key"}), json.dumps(ticks.ends)]
    with (tmp_path / "output.txt").open("w") as file:
        running = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=file, stderr=file)
    try:
        wait_until(lambda: _blocked(server) or running.poll() is not None, 300, "rows went, and none has come yet")
        assert running.poll() is None, (tmp_path / "output.txt").read_text()
        assert target(server) == ticks.states[0], "nobody sees the middle"
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
        server.execute("SELECT pg_advisory_unlock(7)")
    assert loading.run(*ticks.ends)["loaded"] == "changes"
    assert target(server) == ticks.states[1]
    assert len(slices(server)) == 2


def _blocked(server: psycopg.Connection) -> bool:
    found = server.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()
    return found is not None and found[0] > 0


def test_rows_that_are_alike_come_and_go_by_their_number(
    tmp_path: Path, server: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        filled = Filled(catalog, tmp_path)
        source = filled.source()
        filled.table(source, "orders", "id bigint, name text")
        loading, ends = Loading(table="orders"), [1]
        for records in (
            [{"id": 1, "name": None}] * 3,
            [{"id": 1, "name": ""}],
            [{"id": None, "name": '\\N\t"x\n'}] * 2,
        ):
            filled.feed(source, records)
            with catalog.read() as session:
                ends.append(items.find_table(session, ("public", "orders")).upper)
            loading.run(ends[-2], ends[-1])
        found = server.execute("SELECT id, name FROM orders ORDER BY id, name").fetchall()
        assert found == [(1, ""), (1, None), (1, None), (1, None), (None, '\\N\t"x\n'), (None, '\\N\t"x\n')]


def test_a_target_that_somebody_changed_is_refused(scene: KeyedScene, server: psycopg.Connection) -> None:
    ticks, loading = Ticks(scene), Loading(table="orders")
    ticks.run(5)
    loading.run(1, ticks.ends[0])
    server.execute("DELETE FROM orders")
    ticks.run(5)
    with pytest.raises(AirflowFailException, match=r"orders is not what was loaded: .* mzshare_slices"):
        loading.run(*ticks.ends)
    assert target(server) == Rows()
