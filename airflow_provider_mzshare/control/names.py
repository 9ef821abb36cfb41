"""Items by the names users type. Changes nothing."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog import Catalog, items
from airflow_provider_mzshare.control.sql.statements import parse_name
from airflow_provider_mzshare.errors import TerminalError, UnknownItem


def find_item(catalog: Catalog, text: str) -> items.SourceItem | items.TableItem:
    """``[schema.]name`` as in SQL: without quotes, upper case is folded."""
    name = parse_name(text)
    with catalog.read() as session:
        item = items.find(session, (name.schema, name.name))
    if item is None:
        raise TerminalError(f"there is no source or table {text!r}", hint="mzshare status")
    return item


def find_source(catalog: Catalog, text: str) -> items.SourceItem:
    item = find_item(catalog, text)
    if not isinstance(item, items.SourceItem):
        raise UnknownItem("source", text)
    return item
