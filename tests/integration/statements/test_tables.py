"""CREATE TABLE … FROM SOURCE: resolved against what the upstream has, kept whole, and changed while it runs."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.kafka.specs import KafkaExportDetails
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorExportDetails
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.definition_errors import AmbiguousReference, BadExport, FlagOff, UnknownColumn
from airflow_provider_mzshare.core.specs import ColumnSpec, Include
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import MzShareError, NameTaken, ReferenceMissing, SpecConflict
from tests.integration.statements.conftest import AUCTION
from tests.support.kafka import create_topic
from tests.support.statements import Session, create_source

SOME = "CREATE TABLE t FROM SOURCE a (REFERENCE bids) WITH (TEXT COLUMNS (amount), EXCLUDE COLUMNS (bid_time, buyer));"
ALL_BIDS = {
    "id": "bigint", "buyer": "bigint", "auction_id": "bigint", "amount": "integer", "bid_time": "timestamptz",
}  # fmt: skip


def test_the_resolved_definition_can_be_read_back_field_by_field(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(AUCTION + SOME)
    spec = sql.table().spec
    assert (spec.namespace, spec.reference, spec.format) == ("auction", "bids", "none")
    assert {column.name: column.type for column in spec.columns} == {
        "id": "bigint", "auction_id": "bigint", "amount": "text",
    }  # fmt: skip
    assert spec.text_columns == ("amount",)
    assert spec.exclude_columns == ("buyer", "bid_time"), "in the upstream's order, however they were written"
    details = spec.details
    assert isinstance(details, LoadGeneratorExportDetails)
    assert (details.output, details.keys) == ("bids", ("id",))
    assert {column.name: column.type for column in details.columns} == ALL_BIDS, "also those that were excluded"
    assert len(details.partitions) == 1
    assert (spec.format, spec.envelope) == ("none", "none")


def test_several_tables_per_reference_each_with_its_columns(sql: Session) -> None:
    sql.run(AUCTION + SOME + "CREATE TABLE u FROM SOURCE a (REFERENCE auction.bids);")
    assert [c.name for c in sql.table("u").spec.columns] == list(ALL_BIDS)
    assert len(sql.table("t").spec.columns) == 3


def test_the_same_again_is_no_drift_and_anything_else_is(sql: Session) -> None:
    sql.run(AUCTION + SOME)
    before = sql.table()
    other_words = (
        "CREATE TABLE IF NOT EXISTS t FROM SOURCE a (REFERENCE mz_load_generators.auction.bids) "
        "WITH (EXCLUDE COLUMNS (buyer, bid_time), TEXT COLUMNS = (amount))"
    )
    assert sql.run(other_words) == ["CREATE TABLE public.t u2 (it exists)"]
    assert sql.run(str(sql.rows("SHOW CREATE t")[0]["create_sql"]).replace("TABLE", "TABLE IF NOT EXISTS", 1)) == [
        "CREATE TABLE public.t u2 (it exists)"
    ]
    assert sql.table() == before
    for text, told in (
        (other_words.replace("TEXT COLUMNS = (amount)", "TEXT COLUMNS (id)"), "amount text"),
        (other_words.replace("auction.bids", "auction.users"), "its reference is auction.bids, not auction.users"),
        (other_words.replace("WITH (", "WITH (RETAIN HISTORY FOR '3 days', "), "RETAIN HISTORY FOR is '1 day'"),
    ):
        with pytest.raises((SpecConflict, UnknownColumn), match=told):
            sql.run(text)
    with pytest.raises(NameTaken):
        sql.run(SOME)
    with pytest.raises(NameTaken, match="it is a source"):
        sql.run("CREATE TABLE IF NOT EXISTS a FROM SOURCE a (REFERENCE bids)")


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("FROM SOURCE a", AmbiguousReference, "one of auction.organizations, auction.users"),
        ("FROM SOURCE a (REFERENCE nope)", ReferenceMissing, "auction.bids"),
        ("FROM SOURCE a (REFERENCE counter.bids)", ReferenceMissing, "no reference counter.bids"),
        ("FROM SOURCE a (REFERENCE x.auction.bids)", ReferenceMissing, "no reference x.auction.bids"),
        ("FROM SOURCE a (REFERENCE bids) FORMAT TEXT", BadExport, "leave FORMAT TEXT out"),
        ("FROM SOURCE a (REFERENCE bids) WITH (TEXT COLUMNS (nope))", UnknownColumn, "one of id, buyer, auction_id"),
        ("FROM SOURCE a (REFERENCE bids) WITH (EXCLUDE COLUMNS (ID, nope))", UnknownColumn, "no column 'nope'"),
        ("(id bigint) FROM SOURCE a (REFERENCE bids)", BadExport, "(id bigint, buyer bigint,"),
        ("(id text, name text) FROM SOURCE a (REFERENCE users)", BadExport, "leave the list out"),
        (
            "FROM SOURCE a (REFERENCE organizations) WITH (IGNORE COLUMNS (id, name))",
            BadExport,
            "EXCLUDE COLUMNS leaves none",
        ),
    ],
)
def test_what_the_upstream_cannot_give_is_refused_by_name(
    sql: Session, text: str, error: type[MzShareError], told: str
) -> None:
    sql.run(AUCTION)
    with pytest.raises(error) as raised:
        sql.run(f"CREATE TABLE t {text}")
    assert told in raised.value.line
    assert sql.names() == ["a"]


def test_a_column_list_may_say_what_comes_out_anyway(sql: Session) -> None:
    sql.run(AUCTION + "CREATE TABLE t (id bigint, name text) FROM SOURCE a (REFERENCE organizations)")
    assert sql.table().spec.columns == (ColumnSpec(name="id", type="bigint"), ColumnSpec(name="name", type="text"))


def test_tables_of_kafka(kafka: EmbeddedKafka, tmp_path: object) -> None:
    sql = Session(f"sqlite:///{tmp_path}/catalog.db", kafka)
    topic = create_topic(kafka, 1)
    sql.run(create_source(topic))
    with pytest.raises(BadExport, match="a Kafka table needs FORMAT"):
        sql.run("CREATE TABLE t FROM SOURCE s")
    with pytest.raises(BadExport, match="TEXT COLUMNS needs an upstream that has columns"):
        sql.run("CREATE TABLE t (a int) FROM SOURCE s FORMAT JSON WITH (TEXT COLUMNS (a))")
    with pytest.raises(ReferenceMissing, match="has no reference other"):
        sql.run("CREATE TABLE t FROM SOURCE s (REFERENCE other) FORMAT TEXT")
    again = "CREATE TABLE IF NOT EXISTS t (a int) FROM SOURCE s FORMAT JSON INCLUDE OFFSET AS o, KEY"
    sql.run(again)
    assert sql.table().spec.details == KafkaExportDetails(
        topic=topic, metadata_columns=(Include(what="offset", name="o"), Include(what="key", name="key"))
    )
    assert sql.run(again) == ["CREATE TABLE public.t u2 (it exists)"]
    sql.catalog.close()


def test_the_flag_refuses_tables_by_its_name(sql: Session) -> None:
    sql.run(AUCTION + "ALTER SYSTEM SET enable_create_table_from_source = false")
    with pytest.raises(FlagOff, match="enable_create_table_from_source is false") as raised:
        sql.run(SOME)
    assert "ALTER SYSTEM SET enable_create_table_from_source = true" in raised.value.hint
    sql.run("ALTER SYSTEM SET enable_create_table_from_source = true;" + SOME)


def test_options_change_while_the_table_is_written(sql_on_both: Session) -> None:
    """Whoever writes it asks for its members at every tick, and so has the new options at the next."""
    sql = sql_on_both
    sql.run(AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids);")
    sql.tick({0: 1}, source="a")
    before = sql.table()
    sql.run("ALTER TABLE t SET (RETAIN HISTORY FOR '2 days', ON DECODE ERROR 'STOP')")
    (member,) = CatalogTickStore(sql.catalog, sql.source("a").id).members()
    assert (member.spec.retain_history_seconds, member.spec.on_decode_error) == (2 * 86_400, "stop")
    after = sql.table()
    assert (after.id, after.spec_version, after.upper) == (before.id, before.spec_version + 1, before.upper)
    assert after.spec.model_copy(update={"retain_history_seconds": 86_400, "on_decode_error": "record"}) == before.spec
    assert sql.run("ALTER TABLE t RESET (RETAIN HISTORY, ON DECODE ERROR)") == ["ALTER TABLE public.t u2"]
    assert sql.table().spec == before.spec
    assert sql.run("ALTER TABLE t RESET (RETAIN HISTORY)") == ["ALTER TABLE public.t u2 (nothing changes)"]
    assert sql.table().spec_version == before.spec_version + 2


def test_a_later_table_begins_at_the_sources_start(sql: Session) -> None:
    sql.run(AUCTION + "CREATE TABLE t FROM SOURCE a (REFERENCE bids);")
    sql.tick({4: 5}, source="a")
    (result,) = sql.results("CREATE TABLE u FROM SOURCE a (REFERENCE bids)")
    assert result.plan is not None
    assert result.plan.backfilled == ("public.u",)
    assert sql.table("u").start == sql.source("a").start
