"""Statements: what they mean, and that they print and parse back."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import get_args

import pytest
import sqlglot
from sqlglot.errors import TokenError

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.control.sql import nodes, values
from airflow_provider_mzshare.control.sql.column_types import ALIASES, COLUMN_TYPES
from airflow_provider_mzshare.control.sql.dialect import MzShare
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import (
    SOURCE_SETTINGS,
    TABLE_OPTIONS,
)
from airflow_provider_mzshare.control.sql.script import (
    AlterSourceSet,
    AlterTable,
    CreateSource,
    CreateTable,
    DropItem,
    Show,
    ShowCreate,
    Statement,
    parse_script,
    print_create_source,
    print_create_table,
    print_settings,
    print_statement,
)
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, LegacySpec, SourceSettings, Start, TableSpec
from tests.support.parsing import one, refusal

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
DOC = ROOT / "docs" / "reference" / "sql.md"


T = QualifiedName("public", "t")


# ── what statements mean ──────────────────────────────────────────────────────────────────────────────────────────────


def test_create_source_carries_the_spec_and_only_the_settings_given() -> None:
    statement = one(
        "CREATE SOURCE IF NOT EXISTS s FROM KAFKA CONNECTION c (TOPIC 't', START OFFSET (0, 10, 100)) "
        "WITH (TRIGGER INTERVAL = '500ms', IDLE TICK INTERVAL = '250ms')"
    )
    start = Start(mode="offset", asked={"0": 0, "1": 10, "2": 100})
    assert statement == CreateSource(
        name=QualifiedName("public", "s"),
        if_not_exists=True,
        connection="c",
        spec=KafkaSourceSpec(connection="c", topic="t", start=start),
        settings={"trigger_interval_ms": 500, "idle_tick_seconds": 0.25},
    )
    assert isinstance(statement, CreateSource)
    settings = SourceSettings.model_validate(statement.settings)
    assert settings == SourceSettings(trigger_interval_ms=500, idle_tick_seconds=0.25)


def test_start_timestamp_keeps_the_raw_value() -> None:
    statement = one("CREATE SOURCE s FROM KAFKA CONNECTION c (TOPIC 't', START TIMESTAMP -1000)")
    assert isinstance(statement, CreateSource)
    assert statement.spec.start == Start(mode="timestamp", timestamp=-1000)
    assert print_statement(statement).endswith("(TOPIC 't', START TIMESTAMP -1000)")


def test_create_table_makes_a_spec_once_the_reference_is_known() -> None:
    statement = one(
        'CREATE TABLE a.t (id int, "userName" text) FROM SOURCE b.s FORMAT JSON INCLUDE KEY, OFFSET AS o '
        "WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '2 hours')"
    )
    assert isinstance(statement, CreateTable)
    assert (statement.name, statement.source) == (QualifiedName("a", "t"), QualifiedName("b", "s"))
    assert statement.reference is None
    assert statement.to_spec("orders") == TableSpec(
        reference="orders",
        format="json",
        columns=(ColumnSpec(name="id", type="integer"), ColumnSpec(name="userName", type="text")),
        include=(Include(what="key", name="key"), Include(what="offset", name="o")),
        on_decode_error="stop",
        retain_history_seconds=7_200,
    )


def test_the_defaults_of_a_table_are_those_of_its_spec() -> None:
    statement = one("CREATE TABLE t FROM SOURCE s (REFERENCE r) FORMAT BYTES")
    assert isinstance(statement, CreateTable)
    assert statement.reference == ("r",)
    assert statement.to_spec("r") == TableSpec(reference="r", format="bytes")


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("DROP SOURCE IF EXISTS s CASCADE", DropItem("source", QualifiedName("public", "s"), True, True)),
        ("DROP TABLE a.t", DropItem("table", QualifiedName("a", "t"), False, False)),
        ("SHOW SOURCES", Show("sources")),
        ("SHOW TABLES", Show("tables")),
        ("SHOW CREATE x", ShowCreate(None, QualifiedName("public", "x"))),
        ('SHOW CREATE "source"', ShowCreate(None, QualifiedName("public", "source"))),
        ("SHOW CREATE TABLE x", ShowCreate("table", QualifiedName("public", "x"))),
        (
            "ALTER SOURCE s SET (MAX RECORDS PER TICK 5)",
            AlterSourceSet(QualifiedName("public", "s"), {"max_records_per_tick": 5}, ()),
        ),
        (
            "ALTER SOURCE s RESET (IDLE TICK INTERVAL, TRIGGER INTERVAL)",
            AlterSourceSet(QualifiedName("public", "s"), {}, ("idle_tick_seconds", "trigger_interval_ms")),
        ),
        (
            "ALTER SOURCE s SET (BACKFILL RATE 0, CUTOVER WAIT '1.5s')",
            AlterSourceSet(QualifiedName("public", "s"), {"backfill_rate": 0, "cutover_wait_ms": 1_500}, ()),
        ),
        (
            "ALTER SOURCE s RESET (BACKFILL RATE)",
            AlterSourceSet(QualifiedName("public", "s"), {}, ("backfill_rate",)),
        ),
        ("ALTER TABLE a.t RESUME", AlterTable(QualifiedName("a", "t"), "resume")),
        ("ALTER TABLE t RESNAPSHOT", AlterTable(QualifiedName("public", "t"), "resnapshot")),
        ("ALTER TABLE t RESNAPSHOT FORCE", AlterTable(QualifiedName("public", "t"), "resnapshot", force=True)),
        (
            "ALTER TABLE t SET (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '2h')",
            values.AlterTableSet(T, {"on_decode_error": "stop", "retain_history_seconds": 7_200}),
        ),
        ("ALTER TABLE t RESET (RETAIN HISTORY)", values.AlterTableSet(T, {}, ("retain_history_seconds",))),
        ("ALTER TABLE t RENAME TO U", values.Rename("table", T, "u")),
        ("ALTER SCHEMA a RENAME TO b", values.Rename("schema", "a", "b")),
        ("ALTER TABLE t SWAP WITH a.t", values.Swap("table", T, QualifiedName("a", "t"))),
        ("ALTER SCHEMA a SWAP WITH b", values.Swap("schema", "a", "b")),
        ("ALTER SOURCE t REFRESH REFERENCES", values.RefreshReferences(T)),
        ("ALTER SOURCE u5 REFRESH REFERENCES", values.RefreshReferences(ItemId("u5"))),
        ('ALTER SOURCE "u5" REFRESH REFERENCES', values.RefreshReferences(QualifiedName("public", "u5"))),
        ("CREATE SCHEMA IF NOT EXISTS a", values.CreateSchema("a", True)),
        ("DROP SCHEMA a CASCADE", values.DropSchema("a", cascade=True)),
        ("DROP VIEW IF EXISTS t RESTRICT", DropItem("view", T, if_exists=True)),
        ("SHOW VIEWS FROM a", Show("views", "a")),
        ("ALTER SYSTEM SET force_source_table_syntax = 'off'", values.AlterSystem("force_source_table_syntax", False)),
        ("ALTER SYSTEM SET x = 'off'", values.AlterSystem("x", "off")),
        ("ALTER SYSTEM RESET x", values.AlterSystem("x", None)),
        ("COMMENT ON COLUMN t.a IS NULL", values.CommentOn("column", T, None, "a")),
        ("COMMENT ON SCHEMA a IS 'x'", values.CommentOn("schema", "a", "x")),
        ("INSERT INTO t SELECT 1; ", values.Write("INSERT", T)),
        ("select A from B", values.Query("SELECT a FROM b")),
        ("CREATE VIEW t AS (select 1 as X)", values.CreateView(T, False, "SELECT 1 AS x")),
        ("EXPLAIN DROP TABLE t", values.Explain(DropItem("table", T))),
        (
            "ALTER SOURCE t ADD TABLE a.b AS c, d WITH (IGNORE COLUMNS (d.e))",
            values.AddSubsources(
                T, ((("a", "b"), QualifiedName("public", "c")), (("d",), None)), exclude_columns=("d.e",)
            ),
        ),
        (
            "ALTER SOURCE t DROP SUBSOURCE IF EXISTS a.b CASCADE",
            values.DropSubsources(T, (QualifiedName("a", "b"),), True, True),
        ),
        (
            "CREATE SUBSOURCE t (a int) OF SOURCE t WITH (EXTERNAL REFERENCE x.y, TEXT COLUMNS (a))",
            values.CreateSubsource(T, (ColumnSpec(name="a", type="integer"),), T, ("x", "y"), ("a",)),
        ),
        ("CREATE SUBSOURCE t OF SOURCE t WITH (PROGRESS)", values.CreateSubsource(T, (), T, ())),
    ],
)
def test_small_statements(sql: str, statement: Statement) -> None:
    assert one(sql) == statement


def test_a_load_generator_carries_only_the_options_given() -> None:
    statement = one("CREATE SOURCE t FROM LOAD GENERATOR KEY VALUE (KEYS 5, TICK INTERVAL '2s', UP TO 0)")
    spec = LoadGeneratorSpec(generator="key_value", keys=5, tick_interval_ms=2_000, up_to=0)
    assert statement == CreateSource(name=T, if_not_exists=False, connection=None, spec=spec)


def test_an_old_style_source_of_one_output_carries_how_it_is_decoded() -> None:
    statement = one(
        "CREATE SOURCE t (a int) FROM KAFKA CONNECTION c (TOPIC 'x') FORMAT JSON INCLUDE KEY AS k EXPOSE PROGRESS AS p"
    )
    assert statement == CreateSource(
        name=T,
        if_not_exists=False,
        connection="c",
        spec=KafkaSourceSpec(
            connection="c", topic="x", legacy=LegacySpec(shape="single", progress="public.p")
        ),
        output=values.Output("json", (ColumnSpec(name="a", type="integer"),), (Include(what="key", name="k"),)),
    )  # fmt: skip


def test_old_style_subsources_are_kept_as_sql() -> None:
    statement = one(
        'CREATE SOURCE a.t FROM LOAD GENERATOR AUCTION FOR TABLES (auction."Us.ers", bids AS "B") '
        'WITH (TEXT COLUMNS (auction."Us.ers".id), EXCLUDE COLUMNS (bids.amount))'
    )
    assert isinstance(statement, CreateSource)
    assert statement.output is None
    assert statement.spec.legacy == LegacySpec(
        shape="tables",
        tables=(('auction."Us.ers"', 'a."Us.ers"'), ("bids", 'public."B"')),
        text_columns=('auction."Us.ers".id',),
        exclude_columns=("bids.amount",),
    )


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("CREATE SOURCE t FROM LOAD GENERATOR COUNTER", None),
        ("CREATE SOURCE t FROM LOAD GENERATOR COUNTER ENVELOPE NONE", "single"),
        ("CREATE SOURCE t FROM LOAD GENERATOR AUCTION", None),
        ("CREATE SOURCE t FROM LOAD GENERATOR AUCTION FOR ALL TABLES", "all_tables"),
        ("CREATE SOURCE t FROM LOAD GENERATOR AUCTION FOR SCHEMAS (auction)", "schemas"),
        ("CREATE SOURCE t FROM KAFKA CONNECTION c (TOPIC 'x')", None),
        ("CREATE SOURCE t FROM KAFKA CONNECTION c (TOPIC 'x') FORMAT BYTES", "single"),
    ],
)
def test_what_is_old_syntax(sql: str, shape: str | None) -> None:
    statement = one(sql)
    assert isinstance(statement, CreateSource)
    assert (statement.spec.legacy.shape if statement.spec.legacy else None) == shape
    assert (statement.output is not None) == (shape == "single")


def test_every_source_setting_can_be_written() -> None:
    settings = SourceSettings(
        trigger_interval_ms=60_000,
        max_records_per_tick=7,
        idle_tick_seconds=0.5,
        backfill_rate=8,
        cutover_wait_ms=9,
        retain_journal_seconds=10,
        max_journal_bytes=11 << 20,
    ).model_dump()
    statement = AlterSourceSet(QualifiedName("public", "s"), settings)
    assert one(print_statement(statement)) == statement


# ── SHOW CREATE ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_print_create_source_parses_back() -> None:
    spec = KafkaSourceSpec(connection="Main", topic="it's", start=Start(mode="offset", asked={"0": 5, "2": 7}))
    sql = print_create_source(QualifiedName("public", "s"), spec, {"max_records_per_tick": 10})
    assert sql == (
        "CREATE SOURCE public.s FROM KAFKA CONNECTION \"Main\" (TOPIC 'it''s', START OFFSET (5, 0, 7)) "
        "WITH (MAX RECORDS PER TICK 10)"
    )
    statement = one(sql)
    assert isinstance(statement, CreateSource)
    assert statement.settings == {"max_records_per_tick": 10}
    assert print_create_source(statement.name, statement.spec, statement.settings) == sql


def test_settings_in_a_message_say_which_are_not_set() -> None:
    settings = {"cutover_wait_ms": 250, "backfill_rate": None, "max_records_per_tick": 5}
    assert print_settings(settings) == "MAX RECORDS PER TICK 5, CUTOVER WAIT '250 milliseconds', no BACKFILL RATE"


def test_a_table_spec_from_before_snapshots_is_read_as_one_with_its_history() -> None:
    old = '{"version": 1, "reference": "t", "format": "text"}'
    assert TableSpec.model_validate_json(old) == TableSpec(reference="t", format="text", snapshot=True)


def test_print_create_table_parses_back() -> None:
    spec = TableSpec(
        reference="shop.orders",
        format="json",
        columns=(ColumnSpec(name="Id", type="numeric(10,2)"), ColumnSpec(name="x", type="double")),
        include=(Include(what="timestamp", name="timestamp"), Include(what="key", name="k")),
        on_decode_error="stop",
        retain_history_seconds=0,
        snapshot=False,
    )
    sql = print_create_table(QualifiedName("a", "t"), QualifiedName("b", "s"), spec)
    assert sql == (
        'CREATE TABLE a.t ("Id" numeric(10,2), x double precision) FROM SOURCE b.s (REFERENCE "shop.orders") '
        "FORMAT JSON INCLUDE TIMESTAMP, KEY AS k WITH (ON DECODE ERROR 'STOP', RETAIN HISTORY FOR '0 seconds', "
        "SNAPSHOT FALSE)"
    )
    statement = one(sql)
    assert isinstance(statement, CreateTable)
    assert statement.reference == (spec.reference,)
    assert statement.to_spec(spec.reference) == spec


# ── the dialect ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dialect_is_registered_and_declared_as_an_entry_point() -> None:
    assert sqlglot.Dialect.get("mzshare") is MzShare
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    entry_point = f'[project.entry-points."sqlglot.dialects"]\nmzshare = "{MzShare.__module__}:{MzShare.__name__}"'
    assert entry_point in project


def test_sqlglot_itself_gets_parse_errors_with_the_start_of_the_token() -> None:
    with pytest.raises(sqlglot.ParseError) as caught:
        sqlglot.parse("SHOW SOURCES;\n  GRANT x", read="mzshare")
    assert {key: caught.value.errors[0][key] for key in ("line", "col")} == {"line": 2, "col": 3}
    assert "\033" not in str(caught.value)


def test_nothing_passes_as_an_opaque_command() -> None:
    for into in (sqlglot.exp.Drop, sqlglot.exp.Alter, sqlglot.exp.Create, sqlglot.exp.Command):
        with pytest.raises((sqlglot.ParseError, TypeError)):
            sqlglot.parse_one("DROP FOO BAR", read="mzshare", into=into)
    parser = MzShare().parser()
    tokens = MzShare().tokenize("GRANT x")
    with pytest.raises(sqlglot.ParseError, match="GRANT is not supported"):
        parser._parse_as_command(tokens[0])


def test_trees_can_be_copied_and_pickled() -> None:
    tree = sqlglot.parse_one("CREATE TABLE t (a int) FROM SOURCE s FORMAT JSON INCLUDE KEY AS k", read="mzshare")
    assert isinstance(tree, nodes.CreateTable)
    assert tree.copy() == tree
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_a_text_that_only_sqlglot_cannot_read_still_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def tokenize(self: MzShare, sql: str) -> list[object]:
        raise TokenError("Error tokenizing", start=14, end=20)

    monkeypatch.setattr(MzShare, "tokenize", tokenize)
    assert str(refusal("SHOW SOURCES;\nSHOW TABLES")) == "line 2, column 1: the text cannot be read from about here on"


# ── the documentation ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_sql_block_of_the_reference_is_a_valid_script() -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```", DOC.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 15
    shown = {type(s) for block in blocks for transaction in parse_script(block) for s in transaction.statements}
    nobody_needs = {values.CreateSubsource, values.Write}
    assert shown == {*get_args(values.Plain), values.Explain} - nobody_needs


def test_the_reference_names_every_option() -> None:
    text = DOC.read_text(encoding="utf-8")
    of_kinds = [option.words for kind in CONNECTORS.all() for option in kind.options]
    options = (
        *SOURCE_SETTINGS,
        *of_kinds,
        *TABLE_OPTIONS,
        "EXTERNAL REFERENCE",
    )
    for option in options:
        assert f"{option} " in text, option


def test_the_reference_names_every_type_and_every_spelling() -> None:
    text = DOC.read_text(encoding="utf-8")
    for spelling in (*COLUMN_TYPES, *ALIASES):
        assert f"`{spelling}`" in text, spelling
