"""Which sources a run is about: one by name or id, those that match a pattern, or all. Changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sqlalchemy import select
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.catalog.objects.upgrades import kept_definitions, last_migration
from airflow_provider_mzshare.control.definition_errors import NothingToMigrate
from airflow_provider_mzshare.control.lifecycle.typed_names import typed_name
from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA
from airflow_provider_mzshare.control.upgrade.plan import Action
from airflow_provider_mzshare.core.ids import ItemId, is_item_id

_SHOW_SOURCES = "mzshare sql 'SHOW SOURCES'"


@dataclass(frozen=True)
class Wanted:
    """Exactly one of these. ``pattern`` has ``*``, ``?`` and ``[…]``, and is matched with ``schema.name`` or, in the
    schema public, with the name alone; names as they are, without quotes."""

    source: str | None = None
    pattern: str | None = None
    everything: bool = False

    def check(self) -> None:
        given = [bool(self.source), bool(self.pattern), self.everything]
        if sum(given) != 1:
            raise NothingToMigrate("name one source, or a pattern, or all", hint="mzshare migrate --all")


def choose(session: Session, wanted: Wanted, action: Action) -> Sequence[ItemId]:
    """Oldest first. A source that is named is taken as it is; otherwise those that the action applies to.

    For ``migrate`` these include sources that are migrated already, so that a resumed run reports all it has done.
    """
    wanted.check()
    if wanted.source:
        return [_named(session, wanted.source)]
    fitting = _migrated(session)
    if action == "migrate":
        fitting = sorted({*fitting, *_legacy(session)}, key=lambda one: int(one[1:]))
    if wanted.everything:
        return fitting
    return [one for one in fitting if _matches(session, one, wanted.pattern or "")]


def _legacy(session: Session) -> list[ItemId]:
    return [source.id for source in lookup.list_sources(session) if source.spec.legacy is not None]


def _migrated(session: Session) -> list[ItemId]:
    """Sources that were migrated, and neither finalized nor dropped since."""
    query = (
        select(MigrationRow.source_id)
        .join(ItemRow, ItemRow.id == MigrationRow.source_id)
        .where(MigrationRow.state == "migrated", ItemRow.dropped_at.is_(None))
        .order_by(ItemRow.number)
    )
    return list(session.scalars(query))


def _matches(session: Session, source_id: ItemId, pattern: str) -> bool:
    """Match by the present name, or by the name before the migration."""
    names = {lookup.get_source_item(session, source_id).name}
    if (row := last_migration(session, source_id)) is not None:
        names.add(kept_definitions(row)[0].source.name)
    return any(fnmatchcase(text, pattern) for name in names for text in _texts(name))


def _texts(name: Name) -> list[str]:
    schema, plain = name
    return [f"{schema}.{plain}", *([plain] if schema == DEFAULT_SCHEMA else [])]


def _named(session: Session, text: str) -> ItemId:
    """Find a source by its name or id, or by its table's name, which after a migration is the source's old name."""
    name = typed_name(text)
    item = lookup.find(session, (name.schema, name.name))
    if item is None and is_item_id(text) and session.get(ItemRow, text) is not None:
        item = lookup.get_item(session, ItemId(text))
    if item is None:
        raise NothingToMigrate(f"there is no source {text!r}", hint=_SHOW_SOURCES)
    if isinstance(item, lookup.SourceItem):
        return item.id
    if isinstance(item, lookup.ViewItem):
        raise NothingToMigrate(f"{text!r} is a view: name a source", hint=_SHOW_SOURCES)
    if isinstance(item, lookup.TableItem) and item.kind == "subsource":
        raise _not_a_source(session, text, item, "a subsource: migrate its source instead")
    if isinstance(item, lookup.TableItem) and lookup.get_source_item(session, item.source_id).spec.legacy is not None:
        raise _not_a_source(session, text, item, "a table already: it needs no migration")
    return item.source_id


def _not_a_source(session: Session, text: str, item: lookup.TableItem, what: str) -> NothingToMigrate:
    source = lookup.get_source_item(session, item.source_id).display
    return NothingToMigrate(f"{text!r} is {what}", hint=f"mzshare migrate {shlex.quote(source)}")
