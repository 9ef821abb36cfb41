"""Old-style statements as values, and a catalog to run them on; load generators need no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import Generator, LoadGeneratorSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import flags, items
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.handlers.show import create_sql
from airflow_provider_mzshare.control.statements.run import execute_script, run_transactions
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import LegacySpec
from airflow_provider_mzshare.core.ticklog.state import Done, Tick

OUTPUTS = ["accounts", "auctions", "bids", "organizations", "users"]
"""What an auction has."""


def named(name: str) -> QualifiedName:
    schema, _, plain = name.rpartition(".")
    return QualifiedName(schema or "public", plain)


def auction(name: str = "a", *, if_not_exists: bool = False, **legacy: Any) -> sql.CreateSource:
    """With subsources; ``FOR ALL TABLES`` unless told otherwise."""
    spec = LoadGeneratorSpec(generator="auction", legacy=LegacySpec(**{"shape": "all_tables", **legacy}))
    return sql.CreateSource(named(name), if_not_exists, None, spec)


def for_tables(name: str, *tables: tuple[str, str], **more: Any) -> sql.CreateSource:
    return auction(name, shape="tables", tables=tables, **more)


def generator(
    kind: Generator = "counter", name: str = "c", *, if_not_exists: bool = False, **legacy: Any
) -> sql.CreateSource:
    """One that has the rows itself."""
    spec = LoadGeneratorSpec(generator=kind, legacy=LegacySpec(shape="single", **legacy))
    return sql.CreateSource(named(name), if_not_exists, None, spec, output=sql.Output())


def kafka(topic: str, output: sql.Output | None, name: str = "k", **legacy: Any) -> sql.CreateSource:
    told = LegacySpec(**{"shape": "single", **legacy})
    spec = KafkaSourceSpec(connection="broker", topic=topic, legacy=told)
    return sql.CreateSource(named(name), False, "broker", spec, output=output)


def new_source(name: str, kind: Generator = "auction") -> sql.CreateSource:
    return sql.CreateSource(named(name), False, None, LoadGeneratorSpec(generator=kind))


def table(name: str, source: str, *reference: str, **options: Any) -> sql.CreateTable:
    return sql.CreateTable(named(name), False, named(source), reference or None, "none", options=options)


def drop(name: str, kind: sql.Kind = "source", **more: bool) -> sql.DropItem:
    return sql.DropItem(kind, named(name), **more)


class OldStyle:
    """A catalog that allows the old syntax."""

    def __init__(self, catalog: Catalog, connections: Mapping[str, str] | None = None) -> None:
        self.catalog, self.connections = catalog, EnvConnections(connections or {})
        with catalog.write() as session:
            flags.set_value(session, flags.FORCE_TABLES, "false")

    def run(self, *statements: sql.Statement, dry_run: bool = False) -> list[Result]:
        """Each in a transaction of its own."""
        return list(run_transactions(self.catalog, [[s] for s in statements], self.connections, dry_run=dry_run))

    def together(self, *statements: sql.Statement) -> list[Result]:
        return list(run_transactions(self.catalog, [list(statements)], self.connections))

    def sql(self, text: str) -> list[Result]:
        return execute_script(self.catalog, text, self.connections)

    def rows(self, what: Any) -> list[dict[str, Any]]:
        (result,) = self.run(sql.Show(what))
        return result.rows or []

    def find(self, name: str) -> items.Item | None:
        found = named(name)
        with self.catalog.read() as session:
            return items.find(session, (found.schema, found.name))

    def source(self, name: str) -> items.SourceItem:
        found = self.find(name)
        assert isinstance(found, items.SourceItem)
        return found

    def table(self, name: str) -> items.TableItem:
        found = named(name)
        with self.catalog.read() as session:
            return items.find_table(session, (found.schema, found.name))

    def tables(self, source: str) -> list[items.TableItem]:
        with self.catalog.read() as session:
            return list(items.list_tables(session, self.source(source).id))

    def create_sql(self, name: str) -> str:
        found = self.find(name)
        assert found is not None
        with self.catalog.read() as session:
            return create_sql(session, found)

    def names(self) -> dict[str, str]:
        """All that can be seen in the list of sources, with its kind."""
        return {row["name"]: row["kind"] for row in self.rows("sources")}

    def tick(self, source: str, upper: Mapping[int, int]) -> Tick:
        """One tick to ``upper``, committed; what it would have read is not looked at."""
        found = self.source(source)
        store = CatalogTickStore(self.catalog, found.id)
        holder = store.claim(JobId("test"))
        tick = store.mint(holder, lower=store.load().upper, upper=Position(upper), incarnation=found.incarnation)
        store.commit(holder, tick.number, {member.table_id: Done() for member in store.members()}, {})
        return tick
