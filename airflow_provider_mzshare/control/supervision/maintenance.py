"""What is done now and then: ``since`` follows retention, what it has passed is removed, small files are merged.

Read holds whose holders are not heard of any more are dropped, the history of statuses is pruned, and files of journals
that count for nothing are removed. Compaction belongs to whoever writes a table: it is only asked for here. Nothing is
removed that a read which began within the last hour could need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import CollectionRow, SourceRow, SwapRow, TableRow
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.catalog.log.retention import advance_since
from airflow_provider_mzshare.control.catalog.log.status_history import prune_history
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.flags import retention_ms
from airflow_provider_mzshare.control.catalog.objects.hold_rows import prune_holds, standing_holds
from airflow_provider_mzshare.control.catalog.queries.reads import version_at
from airflow_provider_mzshare.control.supervision.journal_upkeep import remove_trimmed, sweep, trim_old
from airflow_provider_mzshare.core.ids import CollectionId, ItemId, journal_of
from airflow_provider_mzshare.core.ticklog.holds import Hold, oldest
from airflow_provider_mzshare.errors import MzShareError
from airflow_provider_mzshare.storage.collections.collection import Collection, collection_exists
from airflow_provider_mzshare.storage.collections.expiry import GRACE, Expiry, expire

_NO_SYNC = {"synchronize_session": False}


@dataclass(frozen=True)
class Maintained:
    """What was done for one table or journal. ``trouble`` says why it failed; the other ones were still done."""

    table: str
    since: int
    data_files: int = 0
    log_files: int = 0
    bytes: int = 0
    trouble: str = ""
    held_at: int | None = None
    """The time of its oldest read hold: ``since`` does not pass it."""
    dropped_holds: tuple[str, ...] = ()
    """Why each hold was dropped that this run has dropped."""


@dataclass(frozen=True)
class _Due:
    """A table whose past may go, and the versions that stay."""

    table_id: ItemId
    table: str
    since: int
    keep: tuple[tuple[CollectionId, int], ...]
    held_at: int | None = None
    dropped: tuple[str, ...] = ()


def maintain(
    catalog: Catalog,
    warehouse: str,
    *,
    only: ItemId | None = None,
    dry_run: bool = False,
    grace: timedelta = GRACE,
    now_ms: int | None = None,
) -> list[Maintained]:
    """:param grace: how long ``since`` must have stood where it was found before what is older goes."""
    now = wall_ms() if now_ms is None else now_ms
    with catalog.read() as session:
        sources = [s for s in items.list_sources(session) if only in (None, s.id)]
    done: list[Maintained] = []
    for source in sources:
        due = _prepare(catalog, source.id, now, round(grace.total_seconds() * 1000), dry_run)
        done += [_expire(one, warehouse, now, dry_run, grace) for one in due]
        done += _tidy_journal(catalog, source, warehouse, now, grace, dry_run)
    if not dry_run:
        with catalog.write() as session:
            before = now - retention_ms(session)
            prune_history(session, before)
            prune_holds(session, before)
    return done


def _prepare(catalog: Catalog, source_id: ItemId, now: int, grace_ms: int, dry_run: bool) -> list[_Due]:
    """Move ``since``, ask for compaction, and note where ``since`` stands: the next run removes what lies before."""
    dropped: Sequence[Hold] = ()
    with catalog.locked(source_id) as (session, state):
        if not dry_run:
            dropped = advance_since(session, state, now)
            asked = update(SourceRow).where(SourceRow.id == source_id)
            session.execute(asked.values(compaction_asked=SourceRow.compaction_asked + 1), execution_options=_NO_SYNC)
        due = [_due(session, table, now, grace_ms, dry_run) for table in items.list_tables(session, source_id)]
        held = oldest(standing_holds(session, source_id))
    return [_with_holds(one, held, dropped) for one in due]


def _with_holds(due: _Due, held: Mapping[ItemId, int], dropped: Sequence[Hold]) -> _Due:
    gone = tuple(f"{hold.name} at {hold.at}: {hold.why}" for hold in dropped if hold.table_id == due.table_id)
    return replace(due, held_at=held.get(due.table_id), dropped=gone)


def _due(session: Session, table: items.TableItem, now: int, grace_ms: int, dry_run: bool) -> _Due:
    noted = select(TableRow.since_noted, TableRow.since_noted_at).where(TableRow.id == table.id)
    since, noted_at = session.execute(noted).one()
    # While a backfill fills the table, only the backfill's app knows which files it needs.
    stood = since > 0 and now - noted_at >= grace_ms and table.backfill_id is None
    if not dry_run and (stood or since == 0):
        change = update(TableRow).where(TableRow.id == table.id).values(since_noted=table.since, since_noted_at=now)
        session.execute(change, execution_options=_NO_SYNC)
    if not dry_run and stood:
        # No read has used a replaced generation since then: the reconciler may now remove its folders.
        unread = delete(SwapRow).where(SwapRow.table_id == table.id, SwapRow.mz_timestamp <= since)
        session.execute(unread, execution_options=_NO_SYNC)
    keep = [(name, version_at(session, name, since)) for name in _collections(session, table)] if stood else []
    return _Due(table.id, table.display, table.since, tuple(keep))


def _collections(session: Session, table: items.TableItem) -> Sequence[CollectionId]:
    """Collections of the current generation. The reconciler removes the whole folders of older generations."""
    query = select(CollectionRow.id).where(
        CollectionRow.table_id == table.id, CollectionRow.generation == table.generation
    )
    return session.scalars(query).all()


def _expire(due: _Due, warehouse: str, now: int, dry_run: bool, grace: timedelta) -> Maintained:
    done = Maintained(due.table, due.since, held_at=due.held_at, dropped_holds=due.dropped)
    at = datetime.fromtimestamp(now / 1000, timezone.utc)
    for name, version in due.keep:
        try:
            if not collection_exists(warehouse, name):
                continue
            collection = Collection.open(warehouse, name)
            gone = expire(collection, keep_from_version=version, now=at, grace=grace, dry_run=dry_run)
        except (MzShareError, OSError) as error:
            return replace(done, trouble=error.line if isinstance(error, MzShareError) else str(error))
        done = _added(done, gone)
    return done


def _tidy_journal(
    catalog: Catalog, source: items.SourceItem, warehouse: str, now: int, grace: timedelta, dry_run: bool
) -> list[Maintained]:
    """Nothing where nothing was to be done."""
    if (journal := journal_of(source.incarnation)) is None:
        return []
    done, at = Maintained(f"journal of {source.display}", 0), datetime.fromtimestamp(now / 1000, timezone.utc)
    store = CatalogJournal(catalog, journal)
    try:
        if not dry_run:
            trim_old(catalog, source, store, now)
        trimmed = remove_trimmed(store, warehouse, grace=grace, dry_run=dry_run)
        swept = sweep(store, warehouse, now=at, dry_run=dry_run)
    except (MzShareError, OSError) as error:
        return [replace(done, trouble=error.line if isinstance(error, MzShareError) else str(error))]
    files = len(swept.files) + len(trimmed.files)
    return [replace(done, data_files=files, bytes=swept.bytes + trimmed.bytes)] if files else []


def _added(done: Maintained, gone: Expiry) -> Maintained:
    return replace(
        done,
        data_files=done.data_files + len(gone.data_files),
        log_files=done.log_files + len(gone.log_files),
        bytes=done.bytes + gone.bytes,
    )
