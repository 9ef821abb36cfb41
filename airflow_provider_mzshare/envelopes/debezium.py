"""ENVELOPE DEBEZIUM: a record says how a row has changed, with the row before and after inside of its value."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_mzshare.envelopes.row_changes import RowChanges

_KEY = (
    "a key: PRIMARY KEY (column, …) NOT ENFORCED in the column list, or INCLUDE KEY (column type, …) with KEY FORMAT "
    "JSON; a table that has no key upstream needs ENVELOPE NONE, where each change is a row"
)


class Debezium(RowChanges):
    name = "debezium"

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        return None if "key" in include else _KEY


DEBEZIUM = Debezium()
