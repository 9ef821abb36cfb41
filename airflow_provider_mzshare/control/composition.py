"""The catalog put together with who follows its changes: what apps, commands and hooks open.

Stands above relations and statements, so that the catalog below them need not know them.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.at_commit import listen
from airflow_provider_mzshare.control.relations.create_sql import PrintItem, refresh_create_sql
from airflow_provider_mzshare.control.relations.statuses import note_statuses
from airflow_provider_mzshare.control.relations.upgrading import prepare_relations, restore_relations
from airflow_provider_mzshare.core.ids import ItemId, JobId


class _Relations:
    """Printed statements, the history of statuses and the views over both follow each transaction."""

    def definitions_changed(self, session: Session) -> Collection[ItemId]:
        return refresh_create_sql(session, _printer())

    def statuses_changed(self, session: Session, items: Collection[ItemId], jobs: Collection[JobId]) -> None:
        note_statuses(session, items, jobs)

    def before_upgrade(self, connection: Connection) -> None:
        prepare_relations(connection)

    def after_upgrade(self, connection: Connection) -> None:
        restore_relations(connection, _printer())


def _printer() -> PrintItem:
    """Statements are loaded by those who change definitions: an app does not, and would start half a second later."""
    from airflow_provider_mzshare.control.statements.handlers.show import create_sql

    return create_sql


listen(_Relations())


def open_catalog(url: str) -> Catalog:
    """:param url: ``sqlite:///path`` or ``postgresql+psycopg://user@host/database``."""
    return Catalog(url)
