"""Statements against a real catalog and a real broker: checked first, then all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.statements.run import execute_script, run_script
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import (
    HasDependents,
    NameTaken,
    ReferenceMissing,
    SpecConflict,
    TransientError,
    UnknownConnection,
    UnknownItem,
    UpstreamChanged,
    UpstreamUnreachable,
)
from tests.support.kafka import create_topic, delete_records, delete_topic, topic_id
from tests.support.statements import Session, create_source


def test_a_script_creates_shows_alters_and_drops(sql_on_both: Session, topic: str, kafka: EmbeddedKafka) -> None:
    sql = sql_on_both
    assert sql.run(
        create_source(topic) + "CREATE TABLE t (a int, b text) FROM SOURCE s FORMAT JSON INCLUDE OFFSET AS o;"
    ) == ["CREATE SOURCE public.s u1", "CREATE TABLE public.t u2 (joins at the next tick)"]
    source = sql.source()
    assert source.incarnation == topic_id(kafka, topic).replace("+", "-").replace("/", "_")
    assert (source.start, source.desired) == (Position(), "running")
    assert sql.rows("SHOW SOURCES") == [
        {"id": "u1", "name": "public.s", "kind": "kafka", "connection": "broker", "topic": topic, "status": "active",
         "tables": 1},
    ]  # fmt: skip
    assert [(row["id"], row["source"], row["status"]) for row in sql.rows("SHOW TABLES")] == [
        ("u2", "public.s", "created")
    ]
    assert sql.run("ALTER SOURCE s SET (MAX RECORDS PER TICK 7)") == ["ALTER SOURCE public.s u1"]
    assert sql.source().settings == SourceSettings(max_records_per_tick=7)
    assert sql.run("ALTER SOURCE s RESET (MAX RECORDS PER TICK)") == ["ALTER SOURCE public.s u1"]
    assert sql.source().settings == SourceSettings()
    with pytest.raises(HasDependents):
        sql.run("DROP SOURCE s")
    assert sql.run("DROP TABLE t; DROP SOURCE s; DROP SOURCE IF EXISTS s") == [
        "DROP TABLE public.t u2", "DROP SOURCE public.s u1", "DROP SOURCE public.s (it does not exist)",
    ]  # fmt: skip
    assert sql.names() == []
    with pytest.raises(UnknownItem):
        sql.run("DROP TABLE t")


def test_what_show_create_prints_creates_the_same_again(sql: Session, topic: str) -> None:
    sql.run(
        f"CREATE SOURCE s FROM KAFKA CONNECTION broker (TOPIC '{topic}', START OFFSET (1, 2)) "
        "WITH (TRIGGER INTERVAL = '500ms');"
        "CREATE TABLE t (a int, \"B\" numeric(10,2)) FROM SOURCE s FORMAT JSON WITH (ON DECODE ERROR = 'STOP')"
    )
    shown = [str(sql.rows(f"SHOW CREATE {name}")[0]["create_sql"]) for name in ("s", "t")]
    with sql.catalog.read() as session:
        before = items.find(session, ("public", "s")), items.find(session, ("public", "t"))
    sql.run("DROP SOURCE s CASCADE;" + "".join(shown))
    with sql.catalog.read() as session:
        after = items.find(session, ("public", "s")), items.find(session, ("public", "t"))
    assert all(a and b and a.spec == b.spec for a, b in zip(before, after, strict=True))
    assert isinstance(after[0], items.SourceItem)
    assert after[0].settings.trigger_interval_ms == 500
    with pytest.raises(UnknownItem):
        sql.rows("SHOW CREATE TABLE s")


def test_a_transaction_is_all_or_nothing(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    with pytest.raises(UnknownItem, match="nosuch"):
        sql.run(f"BEGIN; {create_source(topic)} CREATE TABLE t FROM SOURCE nosuch FORMAT TEXT; COMMIT")
    assert sql.names() == []
    assert sql.run(f"BEGIN; {create_source(topic)} CREATE TABLE t FROM SOURCE s FORMAT TEXT; COMMIT") == [
        "CREATE SOURCE public.s u1", "CREATE TABLE public.t u2 (joins at the next tick)",
    ]  # fmt: skip


def test_without_begin_what_came_before_an_error_stays_and_is_told(sql: Session, topic: str) -> None:
    results = run_script(sql.catalog, create_source(topic) + "DROP TABLE nosuch", sql.connections)
    assert next(results).message == "CREATE SOURCE public.s u1"
    with pytest.raises(UnknownItem):
        next(results)
    assert sql.names() == ["s"]


def test_a_dry_run_checks_everything_and_keeps_nothing(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    script = create_source(topic) + "CREATE TABLE t FROM SOURCE s FORMAT TEXT; DROP SOURCE s CASCADE;"
    assert sql.run(script, dry_run=True) == [
        "CREATE SOURCE public.s (dry run)", "CREATE TABLE public.t (joins at the next tick, dry run)",
        "DROP SOURCE public.s u1 (with table public.t, dry run)",
    ]  # fmt: skip
    assert sql.names() == []
    with pytest.raises(ReferenceMissing):
        sql.run(create_source("no-such-topic"), dry_run=True)
    assert sql.run(create_source(topic)) == ["CREATE SOURCE public.s u1"], "no id was used up"


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (create_source("no-such-topic"), ReferenceMissing),
        (create_source("t", connection="nowhere"), UpstreamUnreachable),
        (create_source("t", connection="undefined"), UnknownConnection),
    ],
)
def test_a_source_whose_upstream_is_not_well_is_not_created(sql: Session, script: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        sql.run(script)
    assert sql.names() == []


def test_if_not_exists_is_idempotent_even_with_the_broker_away(sql: Session, topic: str) -> None:
    again = create_source(topic).replace("SOURCE s", "SOURCE IF NOT EXISTS s")
    table = "CREATE TABLE IF NOT EXISTS t (a int) FROM SOURCE s FORMAT JSON;"
    assert sql.run(again + table) == ["CREATE SOURCE public.s u1", "CREATE TABLE public.t u2 (joins at the next tick)"]
    sql.connections = EnvConnections({})
    assert sql.run(again + table) == [
        "CREATE SOURCE public.s u1 (it exists)", "CREATE TABLE public.t u2 (it exists)",
    ]  # fmt: skip
    with pytest.raises(SpecConflict):
        sql.run(table.replace("a int", "a text"))
    with pytest.raises(SpecConflict):
        sql.run(again.replace(topic, "another"))
    with pytest.raises(NameTaken):
        sql.run(create_source(topic))


def test_if_not_exists_compares_the_settings_that_are_written_out(sql: Session, topic: str) -> None:
    first = create_source(topic).replace(";", " WITH (MAX RECORDS PER TICK 9, IDLE TICK INTERVAL '3s')")
    again = first.replace("SOURCE s", "SOURCE IF NOT EXISTS s")
    sql.run(first)
    assert sql.run(again) == ["CREATE SOURCE public.s u1 (it exists)"]
    assert sql.run(again.partition(" WITH ")[0]) == ["CREATE SOURCE public.s u1 (it exists)"]
    with pytest.raises(SpecConflict, match="it has MAX RECORDS PER TICK 9, not MAX RECORDS PER TICK 7") as caught:
        sql.run(again.replace("TICK 9", "TICK 7"))
    assert caught.value.hint == "mzshare sql 'ALTER SOURCE public.s SET (MAX RECORDS PER TICK 7)'"
    sql.run(caught.value.remedy)
    assert sql.run(again.replace("TICK 9", "TICK 7")) == ["CREATE SOURCE public.s u1 (it exists)"]


def test_a_drop_with_cascade_names_the_tables_that_went(sql: Session, topic: str) -> None:
    sql.run(
        create_source(topic) + 'CREATE TABLE "T" FROM SOURCE s FORMAT TEXT; CREATE TABLE u FROM SOURCE s FORMAT TEXT'
    )
    assert sql.run("DROP SOURCE s CASCADE") == ['DROP SOURCE public.s u1 (with tables public."T", public.u)']


def test_an_error_says_what_a_name_is_if_it_is_something_else(sql: Session, topic: str) -> None:
    sql.run(create_source(topic) + "CREATE TABLE orders FROM SOURCE s FORMAT TEXT")
    with pytest.raises(UnknownItem, match=r"^nothing is named 'public.nope'$"):
        sql.run("SHOW CREATE nope")
    for statement in ("DROP SOURCE orders", "DROP SOURCE IF EXISTS orders", "SHOW CREATE SOURCE orders"):
        with pytest.raises(UnknownItem, match=r"'public.orders' is a table, not a source"):
            sql.run(statement)
    with pytest.raises(UnknownItem, match="is a table, not a"):
        sql.run("ALTER SOURCE orders RESET (TRIGGER INTERVAL)")
    with pytest.raises(NameTaken) as taken:
        sql.run("CREATE TABLE IF NOT EXISTS s FROM SOURCE s FORMAT TEXT")
    assert taken.value.hint == "another name"


def test_a_source_dropped_between_check_and_transaction_is_not_made_unchecked(sql: Session, topic: str) -> None:
    class Slow(Catalog):
        """Somebody else drops the source right after this one has looked."""

        @contextmanager
        def write(self) -> Iterator[Any]:
            execute_script(sql.catalog, "DROP SOURCE IF EXISTS s", sql.connections)
            with super().write() as session:
                yield session

    sql.run(create_source(topic))
    slow = Slow(sql.catalog.url)
    again = create_source(topic).replace("SOURCE s", "SOURCE IF NOT EXISTS s")
    with pytest.raises(TransientError, match="dropped while this ran"):
        execute_script(slow, again, sql.connections)
    slow.close()
    assert sql.names() == []


def test_a_name_dropped_earlier_in_the_script_is_free(sql: Session, topic: str) -> None:
    sql.run(create_source(topic))
    assert sql.run(f"BEGIN; DROP SOURCE s; {create_source(topic)} COMMIT") == [
        "DROP SOURCE public.s u1", "CREATE SOURCE public.s u2",
    ]  # fmt: skip
    assert sql.source().start == Position()
    assert sql.source().incarnation


def test_a_reference_is_the_sources_topic(sql: Session, topic: str) -> None:
    sql.run(create_source(topic))
    assert sql.run(f'CREATE TABLE t FROM SOURCE s (REFERENCE "{topic}") FORMAT TEXT')
    with pytest.raises(ReferenceMissing, match="other"):
        sql.run("CREATE TABLE t2 FROM SOURCE s (REFERENCE other) FORMAT TEXT")


def test_the_first_table_finds_the_earliest_record_there_is_now(
    sql_on_both: Session, topic: str, kafka: EmbeddedKafka
) -> None:
    sql = sql_on_both
    sql.run(create_source(topic, "s") + create_source(topic, "pinned", more=", START OFFSET (0, 0)"))
    counts = {0: 1, 1: 2}
    delete_records(kafka, topic, counts)
    sql.run("CREATE TABLE t FROM SOURCE s FORMAT TEXT; CREATE TABLE p FROM SOURCE pinned FORMAT TEXT")
    assert sql.source("s").start == Position(counts)
    assert sql.source("pinned").start == Position(), "a start that was asked for does not move"
    with sql.catalog.read() as session:
        assert items.find_table(session, ("public", "t")).position == Position(counts)
    delete_records(kafka, topic, {0: 2, 1: 3})
    sql.run("CREATE TABLE t2 FROM SOURCE s FORMAT TEXT")
    assert sql.source("s").start == Position(counts), "once there is a table, the start stands"


def test_a_topic_made_anew_before_the_first_table_is_refused(sql: Session, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka)
    sql.run(create_source(topic))
    delete_topic(kafka, topic)
    create_topic(kafka, name=topic)
    with pytest.raises(UpstreamChanged, match="created again"):
        sql.run("CREATE TABLE t FROM SOURCE s FORMAT TEXT")
    assert sql.names() == ["s"]
