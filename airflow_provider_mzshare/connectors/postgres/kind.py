"""Postgres as a kind of source: ``FROM POSTGRES CONNECTION c (PUBLICATION 'p')``."""

from __future__ import annotations

from typing import ClassVar

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kind import CHUNK_SETTINGS, SEGMENT_MODULES, ConnectorKind
from airflow_provider_mzshare.connectors.postgres.identity import Identity, slot_name
from airflow_provider_mzshare.connectors.postgres.place import PLACE
from airflow_provider_mzshare.connectors.postgres.specs import (
    PostgresExportDetails,
    PostgresSpec,
    PublishedTable,
    columns_of,
    text_only,
)
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import TableSpec

_FOLDER = "airflow_provider_mzshare.connectors.postgres"

PUBLICATION = Option(
    "PUBLICATION", "name", "a publication in single quotes", "publication", noun="a publication", required=True,
    about="the publication whose tables are offered; required",
)  # fmt: skip


class PostgresKind(ConnectorKind[PostgresSpec]):
    kind = "postgres"
    title = "Postgres"
    spec = PostgresSpec
    details = PostgresExportDetails
    connector = f"{_FOLDER}.connector:PostgresConnector"
    words = "POSTGRES"
    takes_connection = True
    options = (PUBLICATION,)
    relation = "tables"
    has_columns = True
    own_format = "postgres"
    own_envelope = "postgres"
    metadata: ClassVar[tuple[str, ...]] = ()
    conn_types = ("postgres",)
    packages = ("psycopg",)
    place = PLACE
    is_recorded = True
    leaves = "its replication slot"
    spark_settings = CHUNK_SETTINGS
    executor_modules: ClassVar[tuple[str, ...]] = (
        *SEGMENT_MODULES,
        *(
            f"{_FOLDER}.{name}"
            for name in ("batches", "datasource", "decoding", "lsn", "place", "relations", "snapshot_parts")
        ),
    )

    def left(self, incarnation: str) -> str:
        return f"replication slot {slot_name(Identity.read(incarnation).journal)}"

    def export(self, source: PostgresSpec, table: TableSpec, reference: ReferenceInfo) -> PostgresExportDetails:
        if not isinstance(reference, PublishedTable):
            raise TypeError("only tables of a publication can be read")
        return PostgresExportDetails(
            oid=reference.oid, identity=reference.identity, columns=reference.published, keys=reference.keys
        )

    def stored_reference(self, table: TableSpec) -> ReferenceInfo:
        made = table.details
        if not isinstance(made, PostgresExportDetails):
            return super().stored_reference(table)
        return PublishedTable(
            table.namespace,
            table.reference,
            columns_of(made.columns),
            made.keys,
            text_only=text_only(made.columns),
            oid=made.oid,
            identity=made.identity,
            published=made.columns,
        )


KIND = PostgresKind()
