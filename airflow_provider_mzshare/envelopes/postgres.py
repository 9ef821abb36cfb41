"""The changes of a table of Postgres. No statement names it: the kind of source does."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_mzshare.envelopes.row_changes import RowChanges


class Postgres(RowChanges):
    name = "postgres"

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        """The key is that of the table upstream."""
        return None


POSTGRES = Postgres()
