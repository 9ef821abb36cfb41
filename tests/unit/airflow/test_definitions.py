"""Structured arguments become statements that parse back to what was meant, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mzshare.control.sql.names import check_name
from airflow_provider_mzshare.control.sql.script import CreateSource, CreateTable, parse_script, print_statement
from airflow_provider_mzshare.errors import StatementError
from airflow_provider_mzshare.hooks.definitions import column_specs, source_statement, table_statement


def parsed(statement: Any) -> Any:
    """The value, which printed and parsed is the same: no value becomes syntax."""
    ((again,),) = (transaction.statements for transaction in parse_script(print_statement(statement)))
    assert again == statement
    return statement


def test_a_source() -> None:
    text = source_statement(
        "Orders", connection="kafka-1", topic="o'rders", start_offsets=[3, 4], options={"trigger_interval": "500ms"}
    )
    source: CreateSource = parsed(text)
    assert source.if_not_exists
    assert (str(source.name), source.connection, source.spec.topic) == ("public.orders", "kafka-1", "o'rders")
    assert source.spec.start.asked == {"0": 3, "1": 4}
    assert source.settings == {"trigger_interval_ms": 500}


def test_a_table_of_text_from_a_form_is_the_table_of_values() -> None:
    texts = {
        "name": "sales.Orders",
        "columns": 'id bigint, Price numeric(10, 2), "At" timestamp with time zone',
        "format": "JSON",
        "include": "offset, key",
        "snapshot": "False",
        "reference": "",
        "options": {"retain_history": "2 days", "on_decode_error": "STOP"},
    }
    values = {
        **texts,
        "columns": [
            {"name": "id", "type": "int8"},
            {"name": "price", "type": "decimal(10,2)"},
            {"name": "At", "type": "timestamptz"},
        ],
        "include": [{"what": "offset"}, "key"],
        "snapshot": False,
        "reference": None,
    }
    table: CreateTable = parsed(table_statement("s", texts))
    assert table == parsed(table_statement("s", values))
    assert [(c.name, c.type) for c in table.columns] == [
        ("id", "bigint"), ("price", "numeric(10,2)"), ("At", "timestamptz"),
    ]  # fmt: skip
    assert table.options == {"snapshot": False, "on_decode_error": "stop", "retain_history_seconds": 172_800}
    assert [i.name for i in table.include] == ["offset", "key"]


def test_a_table_of_a_source_that_has_columns_names_its_reference_by_parts() -> None:
    options = {"text_columns": "id, At", "exclude_columns": ["note"]}
    given = {"name": "bids", "format": "none", "reference": ["auction", "bids"], "options": options}
    table: CreateTable = parsed(table_statement("s", given))
    assert (table.reference, table.format) == (("auction", "bids"), "none")
    assert (table.text_columns, table.exclude_columns) == (("id", "At"), ("note",))
    topic: CreateTable = parsed(table_statement("s", {"name": "t", "reference": "my.topic"}))
    assert topic.reference == ("my.topic",)
    parts: CreateTable = parsed(table_statement("s", {**given, "reference": '["auction", "b.c"]'}))
    assert parts.reference == ("auction", "b.c")
    for wrong in ("[auction.bids", "[]", "[1]", ["a", None], {"a": 1}.items()):
        with pytest.raises(StatementError, match="is not a list of names"):
            table_statement("s", {**given, "reference": wrong})


def _is_name(text: str) -> bool:
    try:
        check_name(text, "a name")
    except ValueError:
        return False
    return not set(text) & set(" ,;{}()\n\t=") and not text.lower().startswith("_mz_")


NAMES = st.text(min_size=1, max_size=40).filter(_is_name)


@given(NAMES, st.text(alphabet="o'\";)--/* ", min_size=1, max_size=20))
def test_no_value_becomes_syntax(column: str, topic: str) -> None:
    table: CreateTable = parsed(table_statement("s", {"name": "t", "columns": [{"name": column, "type": "text"}]}))
    assert [c.name for c in table.columns] == [column]
    source: CreateSource = parsed(source_statement("s", connection=topic, topic=topic))
    assert (source.spec.topic, source.connection) == (topic, topic)


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ("id bigint) FROM SOURCE s FORMAT JSON; DROP TABLE x; --", "found \\)"),
        ("id bigint; DROP TABLE x", "found ;"),
        ("id", "a column type"),
        ([{"name": "id", "type": "bigint) FROM"}], "found \\)"),
        ([{"name": "id"}], "a column must be"),
        (["id bigint"], "a column must be"),
    ],
)
def test_columns_that_are_more_than_columns(columns: Any, word: str) -> None:
    with pytest.raises(StatementError, match=word):
        column_specs(columns)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({}, "needs a name"),
        ({"name": "t", "cols": ""}, "no table 'cols'"),
        ({"name": "t", "format": "avro"}, "json, text, bytes"),
        ({"name": "t", "include": "headers"}, "partition, offset"),
        ({"name": "t", "options": {"x": 1}}, "no table option 'x'"),
        ({"name": "t", "options": {"retain_history": "soon"}}, "is not a duration"),
        ({"name": "t", "snapshot": "maybe"}, "expected TRUE or FALSE, found maybe"),
    ],
)
def test_what_cannot_be_a_table_is_told(table: dict[str, Any], word: str) -> None:
    with pytest.raises(StatementError, match=word):
        table_statement("s", table)


def test_options_of_a_source_are_checked() -> None:
    with pytest.raises(StatementError, match="no source option 'trigger'"):
        source_statement("s", connection="c", topic="t", options={"trigger": "1s"})
    with pytest.raises(StatementError, match="backfill_rate"):
        source_statement("s", connection="c", topic="t", options={"backfill_rate": "fast"})
    with pytest.raises(StatementError, match="cannot be used together"):
        source_statement("s", connection="c", topic="t", start_offsets=[1], start_timestamp=2)
