"""The two kinds of writers: an ingestion app's and a backfill's. Both write exactly once, whoever else tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.ticklog.group import TickGroup
from airflow_provider_mzshare.core.ticklog.state import Done, Generation, Tick, Written
from airflow_provider_mzshare.core.ticklog.stores import BackfillStore, Member
from airflow_provider_mzshare.errors import CatalogBehind, GroupTooShort, PlanAgain
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.commit import (
    NOTHING,
    CommitResult,
    Content,
    commit_group,
    commit_tick,
)
from airflow_provider_mzshare.storage.writing.dues import Due, Standing
from airflow_provider_mzshare.storage.writing.key_states import FEW_ROWS
from airflow_provider_mzshare.storage.writing.member_commits import MemberCommits
from airflow_provider_mzshare.storage.writing.outcomes import counted, done, written_as


class TickCommits(MemberCommits):
    """The writer of an ingestion app: one tick at a time, of which a collection holds all or nothing.

    All members of a tick wait for each other. So none of them waits for an index.
    """

    MOST = FEW_ROWS

    def _standings(self, group: TickGroup, member: Member) -> Mapping[CollectionId, Standing] | Done:
        """Only a tick that was begun before can be in a collection already.

        Errors are committed before data: data that holds the tick means that the member is done.
        """
        tick = group.last
        if tick.attempts <= 1 and not tick.repaired:
            return {}
        data = self._make_hold(tick, member, member.data)
        if not data.already:
            return {}
        # An earlier app may be late with error rows whose records are gone upstream by now: its commit must conflict.
        errors = self._make_hold(tick, member, member.errors, noted=counted(member), force=not tick.repaired)
        results = {member.errors: errors, member.data: data}
        return done(member, (written_as(c, r.version, r.metadata) for c, r in results.items() if r.version is not None))

    def _is_before(self, group: TickGroup, due: Due, stored: int | None) -> bool:
        return stored is None or stored < group.mz_timestamp

    def _check_planned(self, member: Member) -> None:
        """Nothing: only the lease's holder begins a tick. Whoever begins it again commits it in any case, even without
        rows, and its time refuses every later commit of it."""

    def _commit(
        self,
        group: TickGroup,
        due: Due,
        collection_id: CollectionId,
        content: Content,
        noted: Mapping[str, str],
    ) -> CommitResult:
        force = group.last.attempts > 1 or collection_id in due.forced
        return self._make_hold(group.last, due.member, collection_id, content, noted, force=force)

    def _make_hold(
        self,
        tick: Tick,
        member: Member,
        collection_id: CollectionId,
        content: Content = NOTHING,
        noted: Mapping[str, str] = {},
        *,
        force: bool = False,
    ) -> CommitResult:
        return commit_tick(
            self._open[collection_id],
            mz_timestamp=tick.mz_timestamp,
            content=content,
            metadata={**self._metadata(tick, tick, member), **noted},
            knows=self._knows,
            force=force,
            repaired=tick.repaired,
        )


class _Plans:
    """The members of one group whose collections were looked at, and those of whom the catalog was asked after that.

    It is asked once: all members are planned before the first is put. Only errors that are sealed are put sooner.
    """

    def __init__(self) -> None:
        self._made: set[Generation] = set()
        self._checked: frozenset[Generation] = frozenset()
        self._asking = Lock()

    def add(self, member: Member) -> None:
        self._made.add((member.table_id, member.generation))

    def check(self, member: Member, ask: Callable[[frozenset[Generation]], None]) -> None:
        """Members are put by several threads."""
        with self._asking:
            if (member.table_id, member.generation) not in self._checked:
                made = frozenset(self._made)
                ask(made)
                self._checked = made


class GroupCommits(MemberCommits):
    """The writer of a backfill: many ticks at a time, each group on top of what a collection holds by then.

    A commit holds exactly the ticks after the one that the collection held when the group was planned. So groups need
    not be the same ones after a crash: what is there is left out, and what the catalog has not heard of is reported.
    """

    _store: BackfillStore
    _plans: _Plans

    def begin(self, group: TickGroup, members: Sequence[Member]) -> None:
        super().begin(group, members)
        self._plans = _Plans()

    def _check_planned(self, member: Member) -> None:
        self._plans.check(member, lambda planned: self._store.check_planned(self._holder, planned))

    def recall(self, members: Sequence[Member]) -> None:
        self._last_written = self._store.last_written()

    def _standings(self, group: TickGroup, member: Member) -> Mapping[CollectionId, Standing] | Done:
        """Errors are committed before data. So the data is looked at first: the errors are at least as far."""
        data = self._standing(group, self._open[member.data])
        errors = self._standing(group, self._open[member.errors])
        self._plans.add(member)
        if data.after == group.number:
            return done(member, (*errors.found, *self._sealed(group, member, errors), *data.found))
        # Errors without rows get no commit: the errors are complete for all ticks that the data has.
        return {member.data: data, member.errors: replace(errors, after=max(errors.after, data.after))}

    def _sealed(self, group: TickGroup, member: Member, errors: Standing) -> tuple[Written, ...]:
        """The data holds the group. An earlier app may be late with error rows whose records are gone upstream by now:
        an empty commit to the errors makes its commit conflict."""
        if errors.after == group.number:
            return ()
        self._check_planned(member)
        upto = replace(errors, after=group.number - 1)
        due = Due(member, self.plan(member), frozenset({member.errors}), {member.errors: upto})
        result = self._commit(group, due, member.errors, NOTHING, counted(member))
        if result.version is None:
            return ()
        return (written_as(member.errors, result.version, result.metadata),)

    def _standing(self, group: TickGroup, collection: Collection) -> Standing:
        stored = collection.stored_version()
        self._check_kept(collection, stored)
        if stored is None:
            return Standing()
        return Standing(stored, self._complete_to(group, collection, stored), self._found(collection, stored))

    def _complete_to(self, group: TickGroup, collection: Collection, stored: int) -> int:
        """The tick of the group that the collection holds; 0 when it holds an earlier one."""
        inside = group.at(stored)
        if inside:
            return inside.number
        if group.first_timestamp < stored < group.mz_timestamp or not self._knows(stored):
            raise CatalogBehind(self._source_id, collection.collection_id, stored)
        if stored < group.first_timestamp:
            return 0
        commit = collection.find_tick(stored)
        raise GroupTooShort(collection.collection_id, int(commit.metadata["mz_tick"]) if commit else group.number + 1)

    def _found(self, collection: Collection, stored: int) -> tuple[Written, ...]:
        noted = self._last_written.get(collection.collection_id, 0)
        commits = collection.ticks_after(noted) if stored > noted else []
        return tuple(written_as(collection.collection_id, commit.version, commit.metadata) for commit in commits)

    def _is_before(self, group: TickGroup, due: Due, stored: int | None) -> bool:
        planned = due.standing(due.member.data).stored
        if stored != planned:
            raise PlanAgain(due.member.data, planned, stored)
        return True

    def _commit(
        self,
        group: TickGroup,
        due: Due,
        collection_id: CollectionId,
        content: Content,
        noted: Mapping[str, str],
    ) -> CommitResult:
        standing = due.standing(collection_id)
        if standing.stored == group.mz_timestamp:
            return CommitResult(None, already=True)
        first = group.after(standing.after)
        return commit_group(
            self._open[collection_id],
            planned=standing.stored,
            mz_timestamp=group.mz_timestamp,
            content=content,
            metadata={
                **self._metadata(first, group.last, due.member),
                "mz_first_tick": str(first.number),
                "mz_first_timestamp": str(first.mz_timestamp),
                "mz_last_lower": group.last.lower.to_json(),
                **noted,
            },
            force=collection_id in due.forced,
        )
