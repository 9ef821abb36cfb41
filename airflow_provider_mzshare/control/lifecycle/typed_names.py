"""Items by the names users type. Changes nothing."""

from __future__ import annotations

import shlex

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.script import parse_name
from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.errors import StatementError, TerminalError, UnknownItem


def typed_name(text: str) -> QualifiedName:
    """``[schema.]name`` as in SQL: without quotes, upper case is folded."""
    try:
        return parse_name(arguments.text("a name", text))
    except StatementError:
        # The place in a statement means nothing to a user who typed a name.
        raise TerminalError(
            f'{text!r} is not a name; write [schema.]name, or "quoted"', hint="mzshare status"
        ) from None


def find_item(catalog: Catalog, text: str) -> items.SourceItem | items.TableItem:
    """The source or table of this name; the old-style name of a progress means its source."""
    name = typed_name(text)
    with catalog.read() as session:
        item = items.find(session, (name.schema, name.name))
        if isinstance(item, items.ProgressItem):
            return items.get_source_item(session, item.source_id)
    if item is None:
        raise TerminalError(f"there is no source or table {text!r}", hint="mzshare status")
    if isinstance(item, items.ViewItem):
        raise TerminalError(f"{text!r} is a view: nothing runs for it", hint=f"mzshare read {shlex.quote(text)}")
    return item


def find_table(catalog: Catalog, text: str) -> items.TableItem:
    name = typed_name(text)
    with catalog.read() as session:
        return items.find_table(session, (name.schema, name.name))


def find_source(catalog: Catalog, text: str) -> items.SourceItem:
    item = find_item(catalog, text)
    if not isinstance(item, items.SourceItem):
        raise UnknownItem("source", text, found=item.kind)
    return item
