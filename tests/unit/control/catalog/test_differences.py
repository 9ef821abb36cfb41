"""Two definitions of one name are compared in words that a user has written."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.control.catalog.objects.differences import differences
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, Spec, Start, TableSpec


def columns(**types: str) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name=name, type=kind) for name, kind in types.items())


TABLE = TableSpec(reference="t", format="json", columns=columns(id="bigint", amount="numeric(12,2)"))
SOURCE = KafkaSourceSpec(connection="bus", topic="t")


@pytest.mark.parametrize(
    ("present", "change", "told"),
    [
        (SOURCE, {"topic": "u"}, "topic is 't', not 'u'"),
        (SOURCE, {"start": Start(mode="timestamp", timestamp=5)}, "start is the earliest record, not TIMESTAMP 5"),
        (SOURCE, {"start": Start(mode="offset", asked={"0": 7, "1": 2})},
         "start is the earliest record, not OFFSET (0: 7, 1: 2)"),
        (TABLE, {"columns": columns(id="bigint", amount="double")},
         "columns: it has (amount numeric(12,2)), asked for (amount double precision)"),
        (TABLE, {"columns": columns(id="bigint", amount="numeric(12,2)", Note="text")},
         'columns: asked for ("Note" text)'),
        (TABLE, {"columns": columns(amount="numeric(12,2)", id="bigint")}, "columns: the same in another order"),
        (TABLE, {"columns": columns(**{f"c{n}": "text" for n in range(7)}, id="bigint", amount="numeric(12,2)")},
         "columns: asked for (c0 text, c1 text, c2 text, c3 text, c4 text) and 2 more"),
        (TABLE, {"include": (Include(what="key", name="key"), Include(what="offset", name="o"))},
         "include: asked for (KEY, OFFSET AS o)"),
        (TABLE, {"retain_history_seconds": 3600}, "RETAIN HISTORY FOR is '1 day', not '1 hour'"),
        (TABLE, {"on_decode_error": "stop"}, "ON DECODE ERROR is 'record', not 'stop'"),
        (TABLE, {"snapshot": False}, "SNAPSHOT is true, not false"),
    ],
)  # fmt: skip
def test_a_difference_is_told_as_it_is_written(present: Spec, change: dict[str, object], told: str) -> None:
    assert differences(present, present.model_copy(update=change)) == [told]
    assert differences(present, present.model_copy()) == []
