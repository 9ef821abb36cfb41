"""Old-style Kafka sources, with each format, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.connectors.kafka.specs import KafkaExportDetails
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.statements.legacy.problems import OldSyntax
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import SpecConflict, StatementError
from airflow_provider_mzshare.storage.table_columns import user_columns
from tests.support.kafka import Record, create_topic, produce
from tests.support.old_style import OldStyle

FORMATS = {
    "typed": (
        '(id bigint, "Name" text) ', "FORMAT JSON INCLUDE PARTITION, OFFSET AS o", ["id", "Name", "partition", "o"],
    ),
    "json": ("", "FORMAT JSON", ["data"]),
    "text": ("", "FORMAT TEXT INCLUDE KEY, TIMESTAMP AS at", ["data", "key", "at"]),
    "keyed": (
        "(id bigint) ", "FORMAT JSON INCLUDE TIMESTAMP, KEY AS k ENVELOPE UPSERT", ["id", "timestamp", "k"],
    ),
    "changed": (
        "(id bigint, note text, PRIMARY KEY (id) NOT ENFORCED) ", "FORMAT JSON INCLUDE OFFSET ENVELOPE DEBEZIUM",
        ["id", "note", "offset"],
    ),
    "changed_by_key": (
        "(note text) ", "KEY FORMAT JSON VALUE FORMAT JSON INCLUDE KEY (id bigint) ENVELOPE DEBEZIUM", ["note", "id"],
    ),
    "bytes": ("", "FORMAT BYTES ENVELOPE NONE EXPOSE PROGRESS AS p", ["data"]),
}  # fmt: skip


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    made = create_topic(kafka)
    produce(kafka, made, [Record(b'{"id": 1}', None, 0)] * 3)
    return made


@pytest.fixture
def old(catalog_url: str, kafka: EmbeddedKafka) -> Iterator[OldStyle]:
    broker = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}})
    with Catalog(catalog_url) as catalog:
        catalog.upgrade()
        yield OldStyle(catalog, {"AIRFLOW_CONN_BROKER": broker})


def create(name: str, topic: str, columns: str, clauses: str, more: str = "") -> str:
    return f"CREATE SOURCE {name} {columns}FROM KAFKA CONNECTION broker (TOPIC '{topic}'{more}) {clauses}"


def test_each_format_is_the_sources_own_and_reads_back(old: OldStyle, topic: str) -> None:
    for name, (columns, clauses, wanted) in FORMATS.items():
        old.sql(create(name, topic, columns, clauses))
        output = old.table(name)
        assert [column.name for column in user_columns(output.spec)] == wanted
        assert (output.kind, output.spec.reference, output.spec.namespace) == ("output", topic, None)
        assert output.spec.details == KafkaExportDetails(topic=topic, metadata_columns=output.spec.include)
        printed = old.create_sql(name)
        (again,) = old.sql(printed.replace("CREATE SOURCE", "CREATE SOURCE IF NOT EXISTS"))
        assert "it exists" in again.message
        old.sql(f"DROP SOURCE {name}; {printed}")
        assert old.create_sql(name) == printed
        assert old.table(name).spec == output.spec
    kinds = old.names()
    assert kinds["public.typed"] == "kafka"
    assert {name for name, kind in kinds.items() if kind == "progress"} == {
        "public.typed_progress", "public.json_progress", "public.text_progress", "public.keyed_progress",
        "public.changed_progress", "public.changed_by_key_progress", "public.p",
    }  # fmt: skip


def test_another_format_is_a_conflict_and_tables_go_beside(old: OldStyle, topic: str) -> None:
    old.sql(create("k", topic, "", "FORMAT TEXT", ", START OFFSET (2)"))
    with pytest.raises(SpecConflict, match="format is 'text', not 'bytes'"):
        old.sql(create("IF NOT EXISTS k", topic, "", "FORMAT BYTES", ", START OFFSET (2)"))
    old.sql("CREATE TABLE t (id bigint) FROM SOURCE k FORMAT JSON")
    assert old.table("t").start == old.table("k").start == old.source("k").start
    assert old.source("k").start.offsets["0"] == 2
    with pytest.raises(StatementError, match="a KAFKA source has one output"):
        old.sql(create("m", topic, "", "FOR ALL TABLES"))


def test_the_flag_tells_the_statements_to_write(old: OldStyle, topic: str) -> None:
    old.sql("ALTER SYSTEM SET force_source_table_syntax = true")
    with pytest.raises(OldSyntax) as told:
        old.sql(create("k", topic, "(id bigint) ", "FORMAT JSON INCLUDE OFFSET"))
    source, table = told.value.instead
    assert source == f"CREATE SOURCE public.k_source FROM KAFKA CONNECTION broker (TOPIC '{topic}')"
    assert table.startswith("CREATE TABLE public.k (id bigint) FROM SOURCE public.k_source (REFERENCE ")
    assert table.endswith(") FORMAT JSON INCLUDE OFFSET")
    old.sql(f"{source}; {table}")
    assert old.table("k").kind == "table"
