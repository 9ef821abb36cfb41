"""The columns of a table, in the order in which they are stored."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.core.arrow_types import arrow_schema
from airflow_provider_mzshare.core.schema import HASH_VERSION, Column, system_columns
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.storage.writing.member_plans import member_plan


def user_columns(spec: TableSpec) -> tuple[Column, ...]:
    """Values, then what is included of the record; the same whatever the place."""
    plan = member_plan("", spec, place=PARTITIONED, hash_version=HASH_VERSION)
    return tuple(Column(*column) for column in plan.value_columns() + plan.include_columns())


def all_columns(spec: TableSpec, place: Place) -> tuple[Column, ...]:
    """:param place: of the source's records."""
    return user_columns(spec) + tuple(Column(*column) for column in system_columns(place.stored))


def rows_schema(spec: TableSpec, place: Place) -> pa.Schema:
    """The same, as Arrow's."""
    return arrow_schema(tuple((column.name, column.type) for column in all_columns(spec, place)))
