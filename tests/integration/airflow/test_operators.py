"""Real operators on a real catalog and broker: executed again, as by a retry or a clear, they change nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from airflow.sdk import Asset, AssetAlias
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_mzshare.assets.mzshare import table_asset
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.supervision.apps_wait import await_backfills, await_ingestion
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import JobFailed, LaunchFailed, TerminalError, WaitTimeout
from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.operators.backfills import RetireBackfillOperator, StartBackfillOperator
from airflow_provider_mzshare.operators.ingestion import (
    ReconcileOperator,
    StartIngestionOperator,
    StopIngestionOperator,
)
from airflow_provider_mzshare.operators.reading import ReadTableOperator
from airflow_provider_mzshare.operators.sources import CreateSourceOperator, DropSourceOperator
from airflow_provider_mzshare.operators.sql import MzShareSQLOperator
from airflow_provider_mzshare.operators.tables import (
    CreateTableFromSourceOperator,
    CreateTablesFromSourceOperator,
    DropTableOperator,
    ResnapshotTableOperator,
    ResumeTableOperator,
)
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log, add_source, add_tables
from tests.support.kafka import create_topic, produce
from tests.support.statements import Session

Run = Callable[..., Any]


@pytest.fixture
def run() -> Run:
    """Execute an operator as a task would, and twice more: all answers are the same."""

    def executed(operator: type[BaseOperator], *, times: int = 3, **arguments: Any) -> Any:
        answers = []
        for _ in range(times):
            task = operator(task_id=f"t{uuid4().hex}", **arguments)
            answers.append(task.execute({"outlet_events": OutletEventAccessors()}))  # type: ignore[typeddict-item]
        assert all(answer == answers[0] for answer in answers)
        json.dumps(answers[0])
        return answers[0]

    return executed


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = create_topic(kafka, partitions=1)
    produce(kafka, name, [json.dumps({"id": i}).encode() for i in range(20)])
    return name


@pytest.fixture
def home(kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    extra = {"home": str(tmp_path / "home"), "jars": str(tmp_path)}  # no app can be started here
    monkeypatch.setenv("AIRFLOW_CONN_MZSHARE_DEFAULT", json.dumps({"conn_type": "mzshare", "extra": extra}))
    broker = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", json.dumps(broker))
    return tmp_path / "home"


@pytest.fixture
def session(home: Path, kafka: EmbeddedKafka) -> Iterator[Session]:
    """The same catalog, to make ticks as an app would."""
    MzShareHook().ensure_catalog()
    made = Session(f"sqlite:///{home}/catalog.db", kafka)
    yield made
    made.catalog.close()


def test_a_source_and_its_tables_come_and_go(run: Run, session: Session, topic: str) -> None:
    assert run(CreateSourceOperator, source="S", kafka_conn_id="broker", topic=topic) == "public.s"
    tables = [{"name": "a", "columns": "id bigint"}, {"name": "b", "format": "text", "include": "offset"}]
    assert run(CreateTablesFromSourceOperator, source="s", tables=tables) == ["public.a", "public.b"]
    assert run(CreateTableFromSourceOperator, source="s", table="a", columns="id bigint") == ["public.a"]
    assert session.names() == ["s", "a", "b"]
    shown = run(MzShareSQLOperator, sql="SHOW TABLES")
    assert [row["name"] for row in shown[0]["rows"]] == ["public.a", "public.b"]
    assert run(ReadTableOperator, table="a", require_live=False) == []
    assert run(ReadTableOperator, table="a", require_live=False, count=True) == 0
    run(DropTableOperator, table="a", times=1)
    assert "does not exist" in run(DropTableOperator, table="a")
    run(DropSourceOperator, source="s", cascade=True, times=1)
    assert "does not exist" in run(DropSourceOperator, source="s", cascade=True)
    assert session.names() == []


def test_what_a_retry_cannot_heal_is_not_retried(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a", columns="id bigint")
    fails: list[tuple[type[BaseOperator], dict[str, Any], str]] = [
        (CreateTableFromSourceOperator, {"source": "s", "table": "a", "columns": "id text"}, "another definition"),
        (CreateTableFromSourceOperator, {"source": "s", "table": "x", "columns": "id bigit"}, "not a column type"),
        (CreateSourceOperator, {"source": "x", "kafka_conn_id": "broker", "topic": "nope"}, "nope"),
        (CreateSourceOperator, {"source": "x", "kafka_conn_id": "nope", "topic": "t"}, "connection 'nope'"),
        (DropSourceOperator, {"source": "s"}, "still used by table a"),
        (StartIngestionOperator, {"source": "nope"}, "Try: mzshare status"),
        (ReadTableOperator, {"table": "a", "count": True, "file": "x.csv"}, "not both"),
        (ReadTableOperator, {"table": "a", "file": "x.txt"}, "parquet, csv, json"),
        (ReadTableOperator, {"table": "a", "tick": "soon"}, "whole number"),
        (MzShareSQLOperator, {"sql": "CREATE VIEW v"}, "line 1, column 14"),
    ]
    for operator, arguments, words in fails:
        with pytest.raises(AirflowFailException, match=words):
            run(operator, **arguments)
    assert session.names() == ["s", "a"]


def test_all_tables_are_made_or_none(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    with pytest.raises(AirflowFailException):
        run(CreateTablesFromSourceOperator, source="s", tables=[{"name": "a"}, {"name": "s"}])
    assert session.names() == ["s"]


def test_what_may_work_later_is_retried(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a")
    for operator, arguments in ((StartIngestionOperator, {"source": "s"}), (ReconcileOperator, {})):
        with pytest.raises(LaunchFailed, match="jar"):
            run(operator, **arguments)
    assert run(StopIngestionOperator, source="s") == []
    assert run(ReconcileOperator) == []


def test_assets_hear_how_far_their_tables_are(session: Session, topic: str) -> None:
    CreateSourceOperator(task_id="s", source="s", kafka_conn_id="broker", topic=topic).execute({})  # type: ignore[arg-type]
    declared, other, alias = table_asset("a"), Asset("s3://x/y"), AssetAlias("late")
    create = CreateTablesFromSourceOperator(
        task_id="t", source="s", tables=[{"name": "a"}, {"name": "b"}], outlets=[declared, other, alias]
    )
    events = OutletEventAccessors()
    create.execute({"outlet_events": events})  # type: ignore[arg-type]
    assert events[declared].extra == {"table": "public.a", "tick": None, "mz_timestamp": None, "rows": 0}
    assert not events[other].extra
    assert [event.dest_asset_key.uri for event in events[alias].asset_alias_events] == [
        table_asset("a").uri,
        table_asset("b").uri,
    ]
    tick = session.tick({0: 10})
    again = OutletEventAccessors()
    create.execute({"outlet_events": again})  # type: ignore[arg-type]
    assert again[declared].extra["tick"] == tick.number
    assert again[declared].extra["mz_timestamp"] == tick.mz_timestamp


def test_a_stalled_table_is_resumed_once_and_a_backfill_is_retired_once(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTablesFromSourceOperator, source="s", tables=[{"name": "a"}, {"name": "b"}])
    session.tick({0: 5})
    session.tick({0: 10}, fail=("a",))
    assert session.table("a").status == "stalled"
    assert run(ResumeTableOperator, table="a") == "backfilling"
    backfill = session.table("a").backfill_id
    assert run(ResumeTableOperator, table="b") == "live"
    with pytest.raises(LaunchFailed, match="jar"):
        run(StartBackfillOperator, tables=["a", "b"])
    assert run(StartBackfillOperator, tables="b") == {"jobs": {}, "live": ["b"]}
    (retired, *_) = run(RetireBackfillOperator, tables="['a', 'b', 'gone']", times=1)
    assert backfill in retired["subject"]
    assert session.table("a").reason == "its backfill was retired before the cutover"
    assert session.table("b").status == "live"
    run(RetireBackfillOperator, tables=["a", "b"])


def test_a_backfill_that_has_to_wait_is_queued_and_no_worker_waits_for_it(
    run: Run, session: Session, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MZSHARE_MAX_BACKFILLS", "1")
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a")
    session.tick({0: 5})
    run(CreateTableFromSourceOperator, source="s", table="b")
    source_id = session.table("b").source_id
    busy = Backfilling(session.catalog, source_id)
    with session.catalog.write() as catalog:
        jobs.create_job(catalog, kind="ingest", source_id=source_id, launcher="process", folder="")
    run(CreateTableFromSourceOperator, source="s", table="c")
    queued = session.table("c").backfill_id
    assert run(StartBackfillOperator, tables=["a", "c"]) == {
        "jobs": {},
        "live": ["a"],
        "queued": {queued: "queued, 1st of 1"},
    }
    assert run(StartBackfillOperator, tables="b") == {"jobs": {busy.id: busy.job}, "live": []}
    assert MzShareHook().convergence("c").progress.endswith("behind, its backfill is queued")


def test_a_run_that_is_cleared_goes_on_with_what_its_teardown_stalled(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a")
    session.tick({0: 5})
    run(ResnapshotTableOperator, table="a")
    source_id, hook = session.table("a").source_id, MzShareHook()
    backfill = Backfilling(session.catalog, source_id)
    backfill.follow(left=[session.table("a").id])
    backfill.end("stalled")
    run(CreateTablesFromSourceOperator, source="s", tables=[{"name": "b"}, {"name": "c"}, {"name": "d"}])
    retired = session.table("b").backfill_id
    run(RetireBackfillOperator, tables=["b", "c", "d"], times=1)
    assert [session.table(name).status for name in "abcd"] == ["live", "stalled", "stalled", "stalled"]
    assert hook.convergence("a").replacement == "stalled"

    with pytest.raises(LaunchFailed, match="jar"):  # it comes so far as to start an app
        run(StartBackfillOperator, tables=["a", "b", "c"])
    resumed = {hook.convergence(name).backfill_id for name in "abc"}
    assert len(resumed) == 1, "all that were resumed together are read once"
    assert resumed != {retired}
    assert hook.convergence("a").replacement == "backfilling"
    assert session.table("d").status == "stalled", "it is not in the list"
    with pytest.raises(LaunchFailed, match="jar"):
        run(StartBackfillOperator, tables=["a", "b", "c"])
    assert {hook.convergence(name).backfill_id for name in "abc"} == resumed, "another attempt goes on with the same"


def test_a_table_is_filled_anew_once(run: Run, session: Session, topic: str) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a")
    session.tick({0: 5})
    backfill = run(ResnapshotTableOperator, table="a")
    assert backfill.startswith("b-")
    assert MzShareHook().convergence("a").replacement == "backfilling"
    assert session.table("a").status == "live"


def test_a_table_added_late_is_backfilled_and_one_without_a_snapshot_is_not(
    run: Run, session: Session, topic: str
) -> None:
    run(CreateSourceOperator, source="s", kafka_conn_id="broker", topic=topic)
    run(CreateTableFromSourceOperator, source="s", table="a")
    session.tick({0: 5})
    run(CreateTablesFromSourceOperator, source="s", tables=[{"name": "b"}, {"name": "c"}])
    run(CreateTableFromSourceOperator, source="s", table="d", snapshot="False")
    assert session.table("b").backfill_id == session.table("c").backfill_id is not None
    assert [session.table(name).status for name in "bcd"] == ["backfilling", "backfilling", "created"]
    hook = MzShareHook()
    assert not hook.arm("b")
    assert hook.convergence("b").lag == 1
    assert {table.name for table in hook.status("s")[1]} == {f"public.{name}" for name in "abcd"}


# ── waiting for apps to come up ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    made = Catalog(catalog_url)
    made.upgrade()
    yield made
    made.close()


def launched(catalog: Catalog, source_id: Any, job: str) -> None:
    with catalog.write() as session:
        jobs.create_job(session, kind="ingest", source_id=source_id, launcher="process", folder="", job_id=JobId(job))


def test_an_app_is_up_when_it_holds_the_source_and_has_committed_a_tick_itself(catalog: Catalog) -> None:
    source_id = add_source(catalog)

    def wait() -> Any:
        return await_ingestion(catalog, source_id, timeout=0, poll=0.01)

    with pytest.raises(TerminalError, match="no tables"):
        wait()
    add_tables(catalog, source_id, "a")
    with pytest.raises(LaunchFailed, match="nothing has been started"):
        wait()
    launched(catalog, source_id, "old")
    old = Log(catalog, source_id, job="old")
    old.tick()
    assert wait().job == "old"
    with catalog.write() as session:
        jobs.set_state(session, JobId("old"), "failed", expect=jobs.ACTIVE, error="no broker")
    with pytest.raises(LaunchFailed, match="job old ended as failed: no broker"):
        wait()
    launched(catalog, source_id, "new")
    with pytest.raises(WaitTimeout):  # the lease is still the old one's, and so is the last tick
        wait()
    old.store.release(old.holder)
    log = Log(catalog, source_id, job="new")
    with pytest.raises(WaitTimeout):
        wait()
    tick = log.tick()
    assert (wait().job, wait().tick) == ("new", tick.number)
    log.store.stall(log.holder, "topic_missing", "the topic is gone")
    with pytest.raises(JobFailed, match="the topic is gone"):
        wait()


def test_a_backfill_is_up_when_its_app_holds_it(catalog: Catalog) -> None:
    log, ids = add_late_tables(catalog, "b", "c")

    def wait(*table_ids: Any) -> Any:
        return await_backfills(catalog, table_ids or ids, timeout=0, poll=0.01)

    with pytest.raises(LaunchFailed, match="nothing has been started for backfill"):
        wait()
    backfill = Backfilling(catalog, log.source_id)
    assert wait().jobs == {backfill.id: backfill.job}
    backfill.end("failed", "out of memory")
    with pytest.raises(LaunchFailed, match="out of memory"):
        wait()
    backfill.launch("second")
    with pytest.raises(WaitTimeout):
        wait()
    backfill.store.release(backfill.holder)
    backfill.holder = backfill.store.claim(JobId("second"))
    backfill.follow(left=[ids[1]])
    with pytest.raises(JobFailed, match="disk on fire"):
        wait()
    assert wait(ids[0]).jobs
    backfill.arm()
    log.tick()
    assert (wait(ids[0]).jobs, wait(ids[0]).live) == ({}, ("b",))
