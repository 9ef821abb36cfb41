"""The place of a row of Postgres: its transaction's commit, and its number among the transaction's changes.

A row of a snapshot is before all of them: at 0, and where it lay in its table. Travels; standard library only.
"""

from __future__ import annotations

from airflow_provider_mzshare.connectors.places import Place, PlaceColumn
from airflow_provider_mzshare.connectors.postgres.lsn import show_lsn

LANE = "lsn"

PLACE = Place(
    columns=(PlaceColumn("lsn", "_mz_lsn", "bigint"), PlaceColumn("index", "_mz_index", "bigint")),
    counted="lsn",
    only_lane=LANE,
    per_record=128,
    show=show_lsn,
)
