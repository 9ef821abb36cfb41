"""The schema's versions: which one a database has, whether it will do, and how it is brought up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from airflow_provider_mzshare.control.catalog.at_commit import listener
from airflow_provider_mzshare.control.catalog.database.databases import SCHEMA
from airflow_provider_mzshare.errors import CatalogMissing, CatalogOutdated, CatalogTooNew

REVISIONS = (
    "0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014",
    "0015", "0016", "0017", "0018", "0019", "0020", "0021", "0022",
)  # fmt: skip
"""All that this version knows, oldest first. Written out, so that opening a catalog does not load Alembic."""

HEAD = REVISIONS[-1]
VERSION_TABLE = "catalog_version"

_UPGRADE_LOCK = 0x6D7A7368
"""Postgres advisory lock: two upgrades at once become one after the other."""


def found_revision(connection: Connection) -> str | None:
    """The revision of the database, or None where no catalog is."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()
    return found


def check_revision(found: str | None, where: str) -> None:
    if found is None:
        raise CatalogMissing(where)
    if found not in REVISIONS:
        raise CatalogTooNew(found, HEAD)
    if found != HEAD:
        raise CatalogOutdated(found, HEAD)


def migrate(connection: Connection, to: str = HEAD) -> None:
    """Create or upgrade, inside the connection's transaction: all of it or nothing."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        _prepare_schema(connection)
    found = found_revision(connection)
    if found is not None and found not in REVISIONS:
        raise CatalogTooNew(found, HEAD)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if found == to:
        return
    # Views stand in the way of changes to what they show.
    listener().before_upgrade(connection)
    command.upgrade(config, to)
    if found_revision(connection) == HEAD:
        listener().after_upgrade(connection)


def _prepare_schema(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
    # CREATE SCHEMA IF NOT EXISTS would ask for the right to create even where the schema is there.
    if connection.execute(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}).scalar() is None:
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
