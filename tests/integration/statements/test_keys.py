"""Tables with a key, from the statement to the catalog: shown, compared, and listed with their key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.control.definition_errors import BadExport
from airflow_provider_mzshare.control.supervision.status import StatusReader
from airflow_provider_mzshare.core.specs import ColumnSpec, Include
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import SpecConflict
from airflow_provider_mzshare.settings import Settings
from tests.support.kafka import create_topic
from tests.support.statements import Session

PAIRS = "CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE; CREATE TABLE t FROM SOURCE kv ENVELOPE UPSERT;"
AUCTION = "CREATE SOURCE a FROM LOAD GENERATOR AUCTION;"


@pytest.fixture
def on_kafka(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Session]:
    session = Session(f"sqlite:///{tmp_path}/catalog.db", kafka)
    session.run(f"CREATE SOURCE s FROM KAFKA CONNECTION broker (TOPIC '{create_topic(kafka, 1)}')")
    yield session
    session.catalog.close()


def exported(sql: Session, columns: str) -> dict[str, object]:
    (row,) = sql.rows(f"SELECT {columns} FROM mz_source_exports")
    return row


def test_every_clause_can_be_read_back(on_kafka: Session) -> None:
    sql = on_kafka
    made = (
        "CREATE TABLE t (v text) FROM SOURCE s KEY FORMAT JSON VALUE FORMAT JSON "
        'INCLUDE KEY ("B" int, a text), OFFSET AS o ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE AS why)'
    )
    sql.run(made)
    spec = sql.table().spec
    assert (spec.format, spec.key_format, spec.envelope, spec.inline_errors) == ("json", "json", "upsert", "why")
    assert spec.key_columns == (ColumnSpec(name="B", type="integer"), ColumnSpec(name="a", type="text"))
    assert spec.include == (Include(what="offset", name="o"),)
    assert exported(sql, "key, key_format, key_columns, inline_errors, data_config") == {
        "key": ["B", "a"],
        "key_format": "json",
        "key_columns": [{"name": "B", "type": "integer"}, {"name": "a", "type": "text"}],
        "inline_errors": "why",
        "data_config": {"encoding": "json", "envelope": "upsert"},
    }
    assert sql.rows("SELECT envelope_type, key_format, value_format FROM mz_kafka_source_tables") == [
        {"envelope_type": "upsert", "key_format": "json", "value_format": "json"}
    ]
    sql.run("COMMENT ON COLUMN t.a IS 'of the key'; COMMENT ON COLUMN t.why IS 'if it failed'")
    shown = str(sql.rows("SHOW CREATE t")[0]["create_sql"])
    assert sql.run(shown.replace("TABLE", "TABLE IF NOT EXISTS", 1)) == ["CREATE TABLE public.t u2 (it exists)"]
    for clause, instead, told in (
        (" AS why", "", "inline_errors is 'why', not 'error'"),
        ('("B" int, a text)', "(a text)", "key_columns: it has"),
        ("ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE AS why)", "", "envelope is 'upsert', not 'none'"),
    ):
        with pytest.raises(SpecConflict, match=told):
            sql.run(made.replace("TABLE", "TABLE IF NOT EXISTS", 1).replace(clause, instead))


def test_the_key_of_a_bare_format_is_what_it_was(on_kafka: Session) -> None:
    on_kafka.run("CREATE TABLE t FROM SOURCE s FORMAT BYTES INCLUDE OFFSET, KEY AS k ENVELOPE UPSERT")
    assert exported(on_kafka, "key, key_format, key_columns, inline_errors") == {
        "key": ["k"], "key_format": "bytes", "key_columns": [], "inline_errors": None,
    }  # fmt: skip


def test_a_load_generators_key_is_its_references(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(PAIRS)
    assert exported(sql, "key, key_format, data_config") == {
        "key": ["key"], "key_format": None, "data_config": {"encoding": "none", "envelope": "upsert"},
    }  # fmt: skip
    assert sql.rows("SHOW CREATE t")[0]["create_sql"] == (
        "CREATE TABLE public.t (key bigint, value text) FROM SOURCE public.kv (REFERENCE key_value.key_value) "
        "ENVELOPE UPSERT;"
    )
    with pytest.raises(SpecConflict, match="envelope is 'upsert', not 'none'"):
        sql.run("CREATE TABLE IF NOT EXISTS t FROM SOURCE kv")


def test_the_status_of_a_table_names_its_key(sql: Session) -> None:
    sql.run(PAIRS + "CREATE TABLE plain FROM SOURCE kv;")
    _, tables = StatusReader(sql.catalog, Launchers(Settings.from_environment({}))).source(sql.source("kv"))
    assert {table.name: table.key for table in tables} == {"public.t": ("key",), "public.plain": ()}


def test_a_table_whose_rows_stay_has_no_key(sql_on_both: Session) -> None:
    sql_on_both.run("CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE; CREATE TABLE t FROM SOURCE kv;")
    assert exported(sql_on_both, "key, key_columns") == {"key": None, "key_columns": []}


def test_a_key_must_not_be_left_out(sql: Session) -> None:
    sql.run(AUCTION)
    with pytest.raises(BadExport, match="EXCLUDE COLUMNS leaves out id, which is in the key of ENVELOPE UPSERT"):
        sql.run("CREATE TABLE t FROM SOURCE a (REFERENCE users) ENVELOPE UPSERT WITH (EXCLUDE COLUMNS (id))")
    assert sql.names() == ["a"]


def test_an_option_that_a_stored_spec_is_too_old_for_shows_its_default(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run("CREATE SOURCE kv FROM LOAD GENERATOR KEY VALUE; CREATE TABLE t FROM SOURCE kv;")
    options = "snapshot, on_decode_error, retain_history_seconds, text_columns, exclude_columns, data_config"
    now = exported(sql, options)
    old = json.loads(sql.table().spec.model_dump_json())
    new_fields = ("key_format", "key_columns", "inline_errors", "envelope")
    for field in (*options.replace(" ", "").split(",")[:-1], *new_fields):
        del old[field]
    with sql.catalog.write() as session:
        session.execute(text("UPDATE tables SET spec = :spec"), {"spec": json.dumps(old)})
    assert exported(sql, options) == now
    assert exported(sql, "key, key_format, key_columns, inline_errors") == {
        "key": None, "key_format": None, "key_columns": [], "inline_errors": None,
    }  # fmt: skip
