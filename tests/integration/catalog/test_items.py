"""Sources and tables: names, ids, specs, drops."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, MembershipRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings, Start
from airflow_provider_mzshare.errors import Fenced, HasDependents, NameTaken, SpecConflict, UnknownItem
from tests.support.catalog import SOURCE, TABLE, TOPIC_ID, Log, add_source, add_tables


def test_ids_count_up_and_are_not_reused_after_a_drop(catalog: Catalog) -> None:
    source = add_source(catalog)
    first, second = add_tables(catalog, source, "a", "b")
    assert (source, first, second) == ("u1", "u2", "u3")
    with catalog.write() as session:
        items.drop_source(session, source, cascade=True)
    assert add_source(catalog) == "u4"
    assert add_tables(catalog, ItemId("u4"), "a", "b") == ["u5", "u6"]


def test_a_transaction_that_fails_leaves_nothing(catalog: Catalog) -> None:
    def create_twice() -> None:
        with catalog.write() as session:
            for _ in range(2):
                items.create_source(session, name=("public", "s"), spec=SOURCE, incarnation=TOPIC_ID, start=Position())

    with pytest.raises(NameTaken):
        create_twice()
    with catalog.read() as session:
        assert items.find(session, ("public", "s")) is None


def test_sources_and_tables_share_a_namespace(catalog: Catalog) -> None:
    source = add_source(catalog, "x")
    with pytest.raises(NameTaken, match="it is a source"):
        add_tables(catalog, source, "x")
    add_tables(catalog, source, "y")
    with pytest.raises(NameTaken, match="it is a table"):
        add_source(catalog, "y")


def test_the_same_name_may_be_used_in_another_schema(catalog: Catalog) -> None:
    source = add_source(catalog, "x")
    with catalog.write() as session:
        table = items.create_table(session, name=("raw", "x"), source_id=source, spec=TABLE)
    with catalog.read() as session:
        assert items.find_table(session, ("raw", "x")).id == table
        assert items.find_table(session, ("raw", "x")).display == "raw.x"
        assert items.find_source(session, ("public", "x")).display == "x"
        with pytest.raises(UnknownItem):
            items.find_source(session, ("raw", "x"))


def test_if_not_exists_gives_the_same_id_for_the_same_spec(catalog: Catalog) -> None:
    for _ in range(2):
        with catalog.write() as session:
            source = items.create_source(
                session,
                name=("public", "s"),
                spec=SOURCE,
                incarnation=TOPIC_ID,
                start=Position({"0": 4}),
                if_not_exists=True,
            )
            table = items.create_table(session, name=("public", "t"), source_id=source, spec=TABLE, if_not_exists=True)
        assert (source, table) == ("u1", "u2")
        # Not even a source that has moved on makes a table need a backfill that is there already.
        log = Log(catalog, source)
        log.tick(records=5)
        log.store.release(log.holder)


def test_if_not_exists_names_the_difference(catalog: Catalog) -> None:
    source = add_source(catalog)
    add_tables(catalog, source, "t")
    other = SOURCE.model_copy(update={"topic": "orders", "start": Start(mode="timestamp", timestamp=5)})
    difference = r"topic is 'events', not 'orders'; start is the earliest record, not TIMESTAMP 5"
    with pytest.raises(SpecConflict, match=difference), catalog.write() as session:
        items.create_source(
            session, name=("public", "s"), spec=other, incarnation=TOPIC_ID, start=Position(), if_not_exists=True
        )
    text_table = TABLE.model_copy(update={"format": "text"})
    with pytest.raises(SpecConflict, match="format is 'json', not 'text'"), catalog.write() as session:
        items.create_table(session, name=("public", "t"), source_id=source, spec=text_table, if_not_exists=True)
    elsewhere = add_source(catalog, "s2")
    with pytest.raises(SpecConflict, match="it comes from source 's'"), catalog.write() as session:
        items.create_table(session, name=("public", "t"), source_id=elsewhere, spec=TABLE, if_not_exists=True)
    with pytest.raises(NameTaken, match="it is a source") as taken, catalog.write() as session:
        items.create_table(session, name=("public", "s"), source_id=source, spec=TABLE, if_not_exists=True)
    assert taken.value.hint == "another name"


def test_what_bears_a_name_that_was_taken_for_another_kind_is_told(catalog: Catalog) -> None:
    add_tables(catalog, add_source(catalog, "s"), "t")
    with catalog.read() as session:
        with pytest.raises(UnknownItem, match="'t' is a table, not a source"):
            items.find_source(session, ("public", "t"))
        with pytest.raises(UnknownItem, match="'s' is a source, not a table"):
            items.find_table(session, ("public", "s"))


def test_a_table_has_two_collections_with_paths_of_their_own(catalog: Catalog) -> None:
    source = add_source(catalog)
    (table,) = add_tables(catalog, source, "t")
    with catalog.read() as session:
        found = session.scalars(select(CollectionRow).order_by(CollectionRow.role)).all()
    assert [(row.table_id, row.role, row.path == row.id) for row in found] == [
        (table, "data", True),
        (table, "errors", True),
    ]


def test_a_table_begins_at_its_sources_start(catalog: Catalog) -> None:
    start = Position({"0": 7, "1": 2})
    source = add_source(catalog, start=start)
    (table,) = add_tables(catalog, source, "t")
    with catalog.read() as session:
        item = items.get_table_item(session, table)
    assert (item.start, item.position, item.status, item.upper) == (start, start, "created", 0)


def test_a_table_may_come_after_empty_ticks_and_not_after_others(catalog: Catalog) -> None:
    source = add_source(catalog)
    add_tables(catalog, source, "early")
    log = Log(catalog, source)
    log.empty()
    (late,) = add_tables(catalog, source, "late")
    tick = log.tick()
    assert late in log.store.load().members
    assert log.store.load().tables[late].since == tick.mz_timestamp
    (too_late,) = add_tables(catalog, source, "too_late")
    arriving = log.store.load().tables[too_late]
    assert (arriving.status, arriving.next_tick, arriving.position) == ("backfilling", 1, Position())


def test_a_pending_tick_counts_as_passed(catalog: Catalog) -> None:
    source = add_source(catalog)
    add_tables(catalog, source, "early")
    log = Log(catalog, source)
    log.mint()
    (late,) = add_tables(catalog, source, "late")
    assert log.store.load().tables[late].status == "backfilling"


def test_a_source_with_tables_is_dropped_only_with_cascade(catalog: Catalog) -> None:
    source = add_source(catalog)
    add_tables(catalog, source, "a", "b")
    with pytest.raises(HasDependents, match="'s' still feeds a, b"), catalog.write() as session:
        items.drop_source(session, source)
    log = Log(catalog, source)
    log.tick()
    with catalog.write() as session:
        items.drop_source(session, source, cascade=True)
    with catalog.read() as session:
        assert items.list_sources(session) == []
        assert items.list_tables(session) == []
        assert items.get_source_item(session, source).status == "dropped"
    assert log.store.load().members == frozenset()
    with pytest.raises(Fenced):
        log.mint()
    with pytest.raises(Fenced):
        log.store.claim(JobId("job-2"))
    with pytest.raises(UnknownItem), catalog.write() as session:
        items.drop_source(session, source)
    with pytest.raises(UnknownItem):
        add_tables(catalog, source, "c")


@pytest.mark.parametrize("pending", [False, True])
def test_a_dropped_table_gets_no_tick_from_the_pending_one_on(catalog: Catalog, pending: bool) -> None:
    source = add_source(catalog)
    gone, stays = add_tables(catalog, source, "gone", "stays")
    log = Log(catalog, source)
    log.tick()
    if pending:
        log.mint()
    with catalog.write() as session:
        items.drop_table(session, gone)
    with catalog.read() as session:
        query = select(MembershipRow.table_id, MembershipRow.joined_at, MembershipRow.left_at, MembershipRow.reason)
        assert {tuple(row) for row in session.execute(query)} == {(gone, 1, 2, "dropped"), (stays, 1, None, None)}
        assert items.find(session, ("public", "gone")) is None
    with pytest.raises(UnknownItem), catalog.write() as session:
        items.drop_table(session, gone)


def test_settings_and_the_wish_to_run_are_changed_by_themselves(catalog: Catalog) -> None:
    source = add_source(catalog)
    faster = SourceSettings(trigger_interval_ms=100)
    with catalog.write() as session:
        items.set_settings(session, source, faster)
        items.set_desired(session, source, "stopped")
    with catalog.read() as session:
        item = items.get_source_item(session, source)
    assert (item.settings, item.desired, item.spec, item.status) == (faster, "stopped", SOURCE, "active")
    with pytest.raises(UnknownItem), catalog.write() as session:
        items.set_desired(session, ItemId("u99"), "running")


def test_a_stall_is_cleared_only_for_the_reason_expected(catalog: Catalog) -> None:
    source = add_source(catalog)
    log = Log(catalog, source)
    log.store.stall(log.holder, "catalog_behind", "it has lost its tail")
    with catalog.write() as session:
        assert not items.clear_stall(session, source, expect="history_gone")
    with catalog.read() as session:
        item = items.get_source_item(session, source)
    assert (item.status, item.reason, item.message) == ("stalled", "catalog_behind", "it has lost its tail")
    with catalog.write() as session:
        assert items.clear_stall(session, source, expect="catalog_behind")
    assert log.store.load().status == "active"


def test_items_are_listed_in_the_order_they_were_made(catalog: Catalog) -> None:
    source = add_source(catalog)
    names = [f"t{number}" for number in range(12)]
    add_tables(catalog, source, *reversed(names))
    with catalog.read() as session:
        assert [table.display for table in items.list_tables(session, source)] == names[::-1]
        assert items.list_tables(session, ItemId("u99")) == []
