"""Runs the migrations on the connection it is given, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from airflow_provider_mzshare.control.catalog.database.models import TableRow
from airflow_provider_mzshare.control.catalog.database.schema_versions import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=TableRow.metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
