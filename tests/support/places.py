"""Places that a database could have: one lane and a log's number, or several logs whose numbers 64 bits do not hold."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.places import Place, PlaceColumn


def show_lsn(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


LSN = Place(
    columns=(PlaceColumn("lsn", "_mz_lsn", "bigint"), PlaceColumn("index", "_mz_index", "integer")),
    counted="lsn",
    only_lane="lsn",
    show=show_lsn,
)
"""A commit's place in the log, and the record's number in the transaction."""

BINLOG = Place(
    columns=(
        PlaceColumn("server", "_mz_server", "text"),
        PlaceColumn("binlog", "_mz_binlog", "numeric(38,0)"),
        PlaceColumn("index", "_mz_index", "integer"),
    ),
    lane="server",
    counted="binlog",
)
"""The number of a file and a place in it, in one number; each server has a log of its own."""
