"""Commits groups of ticks to the collections of members, which it keeps open. It runs no Spark job.

The base of both writers in ``writers``. They differ in what they find due, and in how they commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import pyarrow as pa

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Holder, Left, Outcome, Tick, Unindexed, Written
from airflow_provider_mzshare.core.ticklog.stores import Member, WriterStore
from airflow_provider_mzshare.errors import BadCollection, CatalogBehind, TransientError, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.collection import Collection, collection_exists, create_collection
from airflow_provider_mzshare.storage.collections.commit import CommitResult, Content, FileWritten, NewFiles, discard
from airflow_provider_mzshare.storage.collections.durability import sync_filesystem
from airflow_provider_mzshare.storage.collections.faults import StorageFault, check_mounted
from airflow_provider_mzshare.storage.collections.keyed import KeyEvents
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from airflow_provider_mzshare.storage.collections.vectors.state import IndexLate
from airflow_provider_mzshare.storage.crashpoints import crashpoint
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.results import MemberResult
from airflow_provider_mzshare.storage.fanout.writer import write_errors
from airflow_provider_mzshare.storage.writing.dues import Due, Standing, own_files
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from airflow_provider_mzshare.storage.writing.outcomes import counted_of, done, written_as
from airflow_provider_mzshare.storage.writing.settling import (
    Lanes,
    contradiction,
    error_rows,
    first_error,
    records_of,
    why_not,
)
from airflow_provider_mzshare.storage.writing.upkeep import Upkeep

MAX_KNOWN = 10_000


class MemberCommits(ABC):
    """:param root: the warehouse. :param place: of the source's records.
    :param states: what the app knows of rows that change. Whoever made them closes them.
    :param lanes: how many lanes the upstream has now; rarely asked.
    """

    MOST: ClassVar[int | None] = None
    """How many rows may be read for an index before a commit can be made; a member that needs more of them leaves."""

    def __init__(
        self,
        store: WriterStore,
        holder: Holder,
        *,
        source_id: ItemId,
        root: str,
        place: Place,
        states: KeyStates,
        lanes: Lanes,
    ) -> None:
        self._lanes = lanes
        self._store, self._holder, self._source_id, self._root = store, holder, source_id, root
        self._place = place
        self._open: dict[CollectionId, Collection] = {}
        self._columns: dict[CollectionId, pa.Schema] = {}
        """The columns that each collection had when it was last looked at."""
        self._committed: set[CollectionId] = set()
        """Collections whose newest commit may be this writer's own. The first commit is made even without rows, so that
        a late commit of an earlier app conflicts. A member that fails is removed: another app may write it then."""
        self._known: set[int] = set()
        self._last_written: Mapping[CollectionId, int] = {}
        self._states = states
        self._upkeep = Upkeep(root, lambda: store.advance_since(holder), store.note_damage, self._states)

    # ── what a kind of writer decides ─────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _standings(self, group: TickGroup, member: Member) -> Mapping[CollectionId, Standing] | Done:
        """What the member's collections hold of the group already; ``Done`` if they hold all of it."""

    @abstractmethod
    def _commit(
        self,
        group: TickGroup,
        due: Due,
        collection_id: CollectionId,
        content: Content,
        noted: Mapping[str, str],
    ) -> CommitResult: ...

    @abstractmethod
    def _is_before(self, group: TickGroup, due: Due, stored: int | None) -> bool:
        """Does a data collection that holds this time have the rows on which the group was planned? ``PlanAgain``, if
        it must be planned anew; False, if its commit says what is wrong, or that there is nothing to do."""

    @abstractmethod
    def _check_planned(self, member: Member) -> None:
        """Called before anything is put that was planned upon what the member's collections held. Raises if another
        writer may have begun by then to write them."""

    def begin(self, group: TickGroup, members: Sequence[Member]) -> None:
        """Called before a group is executed."""
        self.note_known(group.mz_timestamp)
        self.recall(members)
        if self._open or self._last_written:
            check_mounted(self._root)

    def keep(self, members: Sequence[Member]) -> None:
        """These are all that there are now: what is known of the rows of others is let go."""
        self._states.keep({member.data for member in members})

    def recall(self, members: Sequence[Member]) -> None:
        """Ask the catalog for the last commits of collections that are new to this writer, before they are opened.

        A table that was cut over has commits of its backfill's app.
        """
        both = {collection_id for member in members for collection_id in (member.data, member.errors)}
        if both - self._open.keys() - self._last_written.keys():
            self._last_written = self._store.last_written()

    # ── collections ───────────────────────────────────────────────────────────────────────────────────────────────────

    def plan(self, member: Member, *, data_after: int = 0, errors_after: int = 0) -> MemberPlan:
        return replace(
            member_plan(
                member.table_id,
                member.spec,
                place=self._place,
                hash_version=member.hash_version,
                data_path=collection_uri(self._root, member.data),
                errors_path=collection_uri(self._root, member.errors),
                visible=self._visible(member),
            ),
            data_after=data_after,
            errors_after=errors_after,
        )

    def _visible(self, member: Member) -> tuple[int, str] | None:
        """Of a table that begins with a snapshot: what of its ticks that has already."""
        snapshot = member.left_out
        return None if snapshot is None else (snapshot.known_from[self._place.only_lane], snapshot.seen)

    def open(self, member: Member) -> None:
        """Make the member's collections, or find them: a table that joined is readable, if empty."""
        plan = self.plan(member)
        for collection_id, schema, keys in (
            (member.data, data_schema(plan), plan.keys),
            (member.errors, errors_schema(self._place), ()),
        ):
            if collection_id not in self._open:
                vectors = member.spec.deletion_vectors
                self._open[collection_id] = self._opened(collection_id, schema, keys, vectors=vectors)
            if self._columns.get(collection_id) != schema:
                self._open[collection_id].widen(schema)
                self._columns[collection_id] = schema

    def _opened(
        self, collection_id: CollectionId, schema: pa.Schema, keys: Sequence[str], *, vectors: bool
    ) -> Collection:
        """A folder that was deleted, or restored from an old copy, has lost rows: nothing may be added to it."""
        if not self._last_written.get(collection_id) and not collection_exists(self._root, collection_id):
            create_collection(self._root, collection_id, schema, keys=keys, vectors=vectors)
        collection = Collection.open(self._root, collection_id)
        self._check_kept(collection, collection.stored_version())
        return collection

    def _check_kept(self, collection: Collection, stored: int | None) -> None:
        wanted = self._last_written.get(collection.collection_id, 0)
        if (stored or 0) < wanted:
            raise BadCollection(collection.collection_id, f"it has lost ticks: the catalog knows one at {wanted}")

    def check_log(self) -> None:
        """Raise CatalogBehind when any collection of the source holds a tick that the log does not know.

        A collection that cannot be read is ignored here: its table fails in its next tick.
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

    # ── a group ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def due(self, group: TickGroup, member: Member) -> Due | Done | Unindexed:
        """What has to be written for the member, unless it holds the group already, or has no index."""
        both = {member.errors, member.data}
        own = self._committed & both
        self._committed -= both
        self.open(member)
        standings = self._standings(group, member)
        if isinstance(standings, Done):
            self._committed |= own
            return standings
        if self.MOST is not None and not self._states.take(self._open[member.data]):
            return Unindexed()
        at = {collection_id: standing.after for collection_id, standing in standings.items()}
        plan = self.plan(member, data_after=at.get(member.data, 0), errors_after=at.get(member.errors, 0))
        return Due(member, plan, frozenset(both - own), standings)

    def commit(self, group: TickGroup, due: Due, files: MemberResult, written_at: float) -> Outcome:
        """Commit what the pass wrote. Raises if the member could not be written; ``Left`` if a bad record stops it, and
        ``Unindexed`` if its index turns out not to be there."""
        own = own_files(due, files, written_at)
        if files.error or files.first_error_at:
            # No commit will name what other tasks have written for it: it must not take space on a full disk.
            self._discard(own)
        if files.fault and files.error:
            raise StorageFault("the warehouse", self._root, files.fault, files.error)
        if files.error:
            raise TransientError(files.error)
        if files.first_error_at:
            return Left(f"{self._place.tell(files.first_error_at)} cannot be decoded: {files.first_error}")
        data = self._open[due.member.data]
        try:
            self._check_planned(due.member)
            with self._states.commits_to(data):
                return self._settle_and_commit(group, due, files, own, written_at)
        except IndexLate as late:
            self._discard(own)
            self._states.give_back(data, late)
            return Unindexed()
        except Exception:
            self._discard(own)
            raise

    def _settle_and_commit(
        self,
        group: TickGroup,
        due: Due,
        files: MemberResult,
        own: dict[CollectionId, list[FileWritten]],
        written_at: float,
    ) -> Done | Left:
        content, kept = self._content(due, own[due.member.data]), None
        if isinstance(content, KeyEvents) and self._is_open(group, due, content):
            if why := self._settle(group, due, content, files, own, written_at):
                self._discard(own)
                return Left(why)
            kept = content if content.kept(self._open[due.member.data]) is not None else None
        if kept:
            # Who commits errors first decides for all attempts which records are error rows: also that none is.
            due = replace(due, forced=due.forced | {due.member.errors})
        outcome = self._commit_both(group, due, content, files, own, kept)
        if isinstance(outcome, Left):
            self._discard(own)
        return outcome

    def _is_open(self, group: TickGroup, due: Due, events: KeyEvents) -> bool:
        """Data that holds the ticks is complete, and so are its errors."""
        if events.change is None or not events.files:
            return False
        return self._is_before(group, due, self._open[due.member.data].stored_version())

    def _settle(
        self,
        group: TickGroup,
        due: Due,
        events: KeyEvents,
        files: MemberResult,
        own: dict[CollectionId, list[FileWritten]],
        written_at: float,
    ) -> str | None:
        """Add the error rows that only the table's rows can tell, before errors are committed. Why it stops, if so."""
        data, plan = self._open[due.member.data], due.plan
        if why := why_not(events, data, self._place, self._lanes):
            return why
        found = error_rows(events, data, plan)
        if found is None:
            return None
        if plan.stop_on_error:
            return first_error(found, self._place)
        file = write_errors(plan, f"part-{group.number}-refused-", found)
        files.files["errors"].append(file)
        own[due.member.errors].append(FileWritten(file.path, file.size, file.stats, written_at))
        sync_filesystem(self._root)
        return None

    def _commit_both(
        self,
        group: TickGroup,
        due: Due,
        data: Content,
        files: MemberResult,
        own: dict[CollectionId, list[FileWritten]],
        kept: KeyEvents | None,
    ) -> Done | Left:
        """Errors before data. A collection whose commit was tried is no longer in ``own``.

        :param kept: events whose error rows depend on the table's rows.
        """
        written: list[Written] = []
        without_effect = 0
        own_commits: set[CollectionId] = set()
        for role, collection_id in (("errors", due.member.errors), ("data", due.member.data)):
            mine = own.pop(collection_id)
            content = NewFiles(mine) if role == "errors" else data
            try:
                result = self._commit(group, due, collection_id, content, counted_of(due.member, files, role))
            finally:
                if isinstance(content, KeyEvents):
                    discard(self._open[collection_id], mine)
            if role == "errors" and kept and (why := self._contradiction(due, kept, result)):
                return Left(why)
            # After somebody else's commit, our next commit is made even without rows: a third writer must conflict.
            if not result.already:
                own_commits.add(collection_id)
            written += due.standing(collection_id).found
            if result.version is not None:
                written.append(written_as(collection_id, result.version, result.metadata))
            elif role == "data":
                without_effect = records_of(data, files)
            if mine:
                self._upkeep.committed(self._open[collection_id])
            crashpoint("between_commits")
        self._committed |= own_commits
        return done(due.member, written, without_effect=without_effect)

    def _contradiction(self, due: Due, kept: KeyEvents, result: CommitResult) -> str | None:
        """Only another attempt's errors can say something else."""
        data, errors = due.member.data, due.member.errors
        if not result.already and due.standing(errors).after <= due.standing(data).after:
            return None
        return contradiction(kept, self._open[data], self._open[errors], self._place)

    def _content(self, due: Due, files: Sequence[FileWritten]) -> Content:
        """Rows as the pass wrote them; of a table whose rows change, events that are folded into its rows."""
        plan = due.plan
        if not plan.keys:
            return NewFiles(files)
        rows = self._states.rows_of(self._open[due.member.data], self.MOST)
        return KeyEvents(files, plan.events_schema, plan.keys, plan.keyed_envelope, plan.hash_version, rows)

    def _discard(self, files: Mapping[CollectionId, Sequence[FileWritten]]) -> None:
        for collection_id, written in files.items():
            discard(self._open[collection_id], written)

    def compact_all(self) -> None:
        """Maintenance asked for it. It is done during the next ticks, one collection after the other."""
        self._upkeep.compact_all(list(self._open))

    def tidy(self) -> None:
        """Called after each group."""
        for name, rewritten in self._upkeep.rewritten():
            collection = self._open.get(name)
            if collection is None or not self._states.put_rewritten(collection, rewritten, self.MOST):
                self._upkeep.postpone(name)
        self._upkeep.after_tick()

    def close(self) -> None:
        self._upkeep.close()

    def _metadata(self, first: Tick, last: Tick, member: Member) -> dict[str, str]:
        return {
            "mz_source": self._source_id,
            "mz_table": member.table_id,
            "mz_tick": str(last.number),
            "mz_lower": first.lower.to_json(),
            "mz_upper": last.upper.to_json(),
            "mz_epoch": str(self._holder.epoch),
            "mz_job": self._holder.job_id,
        }

    def _knows(self, mz_timestamp: int) -> bool:
        if mz_timestamp not in self._known:
            if not self._store.knows(mz_timestamp):
                return False
            self.note_known(mz_timestamp)
        return True

    def note_known(self, mz_timestamp: int) -> None:
        """Remember that the log has this tick. A catalog that was restored from an old copy stops the query at its next
        mint, and the new query asks again."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        self._known.add(mz_timestamp)
