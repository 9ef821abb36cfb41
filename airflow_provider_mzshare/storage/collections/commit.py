"""The commit of a tick, or of a group of ticks, to one collection: once, whoever else tries.

An error of a commit is never taken as proof that it failed: the log is asked.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from deltalake import CommitProperties, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from airflow_provider_mzshare.core.ticklog.keyed_commits import (
    GroupGoal,
    Loaded,
    Sent,
    Step,
    TickGoal,
    next_step,
)
from airflow_provider_mzshare.errors import (
    BadCollection,
    CatalogBehind,
    CommitUnclear,
    Fenced,
    FilesTooOld,
    PlanAgain,
    WarehouseUnreachable,
)
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG, Collection
from airflow_provider_mzshare.storage.collections.durability import local_path
from airflow_provider_mzshare.storage.fanout.fault_numbers import fault_of

WRITES = 6
"""How often one call tries to commit before it raises CommitUnclear."""
FIRST_PAUSE_S = 0.02
MAX_FILE_AGE_S = 12 * 3600
"""Half of the age at which maintenance removes a file that no commit names."""


@dataclass(frozen=True)
class FileWritten:
    """A Parquet file in the collection's folder that no commit names yet.

    :param path: relative to the collection.
    :param stats: Delta's statistics, as JSON.
    :param written_at: seconds since 1970, at or before the moment the file was made.
    """

    path: str
    size: int
    stats: str
    written_at: float


@dataclass(frozen=True)
class CommitResult:
    """Where a tick is in a collection.

    :param version: of the log entry that carries the tick; None when the tick has no entry.
    :param already: it was there, or its writing was answered by an error and it was there all the same.
    :param metadata: what the entry itself says about the tick: rows and hash are taken from here.
    """

    version: int | None
    already: bool
    metadata: Mapping[str, str] = field(default_factory=dict)


class Content(ABC):
    """What a commit is to bring into a collection, and how."""

    @abstractmethod
    def is_empty(self, collection: Collection) -> bool:
        """Whether nothing is to be brought into the collection as it is loaded."""

    @abstractmethod
    def put(self, collection: Collection, mz_timestamp: int, metadata: Mapping[str, str]) -> int | None:
        """One attempt, on the version that is loaded. Whatever it raises, only the log knows whether it succeeded.

        :returns: the version of the entry, where it is known; else the log is asked.
        """

    @abstractmethod
    def noted(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """What the log entry says of the tick, the content's own counts included."""

    @abstractmethod
    def let_go(self, collection: Collection, failures: Sequence[Exception]) -> None:
        """The commit has failed for good: give back what it holds, as far as it cannot arrive any more."""


@dataclass(frozen=True)
class NewFiles(Content):
    """Files of rows that no earlier commit has, which are added as they are."""

    files: Sequence[FileWritten] = ()

    def is_empty(self, collection: Collection) -> bool:
        return not self.files

    def noted(self, metadata: Mapping[str, str]) -> dict[str, str]:
        return dict(metadata)

    def put(self, collection: Collection, mz_timestamp: int, metadata: Mapping[str, str]) -> int | None:
        age = time.time() - min((file.written_at for file in self.files), default=time.time())
        if age > MAX_FILE_AGE_S:
            raise FilesTooOld(collection.collection_id, age / 3600)
        add_files(collection, mz_timestamp, self.files, metadata)
        return None

    def let_go(self, collection: Collection, failures: Sequence[Exception]) -> None:
        """A local disk that refused every write has no commit on its way, and the next attempt needs the space."""
        if local_path(collection.root) and all(fault_of(failure) for failure in failures):
            discard(collection, self.files)


NOTHING = NewFiles()
_TO_DO = (Step.PLAN, Step.RELOAD)
"""The commit is still to be made. The log was loaded just before, so that it is not loaded again."""


def commit_tick(
    collection: Collection,
    *,
    mz_timestamp: int,
    content: Content,
    metadata: Mapping[str, str],
    knows: Callable[[int], bool],
    force: bool,
    repaired: bool = False,
) -> CommitResult:
    """Make ``collection`` hold the tick exactly once.

    :param knows: is there a tick of this time in the catalog's log?
    :param force: commit even without content, so that a late commit of an earlier writer conflicts.
    :param repaired: the tick was put back by a catalog repair: a collection may be past it.
    """

    goal = TickGoal(mz_timestamp, repaired)

    def settled(stored: int | None, sent: Sent | None) -> CommitResult | None:
        step = next_step(goal, Loaded(collection.delta_version, stored), sent, knows=knows, is_own=lambda: False)
        return None if step in _TO_DO else _ended(step, collection, mz_timestamp, stored, metadata)

    return _insist(collection, mz_timestamp, content, metadata, force=force, settled=settled)


