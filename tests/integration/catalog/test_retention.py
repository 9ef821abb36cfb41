"""``since`` follows RETAIN HISTORY FOR, and tells which versions are still needed."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects.lookup import get_table_item
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import Fenced
from tests.support.catalog import Log, add_source, add_tables, wrote

DAY_MS, HOUR_MS = 86_400_000, 3_600_000


def test_since_moves_with_the_clock_and_never_past_what_is_there(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    (table_id,) = add_tables(catalog, source_id, "t")
    log = Log(catalog, source_id)
    hours = iter(range(100))
    log.store = CatalogTickStore(catalog, source_id, clock=lambda: DAY_MS + next(hours) * HOUR_MS)
    ticks = []
    for version in range(1, 11):  # minting and committing each take an hour by this clock
        tick = log.mint()
        log.commit(tick, {table_id: wrote(log.member(table_id), version)})
        ticks.append(tick)
    first = _since(catalog, table_id)
    assert first == ticks[0].mz_timestamp

    soon = CatalogTickStore(catalog, source_id, clock=lambda: ticks[4].mz_timestamp)
    soon.advance_since(log.holder)
    assert _since(catalog, table_id) == first, "a day has not passed"

    at = ticks[4].mz_timestamp
    later = CatalogTickStore(catalog, source_id, clock=lambda: at + DAY_MS)
    later.advance_since(log.holder)
    assert _since(catalog, table_id) == at
    soon.advance_since(log.holder)
    assert _since(catalog, table_id) == at, "never backwards"

    much_later = CatalogTickStore(catalog, source_id, clock=lambda: at + 100 * DAY_MS)
    much_later.advance_since(log.holder)
    assert _since(catalog, table_id) == ticks[-1].mz_timestamp, "the newest tick stays readable"


def test_only_the_holder_moves_since(catalog: Catalog) -> None:
    source_id = add_source(catalog)
    log = Log(catalog, source_id)
    with pytest.raises(Fenced):
        log.store.advance_since(Holder(JobId("another"), log.holder.epoch))


def _since(catalog: Catalog, table_id: str) -> int:
    with catalog.read() as session:
        return get_table_item(session, table_id).since  # type: ignore[arg-type]
