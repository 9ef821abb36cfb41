"""A table is replaced on a real Airflow, broker and apps, while readers poll its name all the time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.connections import Connection, FixedConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.lifecycle.read_table import read_table
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.airflow_scene import DAGS, Scene, scene
from tests.support.kafka import create_topic, produce
from tests.support.stack import Stack
from tests.support.waiting import wait_until

DAG = "mzshare_blue_green"
OLD, NEW = ["id", "note"], ["id", "amount", "note"]
CHECKS = [
    "SELECT (SELECT count(*) FROM new) = (SELECT count(*) FROM old)",
    "SELECT count(*) = 0 FROM (SELECT id, note FROM old EXCEPT SELECT id, note FROM new) AS missing",
]


def records(first: int, count: int) -> list[bytes]:
    return [json.dumps({"id": n, "note": f"n{n}", "amount": n / 2}).encode() for n in range(first, first + count)]


class Polling:
    """Reads a name over and over. An answer must have the columns of one table and no hole in its rows."""

    def __init__(self, stack: Stack, name: str) -> None:
        self._stack, self._name = stack, name
        self.seen: list[tuple[str, ...]] = []
        self.wrong: list[str] = []
        self.reads = 0
        self._most: dict[tuple[str, ...], int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Polling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.3):
            try:
                self._look()
            except Exception as error:
                self.wrong.append(repr(error))

    def _look(self) -> None:
        found = read_table(self._stack.catalog, str(self._stack.warehouse), self._name)
        columns, ids = tuple(found.schema.names), sorted(found.column("id").to_pylist())
        self.reads += 1
        if not self.seen or self.seen[-1] != columns:
            self.seen.append(columns)
        if ids != list(range(len(ids))):
            self.wrong.append(f"{columns}: {len(ids)} rows with holes or twice")
        if len(ids) < self._most.get(columns, 0):
            self.wrong.append(f"{columns}: {len(ids)} rows after {self._most[columns]}")
        self._most[columns] = len(ids)


class Shop:
    """A source ``shop`` with the table ``orders``, whose app runs, and somebody who goes on producing."""

    def __init__(self, stack: Stack, kafka: EmbeddedKafka, topic: str, connection: str) -> None:
        self.stack, self._kafka, self._topic, self._connection = stack, kafka, topic, connection
        self.count = 0
        self.produce(300)

    def produce(self, count: int) -> None:
        produce(self._kafka, self._topic, records(self.count, count))
        self.count += count

    def sql(self, text: str) -> None:
        connection = Connection.from_dict({"name": self._connection, **self.stack.connection})
        execute_script(self.stack.catalog, text, FixedConnections({self._connection: connection}))

    def id_of(self, name: str) -> str | None:
        with self.stack.catalog.read() as session:
            item = lookup.find(session, ("public", name))
        return item.id if item else None

    def tables(self) -> list[str]:
        with self.stack.catalog.read() as session:
            return [table.name[1] for table in lookup.list_tables(session)]

    @contextmanager
    def producing(self) -> Iterator[None]:
        stop = threading.Event()

        def go_on() -> None:
            while not stop.wait(0.5):
                self.produce(5)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def form(self, **changes: Any) -> dict[str, Any]:
        form = {
            "table": "orders",
            "columns": "id bigint, amount double precision, note text",
            "checks": CHECKS,
            "approval": False,
            "keep_days": 0,
        }
        return {**form, **changes}

    def check(self, columns: list[str]) -> None:
        """The live table has all records, in these columns."""

        def whole() -> bool:
            found = read_table(self.stack.catalog, str(self.stack.warehouse), "orders")
            return found.schema.names == columns and sorted(found.column("id").to_pylist()) == list(range(self.count))

        wait_until(whole, 180, f"{self.count} rows in {columns}")


def make_shop(stack: Stack, kafka: EmbeddedKafka, connection: str = "kafka_test") -> Shop:
    topic = create_topic(kafka, partitions=1)
    shop = Shop(stack, kafka, topic, connection)
    shop.sql(
        f"CREATE SOURCE shop FROM KAFKA CONNECTION {connection} (TOPIC '{topic}') "
        # Somebody produces all the time: on a busy machine the backfill would be one tick behind for long.
        "WITH (TRIGGER INTERVAL '1s', IDLE TICK INTERVAL '1s', CUTOVER WAIT '3s');"
        "CREATE TABLE orders (id bigint, note text) FROM SOURCE shop FORMAT JSON"
    )
    return shop


@pytest.mark.timeout(600)
def test_a_table_is_replaced_while_its_name_is_read_all_the_time(
    kafka: EmbeddedKafka, tmp_path: Path, airflow_database: Path, jars: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Catalog(f"sqlite:///{home / 'catalog.db'}") as catalog:
        stack = Stack(home, kafka, catalog, lease_seconds=10)
        env = {
            **os.environ,
            **stack.env,
            "AIRFLOW_HOME": str(airflow_database.parent),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "MZSHARE_JARS": str(jars),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

        def run(*command: str) -> str:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400, check=False)
            return f"{done.returncode} {done.stdout} {done.stderr}"

        def replace(**form: Any) -> str:
            return run("airflow", "dags", "test", DAG, "--conf", json.dumps(shop.form(**form)))

        shop = make_shop(stack, kafka)
        assert run("mzshare", "start", "shop").startswith("0 ")
        try:
            shop.check(OLD)
            old = shop.id_of("orders")
            with Polling(stack, "orders") as polling, shop.producing():
                told = replace(keep_days=1 / 86_400)
                assert "state=success" in told, told[-6000:]
            assert not polling.wrong
            assert polling.seen == [tuple(OLD), tuple(NEW)]
            assert polling.reads > 20
            shop.check(NEW)
            assert shop.tables() == ["orders"], "the old one was kept for a second, and dropped"
            assert shop.id_of("orders") != old
        finally:
            run("mzshare", "stop", "shop")


# ── with somebody who approves ────────────────────────────────────────────────────────────────────────────────────────


def waiting(found: Scene, run_id: str) -> dict[str, Any] | None:
    """What somebody is asked, once a run has come so far."""
    path = f"/api/v2/dags/{DAG}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    if found.airflow.tasks(DAG, run_id).get("approve") not in ("awaiting_input", "deferred"):
        return None
    detail: dict[str, Any] = found.airflow.call("GET", path)
    return detail


def answer(found: Scene, run_id: str, option: str) -> None:
    path = f"/api/v2/dags/{DAG}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    found.airflow.call("PATCH", path, {"chosen_options": [option], "params_input": {}})


@pytest.mark.full(seconds=1050)
@pytest.mark.timeout(2400)
def test_rejections_and_failed_checks_leave_the_old_table_and_a_rollback_brings_it_back(
    tmp_path: Path, jars: Path
) -> None:
    with scene(tmp_path, jars) as found:
        shop = make_shop(found.stack, found.kafka, "kafka_default")
        found.mzshare("start", "shop")
        shop.check(OLD)
        old = shop.id_of("orders")

        def ended(run_id: str) -> dict[str, str | None]:
            found.airflow.wait(DAG, run_id, 600)
            return found.airflow.tasks(DAG, run_id)

        with Polling(found.stack, "orders") as polling, shop.producing():
            # A check that fails.
            tasks = ended(found.trigger(DAG, **shop.form(checks=["SELECT count(*) = 0 FROM new"])))
            assert (tasks["check"], tasks["swap"], tasks["drop_new"]) == ("failed", "upstream_failed", "success")
            assert (shop.id_of("orders"), shop.tables()) == (old, ["orders"])
            # A rejection, after a look at what it is about.
            run_id = found.trigger(DAG, **shop.form(approval=True))
            wait_until(lambda: waiting(found, run_id) is not None, 600, "the question")
            asked = waiting(found, run_id)
            assert asked is not None
            assert "Swap orders" in asked["subject"]
            for words in ("CREATE TABLE public.orders (id bigint, note text)", "amount double precision", '"exact"'):
                assert words in asked["body"]
            assert shop.id_of("orders") == old
            answer(found, run_id, "Reject")
            tasks = ended(run_id)
            assert (tasks["approve"], tasks["swap"], tasks["drop_new"]) == ("success", "skipped", "success")
            assert (shop.id_of("orders"), shop.tables()) == (old, ["orders"])
            # An approval; the wait for the drop survives all of Airflow's parts.
            run_id = found.trigger(DAG, **shop.form(approval=True, keep_days=1))
            wait_until(lambda: waiting(found, run_id) is not None, 600, "the question")
            answer(found, run_id, "Approve")
            wait_until(lambda: found.airflow.tasks(DAG, run_id)["keep"] == "deferred", 300, "the swap")
            with found.airflow_dead(1):
                pass
            new = shop.id_of("orders")
            assert new != old
            assert shop.id_of(f"orders__old_{old}_{new}") == old
            # And back.
            found.wait_for(DAG, found.trigger(DAG, action="rollback", table="orders"))
            assert (shop.id_of("orders"), shop.id_of(f"orders__old_{new}_{old}")) == (old, new)
            assert found.airflow.tasks(DAG, run_id)["keep"] == "deferred"
        assert not polling.wrong
        assert polling.seen == [tuple(OLD), tuple(NEW), tuple(OLD)]
        shop.check(OLD)
