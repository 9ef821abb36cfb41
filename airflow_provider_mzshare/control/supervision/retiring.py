"""Ends the backfills of tables for good, whoever asks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.backfills import last_backfill
from airflow_provider_mzshare.control.supervision.reconciler import Outcome, Reconciler
from airflow_provider_mzshare.core.ids import BackfillId, ItemId


def retire_backfills(catalog: Catalog, reconciler: Reconciler, tables: Iterable[ItemId]) -> list[Outcome]:
    """End the newest backfill of each table. Tables that were asked for together share one backfill, which ends once.

    Tables that are not live yet stall, and can be resumed; a new generation that is not live yet is given up. One that
    others were merged into goes on for those. The room that comes free is given to who waits for it.
    """
    found: dict[BackfillId, list[ItemId]] = defaultdict(list)
    with catalog.read() as session:
        for table_id in tables:
            if (backfill_id := last_backfill(session, table_id)) is not None:
                found[backfill_id].append(table_id)
    outcomes = [outcome for one, asked in found.items() for outcome in reconciler.retire(one, asked)]
    # If the app of another backfill cannot be started, retiring has not failed: a reconciler reports that.
    return outcomes + [started for started in reconciler.start_queued() if started.ok] if found else outcomes
