"""Statements against a catalog and a broker, as the command line runs them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.run import execute_script
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Done, Left, Outcome, Tick
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka


class Session:
    """A catalog and the connections ``broker`` and ``nowhere``; without a broker, both lead nowhere."""

    def __init__(self, url: str, kafka: EmbeddedKafka | None = None) -> None:
        self.catalog = Catalog(url)
        self.catalog.upgrade()
        servers = {"BROKER": kafka.bootstrap if kafka else "127.0.0.1:9", "NOWHERE": "127.0.0.1:9"}
        self.connections = EnvConnections(
            {
                f"AIRFLOW_CONN_{name}": json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": server}})
                for name, server in servers.items()
            }
        )

    def run(self, text: str, *, dry_run: bool = False) -> list[str]:
        return [r.message for r in execute_script(self.catalog, text, self.connections, dry_run=dry_run)]

    def rows(self, text: str) -> list[dict[str, object]]:
        (result,) = execute_script(self.catalog, text, self.connections)
        assert result.rows is not None
        return result.rows

    def names(self) -> list[str]:
        with self.catalog.read() as session:
            return [i.display for i in (*items.list_sources(session), *items.list_tables(session))]

    def source(self, name: str = "s") -> items.SourceItem:
        with self.catalog.read() as session:
            return items.find_source(session, ("public", name))

    def results(self, text: str, *, dry_run: bool = False) -> list[Result]:
        return execute_script(self.catalog, text, self.connections, dry_run=dry_run)

    def table(self, name: str = "t") -> items.TableItem:
        with self.catalog.read() as session:
            return items.find_table(session, ("public", name))

    def tick(self, upper: Mapping[int, int], *, source: str = "s", fail: tuple[str, ...] = ()) -> Tick:
        """One tick to ``upper``, committed; the tables of ``fail`` leave by it."""
        found = self.source(source)
        store = CatalogTickStore(self.catalog, found.id)
        holder = store.claim(JobId("test"))
        tick = store.mint(holder, lower=store.load().upper, upper=Position(upper), incarnation=found.incarnation)
        outcomes: dict[str, Outcome] = {
            member.table_id: Left("the disk is full") if member.name in fail else Done() for member in store.members()
        }
        store.commit(holder, tick.number, outcomes, {})
        return tick


def create_source(topic: str, name: str = "s", *, connection: str = "broker", more: str = "") -> str:
    return f"CREATE SOURCE {name} FROM KAFKA CONNECTION {connection} (TOPIC '{topic}'{more});"
