"""Puts the relations into the catalog's database, and takes them away before its tables change.

This happens when a catalog is upgraded: so a change of a relation needs a revision, if only an empty one.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from airflow_provider_mzshare.control.relations.activity import ACTIVITY
from airflow_provider_mzshare.control.relations.backfills import BACKFILLS
from airflow_provider_mzshare.control.relations.dialects import Dialect, Postgres, SQLite
from airflow_provider_mzshare.control.relations.exports import EXPORTS
from airflow_provider_mzshare.control.relations.holds import HOLDS
from airflow_provider_mzshare.control.relations.journals import JOURNALS
from airflow_provider_mzshare.control.relations.objects import OBJECTS
from airflow_provider_mzshare.control.relations.relation import Relation

RELATIONS: tuple[Relation, ...] = OBJECTS + EXPORTS + ACTIVITY + BACKFILLS + HOLDS + JOURNALS
BY_NAME = {relation.name: relation for relation in RELATIONS}
SCHEMAS = ("mz_catalog", "mz_internal")


def dialect_of(connection: Connection) -> Dialect:
    return Postgres() if connection.dialect.name == "postgresql" else SQLite()


def remove_relations(connection: Connection) -> None:
    """Drop all views whose names begin with ``mz_``: a later version may have had others than this one."""
    if connection.dialect.name == "postgresql":
        found = "SELECT schemaname, viewname FROM pg_views WHERE schemaname IN ('mz_catalog', 'mz_internal')"
        names = [f'"{row[0]}"."{row[1]}"' for row in connection.execute(text(found)) if row[1].startswith("mz_")]
    else:
        found = "SELECT name FROM sqlite_master WHERE type = 'view'"
        names = [f'"{row[0]}"' for row in connection.execute(text(found)) if row[0].startswith("mz_")]
    for name in names:
        connection.exec_driver_sql(f"DROP VIEW {name}")


def create_relations(connection: Connection) -> None:
    dialect = dialect_of(connection)
    if dialect.name == "postgresql":
        _ensure_schemas(connection)
    for relation in RELATIONS:
        connection.exec_driver_sql(_statement(relation, dialect))


def _ensure_schemas(connection: Connection) -> None:
    # As for our own schema: if a schema exists already, the right to create schemas is not needed.
    for schema in SCHEMAS:
        if connection.execute(text("SELECT to_regnamespace(:name)"), {"name": schema}).scalar() is None:
            connection.exec_driver_sql(f"CREATE SCHEMA {schema}")


def _statement(relation: Relation, dialect: Dialect) -> str:
    names = ", ".join(f'"{column.name}"' for column in relation.columns)
    query = relation.query(dialect)
    if dialect.name == "sqlite":
        return f"CREATE VIEW {relation.name} ({names}) AS {query}"
    typed = ", ".join(f'CAST(q."{column.name}" AS {column.type})' for column in relation.columns)
    return f"CREATE VIEW {relation.schema}.{relation.name} ({names}) AS SELECT {typed} FROM ({query}) AS q ({names})"