def commit_group(
    collection: Collection,
    *,
    planned: int | None,
    mz_timestamp: int,
    content: Content,
    metadata: Mapping[str, str],
    force: bool,
) -> CommitResult:
    """Make ``collection`` hold the ticks after ``planned`` up to ``mz_timestamp``, or raise PlanAgain.

    ``content`` has exactly those ticks, so it can only follow the tick ``planned``. A commit of the same time that is
    not this one may be the last of several commits: only a new plan finds them all.
    """

    goal = GroupGoal(mz_timestamp, planned)

    def is_own() -> bool:
        found = _carried(collection, mz_timestamp, already=True)
        return found.metadata == stamped(mz_timestamp, content.noted(metadata))

    def settled(stored: int | None, sent: Sent | None) -> CommitResult | None:
        step = next_step(goal, Loaded(collection.delta_version, stored), sent, knows=lambda _: True, is_own=is_own)
        if step is Step.PLAN_AGAIN:
            raise PlanAgain(collection.collection_id, planned, stored)
        return None if step in _TO_DO else _carried(collection, mz_timestamp, already=True)

    return _insist(collection, mz_timestamp, content, metadata, force=force, settled=settled)


def _insist(
    collection: Collection,
    mz_timestamp: int,
    content: Content,
    metadata: Mapping[str, str],
    *,
    force: bool,
    settled: Callable[[int | None, Sent | None], CommitResult | None],
) -> CommitResult:
    """Compare, then write, until the log itself shows the commit.

    :param settled: what the stored version means: a result, an error, or None if the commit still has to be made.
    """
    failures: list[Exception] = []
    sent: Sent | None = None
    for attempt in range(WRITES + 1):
        _pause(attempt)
        try:
            stored = collection.stored_version()
        except WarehouseUnreachable as error:
            failures.append(error)
            continue
        if (answer := settled(stored, sent)) is not None:
            return answer
        if content.is_empty(collection) and not force:
            return CommitResult(None, already=False)
        if attempt == WRITES:
            content.let_go(collection, failures)
            break
        try:
            version = content.put(collection, mz_timestamp, noted := content.noted(metadata))
        except FilesTooOld:
            raise
        except Exception as error:  # noqa: BLE001  whatever it says, only the log knows whether the commit is there
            failures.append(error)
            sent = Sent(collection.delta_version + 1, "unclear")
        else:
            known = None if version is None else CommitResult(version, False, stamped(mz_timestamp, noted))
            return known or _carried(collection, mz_timestamp, already=False)
    raise _unclear(collection, mz_timestamp, failures) from failures[-1]


def _unclear(collection: Collection, mz_timestamp: int, failures: Sequence[Exception]) -> CommitUnclear:
    return CommitUnclear(
        f"collection {collection.collection_id}: tick time {mz_timestamp} is still missing after {WRITES} tries: "
        f"{failures[-1]}"
    )


def discard(collection: Collection, files: Sequence[FileWritten]) -> None:
    """Remove files that no commit names or will name. Errors are ignored, since maintenance removes what is left."""
    for file in files:
        with suppress(OSError, DeltaError):
            collection.filesystem.delete_file(file.path)


def _ended(
    step: Step, collection: Collection, mz_timestamp: int, stored: int | None, metadata: Mapping[str, str]
) -> CommitResult:
    """The result or the error if nothing is left to be put for a tick."""
    if step is Step.HELD:
        return _carried(collection, mz_timestamp, already=True)
    if step is Step.UNKNOWN:
        raise CatalogBehind(metadata.get("mz_source", "?"), collection.collection_id, stored or 0)
    if step is Step.FENCED:
        raise Fenced(
            f"collection {collection.collection_id} holds tick time {stored}, later than {mz_timestamp}: "
            "another writer has written it"
        )
    commit = collection.find_tick(mz_timestamp)
    return CommitResult(commit.version, True, commit.metadata) if commit else CommitResult(None, already=True)


def _carried(collection: Collection, mz_timestamp: int, *, already: bool) -> CommitResult:
    collection.refresh()
    commit = collection.find_tick(mz_timestamp)
    if commit is None:
        raise BadCollection(
            collection.collection_id, f"no log entry carries tick time {mz_timestamp}, although the collection holds it"
        )
    return CommitResult(commit.version, already, commit.metadata)


def add_files(
    collection: Collection,
    mz_timestamp: int,
    files: Sequence[FileWritten],
    metadata: Mapping[str, str],
    *,
    retries: int | None = None,
) -> None:
    """One attempt. Delta refuses it if the table has got a commit of this application id since it was loaded.

    :param retries: how often Delta itself tries a later version, if another commit took the next one.
    """
    collection.table.create_write_transaction(
        [AddAction(f.path, f.size, {}, int(f.written_at * 1000), True, f.stats) for f in files],
        mode="append",
        schema=collection.table.schema(),
        commit_properties=tick_properties(collection, mz_timestamp, metadata, retries=retries),
        post_commithook_properties=KEEP_LOG,
    )


def tick_properties(
    collection: Collection, mz_timestamp: int, metadata: Mapping[str, str], *, retries: int | None = None
) -> CommitProperties:
    """What the log entry of a tick carries besides its rows."""
    return CommitProperties(
        custom_metadata=stamped(mz_timestamp, metadata),
        max_commit_retries=retries,
        app_transactions=[Transaction(collection.collection_id, mz_timestamp)],
    )


def stamped(mz_timestamp: int, metadata: Mapping[str, str]) -> dict[str, str]:
    """What a log entry says of its tick."""
    return {**metadata, "mz_timestamp": str(mz_timestamp)}


def _pause(attempt: int) -> None:
    """No pause before the first attempt; then longer and random, so that two writers do not collide again."""
    if attempt:
        time.sleep(random.uniform(0.5, 1.0) * FIRST_PAUSE_S * 2**attempt)
