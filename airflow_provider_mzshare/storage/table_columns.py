"""The columns of a table, in the order in which they are stored."""

from __future__ import annotations

from airflow_provider_mzshare.core.schema import SYSTEM_COLUMNS, Column
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.storage.writing.member_plans import member_plan


def user_columns(spec: TableSpec) -> tuple[Column, ...]:
    """Values, then what is included of the record."""
    plan = member_plan("", spec)
    return tuple(Column(*column) for column in plan.value_columns() + plan.include_columns())


def all_columns(spec: TableSpec) -> tuple[Column, ...]:
    return user_columns(spec) + tuple(Column(*column) for column in SYSTEM_COLUMNS)
