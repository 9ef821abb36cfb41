"""Queries in Spark's words: where the two languages differ, and wherever a part stands in another."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.views.columns import Typed, _sql_type
from airflow_provider_mzshare.control.views.queries import read_query, tables_of
from airflow_provider_mzshare.control.views.resolving import Resolved
from airflow_provider_mzshare.control.views.translating import to_spark
from airflow_provider_mzshare.control.views.view_errors import BadQuery
from airflow_provider_mzshare.core.ids import ItemId

COLUMNS = {"id": "bigint", "amount": "numeric(12,2)", "note": "text", "at": "timestamp", "doc": "jsonb", "f": "double"}


@pytest.mark.parametrize(
    ("written", "translated"),
    [
        ("id / 2", "`t`.`id` DIV 2"),
        ("(7 / 2 * id) / 2", "(7 DIV 2 * `t`.`id`) DIV 2"),
        ("amount / 2", "`t`.`amount` / 2"),
        ("(amount * (id / 2))::int / 2", "CAST(ROUND((`t`.`amount` * (`t`.`id` DIV 2))) AS INT) DIV 2"),
        ("f::bigint", "CAST(RINT(`t`.`f`) AS BIGINT)"),
        ("2.5::int", "CAST(ROUND(2.5) AS INT)"),
        ("'7'::int", "CAST('7' AS INT)"),
        ("note::numeric", "CAST(`t`.`note` AS DECIMAL(38, 9))"),
        ("note::jsonb ->> 'a'", "GET_JSON_OBJECT(CAST(`t`.`note` AS STRING), '$.a')"),
        ("note::timestamp", "CAST(`t`.`note` AS TIMESTAMP_NTZ)"),
        ("note::timestamptz", "CAST(`t`.`note` AS TIMESTAMP)"),
        ("date_trunc('day', at)", "CAST(DATE_TRUNC('DAY', `t`.`at`) AS TIMESTAMP_NTZ)"),
        ("concat(id / 2, 'a')", "CONCAT(COALESCE(CAST(`t`.`id` DIV 2 AS STRING), ''), 'a')"),
        (r"'it''s \ `x`'", r"'it\'s \\ `x`'"),
        ("note ~ '^a'", "`t`.`note` RLIKE '^a'"),
        ("left(note, 2)", "LEFT(`t`.`note`, 2)"),
        ("left(note, -2)", "REVERSE(SUBSTRING(REVERSE(`t`.`note`), 3))"),
        ("right(note, -2)", "SUBSTRING(`t`.`note`, 3)"),
        ("substring(note, 2, 3)", "SUBSTRING(`t`.`note`, 2, 3)"),
        ("substring(note, 0)", "SUBSTRING(`t`.`note`, 1)"),
        ("sum(id)", "SUM(CAST(`t`.`id` AS DECIMAL(19, 0)))"),
        ("sum(DISTINCT id)", "SUM(DISTINCT CAST(`t`.`id` AS DECIMAL(19, 0)))"),
        ("avg(id)::int", "CAST(ROUND(AVG(`t`.`id`)) AS INT)"),
        ("round(f)", "RINT(`t`.`f`)"),
        ("octet_length(note) / 2", "OCTET_LENGTH(`t`.`note`) DIV 2"),
        ("5000000001 / 2", "5000000001 DIV 2"),
        ("id / 2.0", "CAST(`t`.`id` AS DOUBLE) / CAST(2.0 AS DOUBLE)"),
    ],
)
def test_what_spark_would_take_differently_is_said_differently(written: str, translated: str) -> None:
    assert spark_of(written) == f"SELECT {translated} AS `x` FROM `t` AS `t`"


def spark_of(written: str) -> str:
    tree = read_query(f"SELECT {written} AS x FROM t")
    typed = Typed(None)  # type: ignore[arg-type]  # nothing is looked up
    typed._columns[ItemId("t")] = {name: _sql_type(kind) for name, kind in COLUMNS.items()}
    query = Resolved(tree, tuple(ItemId(table.name) for table in tables_of(tree)))
    return to_spark(typed.qualified(query))


def test_what_is_written_several_times_is_not_nested_without_end() -> None:
    def nested(depth: int, count: str) -> str:
        return "left(" * depth + "note" + f", {count})" * depth

    assert len(spark_of(nested(12, "-1"))) < 1_000
    assert len(spark_of(nested(4, "id::int"))) < 10_000
    with pytest.raises(BadQuery, match="nested too deeply"):
        spark_of(nested(12, "id::int"))
