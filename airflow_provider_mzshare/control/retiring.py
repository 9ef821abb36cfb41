"""Ends the backfills of tables for good, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.backfills import last_backfill
from airflow_provider_mzshare.control.reconciler import Outcome, Reconciler
from airflow_provider_mzshare.types.ids import ItemId


def retire_backfills(catalog: Catalog, reconciler: Reconciler, tables: Iterable[ItemId]) -> list[Outcome]:
    """The newest backfill of each table, once: tables that were created together share one, and so its end.

    Tables that are not live yet stall, and can be resumed; a new generation that is not live yet is given up.
    """
    with catalog.read() as session:
        found = [last_backfill(session, table_id) for table_id in tables]
    backfills = dict.fromkeys(backfill_id for backfill_id in found if backfill_id is not None)
    return [outcome for backfill_id in backfills for outcome in reconciler.retire(backfill_id)]
