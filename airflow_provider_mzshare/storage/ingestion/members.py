"""Commits ticks to the collections of members, which it keeps open between ticks. It runs no Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from airflow_provider_mzshare.errors import BadCollection, CatalogBehind, TransientError, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections import (
    Collection,
    collection_exists,
    collection_uri,
    create_collection,
)
from airflow_provider_mzshare.storage.commits import CommitResult, FileWritten, commit_tick
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.ingestion.upkeep import Upkeep
from airflow_provider_mzshare.storage.ticks.state import Done, Holder, Left, Outcome, Tick, Written
from airflow_provider_mzshare.storage.ticks.store import Member, TickStore
from airflow_provider_mzshare.types.ids import CollectionId, ItemId

MAX_KNOWN = 10_000


class MemberCommits:
    """:param root: the warehouse."""

    def __init__(self, store: TickStore, holder: Holder, *, source_id: ItemId, root: str) -> None:
        self._store, self._holder, self._source_id, self._root = store, holder, source_id, root
        self._open: dict[CollectionId, Collection] = {}
        self._committed: set[CollectionId] = set()
        """Collections this writer has committed to: the first tick is committed even without rows, so that a late
        commit of a predecessor conflicts."""
        self._known: set[int] = set()
        self._last_written: Mapping[CollectionId, int] | None = None
        self._upkeep = Upkeep(root, lambda: store.advance_since(holder))

    def plan(self, member: Member) -> MemberPlan:
        spec = member.spec
        return MemberPlan(
            table_id=member.table_id,
            format=spec.format,
            columns=tuple((c.name, c.type) for c in spec.columns),
            include=tuple((i.what, i.name) for i in spec.include),
            data_path=collection_uri(self._root, member.data),
            errors_path=collection_uri(self._root, member.errors),
            stop_on_error=spec.on_decode_error == "stop",
        )

    def open(self, member: Member) -> None:
        """Make the member's collections, or find them: a table that joined is readable, if empty."""
        for collection_id, schema in (
            (member.data, data_schema(self.plan(member))),
            (member.errors, errors_schema()),
        ):
            if collection_id not in self._open:
                self._open[collection_id] = self._opened(collection_id, schema)

    def _opened(self, collection_id: CollectionId, schema: pa.Schema) -> Collection:
        """A folder that was deleted or restored from a copy has lost rows: nothing may be written on top of that."""
        if self._last_written is None:
            self._last_written = self._store.last_written()
        wanted = self._last_written.get(collection_id, 0)
        if not wanted:
            create_collection(self._root, collection_id, schema)
        collection = Collection.open(self._root, collection_id)
        if (collection.stored_version() or 0) < wanted:
            raise BadCollection(collection_id, f"it has lost ticks: the catalog knows of one at {wanted}")
        return collection

    def check_log(self) -> None:
        """Raise CatalogBehind when any collection of the source holds a tick that the log does not know.

        A collection that cannot be read is its table's trouble, in that table's next tick.
        """
        self._known.clear()
        self._last_written = self._store.last_written()
        for collection_id in self._store.collections():
            with suppress(BadCollection, WarehouseUnreachable):
                stored = self._stored(collection_id)
                if stored is not None and not self._knows(stored):
                    raise CatalogBehind(self._source_id, collection_id, stored)

    def _stored(self, collection_id: CollectionId) -> int | None:
        if collection_id in self._open:
            return self._open[collection_id].stored_version()
        if collection_exists(self._root, collection_id):
            return Collection.open(self._root, collection_id).stored_version()
        return None

    def held(self, tick: Tick, member: Member) -> Done | None:
        """How the member ended, if it holds the tick already.

        Errors are committed before data: data that holds the tick means that the member is done.
        """
        data = self._commit(tick, member, member.data, (), noted={})
        if not data.already:
            return None
        errors = self._commit(tick, member, member.errors, (), noted={})
        return _done({member.errors: errors, member.data: data}, member)

    def commit(self, tick: Tick, member: Member, files: MemberResult, written_at: float) -> Outcome:
        """Commit what the pass wrote; a member that could not be written raises, one that is to stop leaves."""
        if files.error:
            raise TransientError(files.error)
        if files.first_error_at:
            partition, offset = files.first_error_at
            return Left(f"partition {partition}, offset {offset} cannot be decoded: {files.first_error}")
        results = {}
        for role, collection_id in (("errors", member.errors), ("data", member.data)):
            own = [FileWritten(f.path, f.size, f.stats, written_at) for f in files.files[role]]
            results[collection_id] = self._commit(
                tick,
                member,
                collection_id,
                own,
                noted={"mz_rows": str(files.rows(role)), "mz_hash": f"{files.hash(role):032x}"},
                force=tick.attempts > 1 or collection_id not in self._committed,
            )
            self._committed.add(collection_id)
            if own:
                self._upkeep.committed(collection_id)
            crashpoint("between_commits")
        return _done(results, member)

    def tidy(self) -> None:
        """After a tick."""
        self._upkeep.after_tick()

    def close(self) -> None:
        self._upkeep.close()

    def _commit(
        self,
        tick: Tick,
        member: Member,
        collection_id: CollectionId,
        files: Sequence[FileWritten],
        *,
        noted: Mapping[str, str],
        force: bool = False,
    ) -> CommitResult:
        return commit_tick(
            self._open[collection_id],
            mz_timestamp=tick.mz_timestamp,
            files=files,
            metadata={
                "mz_source": self._source_id,
                "mz_table": member.table_id,
                "mz_tick": str(tick.number),
                "mz_lower": tick.lower.to_json(),
                "mz_upper": tick.upper.to_json(),
                "mz_epoch": str(self._holder.epoch),
                "mz_job": self._holder.job_id,
                **noted,
            },
            knows=self._knows,
            force=force,
            repaired=tick.repaired,
        )

    def _knows(self, mz_timestamp: int) -> bool:
        if mz_timestamp not in self._known:
            if not self._store.knows(mz_timestamp):
                return False
            self.note_known(mz_timestamp)
        return True

    def note_known(self, mz_timestamp: int) -> None:
        """Asked anew at every start of the query: a catalog restored from a copy stops the query at its next mint."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        self._known.add(mz_timestamp)


def _done(results: Mapping[CollectionId, CommitResult], member: Member) -> Done:
    """Rows and hashes as the log entries say them: after a replay this is what is there, not what was read again."""
    written = {
        collection_id: Written(
            collection_id, result.version, int(result.metadata["mz_rows"]), result.metadata["mz_hash"]
        )
        for collection_id, result in results.items()
        if result.version is not None
    }
    return Done(
        written=tuple(written.values()),
        rows=written[member.data].rows if member.data in written else 0,
        errors=written[member.errors].rows if member.errors in written else 0,
    )
