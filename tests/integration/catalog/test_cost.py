"""What a tick costs the catalog: a fixed number of statements, whatever the number of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import event, insert

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import TickRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.leftovers import find_leftovers
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.positions import Position
from tests.support.catalog import TOPIC_ID, Log, add_source, add_tables, wrote_all

COSTS = {"beat": 2, "empty": 8, "members": 1, "mint": 5, "commit": 9}
"""Statements of each step's one transaction; SQLite's BEGIN, which we issue ourselves, comes on top.

The empty tick is the first after one with records, and the last is the other way round: both note that change.
"""


@contextmanager
def counted(catalog: Catalog) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(catalog._engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(catalog._engine, "before_cursor_execute", note)


def _costs(catalog: Catalog, name: str, tables: int) -> dict[str, int]:
    source = add_source(catalog, name)
    add_tables(catalog, source, *(f"{name}_{number}" for number in range(tables)))
    log = Log(catalog, source)
    here = log.tick().upper
    members, version = log.store.members(), 1
    steps: dict[str, Callable[[], object]] = {
        "beat": lambda: log.store.beat(log.holder),
        "empty": lambda: log.store.mint_empty(log.holder, at=here, incarnation=TOPIC_ID),
        "members": log.store.members,
        "mint": lambda: log.store.mint(
            log.holder, lower=here, upper=Position({"0": here[0] + 1}), incarnation=TOPIC_ID
        ),
        "commit": lambda: log.store.commit(log.holder, 3, wrote_all(members, version), {}),
    }
    costs = {}
    for what, step in steps.items():
        with counted(catalog) as statements:
            step()
        costs[what] = len(statements)
    return costs


def test_a_step_costs_few_statements_for_any_number_of_tables(catalog: Catalog) -> None:
    few, many = _costs(catalog, "few", 1), _costs(catalog, "many", 16)
    assert few == many
    begin = 1 if catalog.is_embedded else 0
    assert few == {what: cost + begin for what, cost in COSTS.items()}


def test_what_dropped_tables_left_is_found_without_a_look_through_the_log(catalog: Catalog) -> None:
    if not catalog.is_embedded:
        return  # only SQLite counts its steps
    source = add_source(catalog)
    add_tables(catalog, source, "stays")
    gone = add_tables(catalog, source, *(f"gone_{number}" for number in range(5)))
    Log(catalog, source).tick()
    with catalog.write() as session:
        for table_id in gone:
            items.drop_table(session, table_id)
    few = _steps_to_leftovers(catalog)
    _lengthen(catalog, source, 5_000)
    assert _steps_to_leftovers(catalog) < few + 50


def _steps_to_leftovers(catalog: Catalog) -> int:
    """In hundreds of SQLite's own instructions."""
    steps: list[int] = []
    with catalog.read() as session:
        connection = session.connection().connection.dbapi_connection
        assert connection is not None
        connection.set_progress_handler(lambda: steps.append(1), 100)
        try:
            find_leftovers(session, frozenset({"any"}))
        finally:
            connection.set_progress_handler(None, 0)
    return len(steps)


def _lengthen(catalog: Catalog, source_id: ItemId, to: int) -> None:
    same = {"source_id": source_id, "lower": Position({"0": 1}), "upper": Position({"0": 1}), "committed": True}
    rest = {"minted_at": 1, "epoch": 1, "attempts": 1, "deaths": 0, "repaired": False}
    numbers = [{"number": number, "mz_timestamp": 10_000 + number} for number in range(2, to)]
    with catalog.write() as session:
        session.execute(insert(TickRow), [same | rest | number for number in numbers])
