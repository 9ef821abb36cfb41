"""Statements that make items, kept as SHOW CREATE prints them, so that a relation can show what no view could print.

Called at the end of every transaction that changes definitions (``catalog.at_commit``). It finds out what has
changed: after a rename of a source, the statements of all items that name it change. The function that prints an item
belongs to ``statements``, which may import this package and not the reverse: so it is a parameter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.batches import batches
from airflow_provider_mzshare.control.catalog.database.models import ItemRow, SourceRow, TableRow
from airflow_provider_mzshare.control.catalog.database.object_models import (
    DependencyRow,
    OutputRow,
    ProgressRow,
    ViewRow,
)
from airflow_provider_mzshare.control.catalog.database.relation_models import DefinitionRow
from airflow_provider_mzshare.control.catalog.objects.lookup import Item, SourceItem, TableItem
from airflow_provider_mzshare.control.catalog.objects.lookup_many import get_items, get_source_items
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import KindNotLoaded, UnknownKind

Facts = tuple[str | None, ...]
"""The stored values of an item itself that its statement may show."""

PrintItem = Callable[[Session, Item, Mapping[ItemId, SourceItem]], str]
"""Prints an item as the statement that creates it. Sources are given if they were looked up already."""


def refresh_create_sql(session: Session, print_item: PrintItem, item_ids: Collection[ItemId] = ()) -> set[ItemId]:
    """Print the statements of all items whose facts have changed since they were printed. Returns these items.

    :param item_ids: print these in any case.
    """
    facts, related = _facts(session), _related(session)
    printed = {row.id: row.fingerprint for row in session.execute(select(DefinitionRow.id, DefinitionRow.fingerprint))}
    now = {item_id: _fingerprint(item_id, facts, related) for item_id in facts if facts[item_id][0] != "output"}
    changed = {item_id for item_id, fingerprint in now.items() if printed.get(item_id) != fingerprint}
    changed |= {item_id for item_id in item_ids if item_id in now}
    gone = printed.keys() - now.keys()
    texts = _texts(session, print_item, changed) if changed else {}
    _remove(session, texts.keys() | gone)
    if texts:
        rows = [{"id": i, "create_sql": f"{texts[i]};", "fingerprint": now[i]} for i in sorted(texts)]
        session.execute(insert(DefinitionRow), rows)
    return changed | gone


def _texts(session: Session, print_item: PrintItem, item_ids: Collection[ItemId]) -> Mapping[ItemId, str]:
    found = get_items(session, item_ids)
    of = {item.source_id for item in found.values() if isinstance(item, TableItem)}
    sources = get_source_items(session, of)
    texts: dict[ItemId, str] = {}
    for item_id, item in found.items():
        # If the kind of an item is not installed here, the item keeps the text that another machine printed.
        with suppress(UnknownKind, KindNotLoaded):
            texts[item_id] = print_item(session, item, sources)
    return texts


def _remove(session: Session, item_ids: Iterable[ItemId]) -> None:
    for some in batches(item_ids):
        stale = delete(DefinitionRow).where(DefinitionRow.id.in_(some))
        session.execute(stale, execution_options={"synchronize_session": False})


# ── what a statement is printed from ──────────────────────────────────────────────────────────────────────────────────


def _facts(session: Session) -> Mapping[ItemId, Facts]:
    """Of all that is not dropped: one look at the whole, since anything may name anything."""
    query = (
        select(
            ItemRow.id, ItemRow.kind, ItemRow.schema_name, ItemRow.name, SourceRow.spec, SourceRow.settings,
            TableRow.spec, ViewRow.query,
        )
        .outerjoin(SourceRow, SourceRow.id == ItemRow.id)
        .outerjoin(TableRow, TableRow.id == ItemRow.id)
        .outerjoin(ViewRow, ViewRow.id == ItemRow.id)
        .where(ItemRow.dropped_at.is_(None))
    )  # fmt: skip
    return {row[0]: tuple(row[1:]) for row in session.execute(query)}


def _related(session: Session) -> Mapping[ItemId, Sequence[ItemId]]:
    """The other items that an item's statement may mention: its source, its outputs, what it reads."""
    pairs = [
        *session.execute(select(TableRow.id, TableRow.source_id).where(TableRow.status != "dropped")),
        *session.execute(select(ProgressRow.id, ProgressRow.source_id)),
        *session.execute(select(DependencyRow.object_id, DependencyRow.referenced_id)),
        *session.execute(select(OutputRow.source_id, OutputRow.table_id)),
        *session.execute(select(ProgressRow.source_id, ProgressRow.id)),
        *session.execute(
            select(TableRow.source_id, TableRow.id)
            .join(ItemRow, ItemRow.id == TableRow.id)
            .where(ItemRow.kind == "subsource", TableRow.status != "dropped")
        ),
    ]
    related: dict[ItemId, list[ItemId]] = defaultdict(list)
    for item_id, other in pairs:
        related[item_id].append(other)
    return related


def _fingerprint(item_id: ItemId, facts: Mapping[ItemId, Facts], related: Mapping[ItemId, Sequence[ItemId]]) -> str:
    """Covers the item, related items and theirs: the name of an output is that of its source."""
    near = {item_id, *related.get(item_id, ())}
    around = near | {other for one in near for other in related.get(one, ())}
    stated = [(one, facts.get(one)) for one in sorted(around)]
    return blake2b(repr(stated).encode(), digest_size=16).hexdigest()
