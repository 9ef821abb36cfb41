"""A table's spec in all its versions: a tick keeps the one that it was minted with, whoever asks and when."""

from __future__ import annotations

import random

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items, table_specs
from airflow_provider_mzshare.control.catalog.queries.reads import table_read_point
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.core.ticklog import spec_versions
from tests.support.backfilling import Backfilling, add_late_tables
from tests.support.catalog import Log, add_source, add_tables


def wider(spec: TableSpec) -> TableSpec:
    name = f"c{len(spec.columns)}"
    return spec.model_copy(update={"columns": (*spec.columns, ColumnSpec(name=name, type="text"))})


def change(catalog: Catalog, table_id: ItemId, **fields: object) -> None:
    with catalog.write() as session:
        spec = items.get_table_item(session, table_id).spec
        items.set_table_spec(session, table_id, spec.model_copy(update=fields) if fields else wider(spec))


def columns(spec: TableSpec) -> int:
    return len(spec.columns)


def test_a_change_is_valid_from_the_next_tick_that_is_minted(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    log.tick()
    pending = log.mint()
    change(catalog, table)
    assert columns(log.member(table).spec) == 0, "the tick that is pending"
    assert columns(log.store.members(pending.number)[0].spec) == 0
    log.commit(pending)
    assert columns(log.member(table).spec) == 1, "the next one"
    log.tick()
    with catalog.read() as session:
        found = {tick: columns(table_read_point(session, table, tick=tick).spec) for tick in (1, 2, 3)}
        assert columns(items.get_table_item(session, table).spec) == 1
    assert found == {1: 0, 2: 0, 3: 1}


def test_what_is_done_with_rows_is_what_was_said_last(catalog: Catalog) -> None:
    """A table that stalled at a bad record gets over it once it may: also with the specs of old ticks."""
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    log = Log(catalog, source)
    change(catalog, table, on_decode_error="stop")
    pending = log.mint()
    change(catalog, table, on_decode_error="record", retain_history_seconds=7)
    change(catalog, table)
    (member,) = log.store.members(pending.number)
    assert (member.spec_version, columns(member.spec)) == (2, 0)
    assert (member.spec.on_decode_error, member.spec.retain_history_seconds) == ("record", 7)


def test_a_backfill_has_the_specs_of_old_ticks_and_knows_where_they_change(catalog: Catalog) -> None:
    log, (late,) = add_late_tables(catalog, "late")
    change(catalog, late)
    log.tick()
    change(catalog, late)
    change(catalog, late)
    log.tick()
    backfill = Backfilling(catalog, log.source_id)
    assert backfill.store.spec_changes([late]) == {late: [1, 4, 5, 5]}
    found = {tick: columns(backfill.store.members([late], tick)[0].spec) for tick in (1, 3, 4, 5)}
    assert found == {1: 0, 3: 0, 4: 1, 5: 3}


def test_the_catalog_finds_the_version_that_the_rule_says(catalog: Catalog) -> None:
    source = add_source(catalog)
    tables = add_tables(catalog, source, "t", "u")
    log, chance = Log(catalog, source), random.Random(1)
    for _ in range(60):
        if chance.random() < 0.5:
            log.tick()
        else:
            change(catalog, chance.choice(tables), retain_history_seconds=chance.randint(1, 10**6))
    with catalog.read() as session:
        first_ticks = table_specs.first_ticks(session, tables)
        for table in tables:
            for tick in range(1, log.store.load().last_number + 2):
                expected = spec_versions.version_at(first_ticks[table], tick) + 1
                assert [m.spec_version for m in log.store.members(tick) if m.table_id == table] == [expected]
    assert sum(len(ticks) for ticks in first_ticks.values()) > 20
