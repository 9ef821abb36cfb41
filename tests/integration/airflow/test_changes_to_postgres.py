"""The example DAG's load into a real Postgres: again, killed, left out. The target is the table as of the end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.hold_rows import list_holds
from airflow_provider_mzshare.control.supervision.maintenance import maintain
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.holds import Hold
from airflow_provider_mzshare.operators.changes import ReadChangesOperator
from tests.support.change_streams import Rows, rows_of
from tests.support.filled import Filled
from tests.support.keyed_cases import drawn
from tests.support.keyed_oracle import Shape, Tick
from tests.support.keyed_scene import KeyedScene
from tests.support.postgres import BLOCK, OWNER, Postgres
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
            mzshare_conn_id="mz", hold=True,
        )  # fmt: skip
        run = SimpleNamespace(dag_id="mzshare_changes_to_postgres", task_id="load", map_index=-1)
        answer: dict[str, Any] = task.execute(Context(params=self.form, ti=run))  # type: ignore[typeddict-item]
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


# ── killed ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SLICES_LOCK = "hashtextextended('mzshare_slices', 0)"
"""What each load takes before it does anything else."""


class Task:
    """Runs in a process of its own, until it is killed."""

    def __init__(self, form: Mapping[str, str], bounds: Sequence[int], folder: Path) -> None:
        self._output = folder / "output.txt"
        command = [sys.executable, "-c", KILLED, json.dumps(form), json.dumps(bounds)]
        with self._output.open("w") as file:
            self._process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=file, stderr=file)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(lambda: condition() or self._process.poll() is not None, 300, what)
        assert self._process.poll() is None, self._output.read_text()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


class Killing:
    """A slice that is loaded, and the next one, whose task is killed."""

    def __init__(self, scene: KeyedScene, server: psycopg.Connection, folder: Path) -> None:
        self.scene, self.server, self._folder = scene, server, folder
        self.form = {"table": "orders", "key": "key"}
        self.ticks, self.loading = Ticks(scene), Loading(**self.form)
        self.ticks.run(4)
        self.loading.run(1, self.ticks.ends[0])
        self.ticks.run(4)

    @contextmanager
    def begun(self) -> Iterator[Task]:
        task = Task(self.form, self.ticks.ends, self._folder)
        try:
            yield task
        finally:
            task.kill()

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Whoever asks for this lock in the target waits."""
        self.server.execute(f"SELECT pg_advisory_lock({key})".encode())
        try:
            yield
        finally:
            self.server.execute(f"SELECT pg_advisory_unlock({key})".encode())

    @contextmanager
    def busy_catalog(self) -> Iterator[None]:
        """Whoever writes to it waits."""
        with closing(sqlite3.connect(self._folder / "catalog.db", isolation_level=None)) as catalog:
            catalog.execute("BEGIN IMMEDIATE")
            yield

    def is_waited_for(self) -> bool:
        found = self.server.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return found.fetchone() != (0,)

    def hold(self) -> Hold:
        """Also after maintenance, a month later."""
        maintain(self.scene.catalog, self.scene.root, now_ms=self.ticks.ends[-1] + 30 * 86_400_000)
        with self.scene.catalog.read() as session:
            (found,) = list_holds(session)
        return found

    def check(self, loaded: int) -> None:
        """So many slices are in the target, and the history of the next one is kept."""
        assert target(self.server) == self.ticks.states[loaded - 1]
        assert len(slices(self.server)) == loaded


@pytest.fixture
def killing(scene: KeyedScene, server: psycopg.Connection, tmp_path: Path) -> Killing:
    return Killing(scene, server, tmp_path)


def test_a_task_that_is_killed_before_it_loads_has_its_hold_and_its_retry_loads(killing: Killing) -> None:
    before = killing.hold()
    with killing.locked(SLICES_LOCK), killing.begun() as task:
        task.until(killing.is_waited_for, "it has the hold, and waits for the target")
    after = killing.hold()
    assert (after.at, after.claim != before.claim) == (killing.ticks.ends[0] - 1, True), "taken, and not moved"
    killing.check(1)
    assert killing.loading.run(*killing.ticks.ends)["loaded"] == "changes"
    killing.check(2)
    assert killing.hold().at == killing.ticks.ends[1] - 1


def test_a_task_that_is_killed_in_the_middle_has_loaded_nothing_and_its_retry_everything(killing: Killing) -> None:
    killing.server.execute(BLOCK.encode())
    with killing.locked("7"), killing.begun() as task:
        task.until(killing.is_waited_for, "rows went, and none has come yet")
        killing.check(1)
    assert killing.loading.run(*killing.ticks.ends)["loaded"] == "changes"
    killing.check(2)


def test_a_task_that_is_killed_after_its_commit_has_loaded_all_and_its_retry_moves_the_hold(killing: Killing) -> None:
    """The catalog is busy then, so that the hold stays where it was."""
    with ExitStack() as locked, ExitStack() as busy:
        locked.enter_context(killing.locked(SLICES_LOCK))
        with killing.begun() as task:
            task.until(killing.is_waited_for, "it has the hold, and waits for the target")
            busy.enter_context(killing.busy_catalog())
            locked.close()
            task.until(lambda: len(slices(killing.server)) == 2, "the slice is committed")
    assert killing.hold().at == killing.ticks.ends[0] - 1
    killing.check(2)
    assert killing.loading.run(*killing.ticks.ends) == {"loaded": "before"}
    killing.check(2)
    assert killing.hold().at == killing.ticks.ends[1] - 1
