"""What statements answer: their results as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.table_plans import TablePlan
from airflow_provider_mzshare.control.sql.names import QualifiedName


@dataclass(frozen=True)
class Result:
    """What one statement did (``message``) or answered (``columns`` and ``rows``)."""

    command: str
    name: str | None = None
    id: str | None = None
    message: str = ""
    columns: tuple[str, ...] = ()
    rows: list[dict[str, Any]] | None = None
    plan: TablePlan | None = None
    """For a statement that creates or resumes a table: the plan for it and the other tables of its transaction."""


def done(command: str, name: QualifiedName | str, item_id: str | None, dry_run: bool, note: str = "") -> Result:
    """The result of a statement that changed something, or would have. ``name`` is written as in SQL."""
    remarks = ", ".join(filter(None, (note, "dry run" if dry_run else "")))
    message = " ".join(filter(None, (command, str(name), item_id, f"({remarks})" if remarks else "")))
    return Result(command, str(name), item_id, message)


def name_pair(name: QualifiedName) -> items.Name:
    return (name.schema, name.name)


def full_name(name: items.Name) -> str:
    """With its schema, as it is written in SQL: how statements answer."""
    return str(QualifiedName(*name))
