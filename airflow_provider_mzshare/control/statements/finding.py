"""The object a statement means, of the kind it says, or one clear error. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.objects.schemas import Bearer, Schema, find_schema
from airflow_provider_mzshare.control.definition_errors import UnknownSchema, run_sql
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote
from airflow_provider_mzshare.control.statements.answers import name_pair
from airflow_provider_mzshare.control.statements.reserved_names import check_schema
from airflow_provider_mzshare.errors import TerminalError, UnknownItem

KINDS: dict[str, tuple[str, ...]] = {
    "source": ("source", "subsource", "progress"),
    "table": ("table",),
    "view": ("view",),
}
"""The kinds of items that a word in a statement means. SOURCE includes subsources and progress names."""


def existing(session: Session, kind: str | None, name: QualifiedName) -> items.Item:
    """:param kind: the word that was written; None when there was none."""
    return expected(kind, name, items.find(session, name_pair(name)))


def expected(kind: str | None, name: QualifiedName, item: items.Item | None) -> items.Item:
    """What was found under the name, if it is of the kind that was written."""
    if item is None or (kind is not None and item.kind not in KINDS[kind]):
        raise unknown(kind, name, item)
    return item


def unknown(kind: str | None, name: QualifiedName, found: items.Item | None) -> TerminalError:
    if kind == "view" and found is None:
        return TerminalError(f"view {str(name)!r} does not exist", hint=run_sql("SHOW VIEWS"))
    return UnknownItem(kind, str(name), found.kind if found else None)


def existing_schema(session: Session, name: str) -> Schema:
    """A schema of a user; our own schemas cannot be changed."""
    check_schema(name)
    schema = find_schema(session, name)
    if schema is None:
        raise UnknownSchema(quote(name))
    return schema


def bearer_of(item: items.Item) -> Bearer:
    return Bearer(item.id, item.kind, item.name)


def told(held: Sequence[Bearer]) -> list[str]:
    """Each as its kind and its name, oldest first."""
    shown = sorted((item for item in held if item.kind != "output"), key=lambda item: int(item.id[1:]))
    return [f"{item.kind} {display_name(item.name)}" for item in shown]
