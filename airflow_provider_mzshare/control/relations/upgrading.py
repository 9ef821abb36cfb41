"""The relations during an upgrade of the catalog: dropped while its tables change, then created and filled again."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.relations.create_sql import PrintItem, refresh_create_sql
from airflow_provider_mzshare.control.relations.install import create_relations, remove_relations
from airflow_provider_mzshare.control.relations.statuses import note_statuses


def prepare_relations(connection: Connection) -> None:
    remove_relations(connection)


def restore_relations(connection: Connection, print_item: PrintItem) -> None:
    """Fill in what the relations show of existing objects, in the same transaction."""
    create_relations(connection)
    with Session(connection) as session:
        sources = session.scalars(select(SourceRow.id).where(SourceRow.status != "dropped")).all()
        note_statuses(session, {*refresh_create_sql(session, print_item), *sources})
