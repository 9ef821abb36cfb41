"""Upstreams that have columns of their own. Nothing is written in SQL, and nothing is for the user to decode.

Their records carry the columns as the fields of a JSON object.
"""

from __future__ import annotations

from airflow_provider_mzshare.formats.json import Json


class Native(Json):
    name = "none"
    own_columns = True

    def refuses(self, type_name: str) -> str | None:
        return None


NATIVE = Native()
