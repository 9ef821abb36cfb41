"""The columns of a table, from its spec."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, TableSpec
from airflow_provider_mzshare.storage.table_columns import all_columns, user_columns


def test_columns_come_in_the_order_value_metadata_system() -> None:
    spec = TableSpec(
        reference="t",
        format="json",
        columns=(ColumnSpec(name="a", type="bigint"),),
        include=(Include(what="key", name="k"), Include(what="timestamp", name="at")),
    )
    assert [(c.name, c.type) for c in all_columns(spec, PARTITIONED)] == [
        ("a", "bigint"),
        ("k", "text"),
        ("at", "timestamptz"),
        ("_mz_tick", "bigint"),
        ("_mz_partition", "integer"),
        ("_mz_offset", "bigint"),
    ]


@pytest.mark.parametrize(("format_", "type_name"), [("json", "text"), ("text", "text"), ("bytes", "bytea")])
def test_without_a_column_list_there_is_one_column(format_: str, type_name: str) -> None:
    (column,) = user_columns(TableSpec(reference="t", format=format_))
    assert (column.name, column.type) == ("data", type_name)


def test_the_columns_of_a_key_come_before_the_metadata_and_the_errors_last() -> None:
    spec = TableSpec(
        reference="t",
        format="text",
        key_format="json",
        key_columns=(ColumnSpec(name="b", type="bigint"), ColumnSpec(name="a", type="text")),
        include=(Include(what="offset", name="o"),),
        envelope="upsert",
        inline_errors="why",
    )
    found = [(c.name, c.type) for c in user_columns(spec)]
    assert found == [("data", "text"), ("b", "bigint"), ("a", "text"), ("o", "bigint"), ("why", "text")]
