"""What a tick costs the catalog: a fixed number of statements, whatever the number of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import event

from airflow_provider_mzshare.control.catalog import Catalog
from tests.support.catalog import TOPIC_ID, Log, add_source, add_tables, wrote_all

COSTS = {"beat": 2, "empty": 7, "members": 1, "mint": 5, "commit": 7}
"""Statements of each step's one transaction; SQLite's BEGIN, which we issue ourselves, comes on top."""


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
        "mint": lambda: log.store.mint(log.holder, lower=here, upper=here, incarnation=TOPIC_ID),
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
