"""What is removed of journals: files that count for nothing, and all that a dropped source leaves. Nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import select, update

from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.connectors.journal.specs import JournalSpec
from airflow_provider_mzshare.control.catalog import Catalog, jobs
from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.journal_models import (
    JournalBatchRow,
    JournalPartitionRow,
    JournalSegmentRow,
)
from airflow_provider_mzshare.control.catalog.database.models import ItemRow
from airflow_provider_mzshare.control.catalog.log import journals
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.supervision.journal_upkeep import remove_trimmed, sweep
from airflow_provider_mzshare.control.supervision.leftovers import find_journals
from airflow_provider_mzshare.control.supervision.maintenance import Maintained, maintain
from airflow_provider_mzshare.control.supervision.reconciler import Reconciler
from airflow_provider_mzshare.core.ids import ItemId, JobId, JournalId, new_journal_id
from airflow_provider_mzshare.core.journal.state import Batch, Segment, folder_of, path_of
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.ticklog.state import Holder
from airflow_provider_mzshare.errors import Fenced
from airflow_provider_mzshare.settings import Settings
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile
from tests.support.journals import numbered

DAY_MS = 86_400_000


class Home:
    """Sources with journals, whose segments are real files."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog = catalog
        given = {"MZSHARE_HOME": str(folder / "home"), "MZSHARE_CATALOG": catalog.url}
        self.settings = Settings.from_environment(given)
        self.root = Path(self.settings.warehouse)
        self.root.mkdir(parents=True)
        # Others share the warehouse.
        (self.root / "journals" / "somebody-elses").mkdir(parents=True)
        (self.root / "journals" / ("0" * 16)).mkdir()

    def source(self, name: str = "s") -> tuple[ItemId, Written]:
        journal, spec = new_journal_id(), JournalSpec(partitions=2)
        with self.catalog.write() as session:
            source_id = items.create_source(
                session, name=("public", name), spec=spec, incarnation=journal, start=Position()
            )
            items.set_desired(session, source_id, "stopped")
        return source_id, Written(self, journal)

    def drop(self, source_id: ItemId, *, ago_ms: int = 0) -> None:
        with self.catalog.write() as session:
            items.drop_source(session, source_id)
            dropped = update(ItemRow).where(ItemRow.id == source_id)
            session.execute(dropped.values(dropped_at=ItemRow.dropped_at - ago_ms))

    def reconcile(self) -> list[tuple[str, str, bool]]:
        reconciler = Reconciler(self.catalog, self.settings, EnvConnections({}), Launchers(self.settings))
        return [(one.action, one.subject, one.ok) for one in reconciler.run()]

    def maintain(self, *, after_ms: int = 2 * DAY_MS, dry_run: bool = False) -> list[Maintained]:
        return maintain(self.catalog, str(self.root), now_ms=wall_ms() + after_ms, dry_run=dry_run)


class Written:
    def __init__(self, home: Home, journal: JournalId) -> None:
        self.home, self.journal = home, journal
        self.store = CatalogJournal(home.catalog, journal)

    def segment(self, epoch: int, number: int = 1, *, announce: bool = True, partition: int = 0) -> Segment:
        """One of this epoch, which is claimed if nobody has done so."""
        owned = self.store.partition(partition)
        while (lease := owned.lease()).epoch < epoch:
            owned.claim(JobId(f"push-{lease.epoch + 1}"), stood_still=lease)
        segment = self.file(epoch, number, partition=partition, first=owned.load().end)
        if announce:
            holder = _holder(lease.job_id, lease.epoch)
            batch = Batch(f"b-{partition}-{segment.first}", partition, segment.first, segment.end, "d")
            owned.announce(holder, None, segment, [batch])
        return segment

    def file(self, epoch: int, number: int, *, partition: int = 0, first: int = 0) -> Segment:
        """That the catalog knows nothing of."""
        root = str(self.home.root)
        self.folder.joinpath(str(partition)).mkdir(parents=True, exist_ok=True)
        file = SegmentFile.create(root, self.journal, partition=partition, epoch=epoch, number=number, first=first)
        file.append(numbered(first, 3))
        flushed = file.flush()
        file.close()
        return flushed

    @property
    def folder(self) -> Path:
        return self.home.root / folder_of(self.journal)

    def names(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}

    def rows(self) -> int:
        found = 0
        with self.home.catalog.read() as session:
            for row in (JournalPartitionRow, JournalSegmentRow, JournalBatchRow):
                found += len(session.execute(select(row.journal).where(row.journal == self.journal)).all())
        return found


def _holder(job_id: JobId | None, epoch: int) -> Holder:
    assert job_id is not None
    return Holder(job_id, epoch)


@pytest.fixture
def home(catalog: Catalog, tmp_path: Path) -> Iterator[Home]:
    made = Home(catalog, tmp_path)
    yield made
    assert (made.root / "journals" / "somebody-elses").is_dir()
    assert (made.root / "journals" / ("0" * 16)).is_dir(), "a journal that no source has may be all that is left of one"


# ── files that count for nothing ──────────────────────────────────────────────────────────────────────────────────────


def test_files_of_finished_epochs_that_were_never_announced_go_after_a_day(home: Home) -> None:
    _, written = home.source()
    kept = [written.segment(1), written.segment(1, 3), written.segment(3)]
    orphans = [written.file(1, 2), written.file(2, 1), written.file(1, 4, first=9)]
    current = written.segment(3, 2, announce=False)
    assert home.maintain(after_ms=DAY_MS - 60_000) == []
    assert home.maintain(dry_run=True)[0].data_files == 3
    size = sum((home.root / path_of(written.journal, one)).stat().st_size for one in orphans)
    assert home.maintain() == [Maintained("journal of s", 0, data_files=3, bytes=size)]
    assert written.names() == {_name(one) for one in [*kept, current]}
    assert home.maintain() == []
    written.segment(4)
    assert home.maintain()[0].data_files == 1
    assert written.names() == {_name(one) for one in [*kept, replace(current, epoch=4, number=1)]}


def test_nothing_goes_while_the_catalog_does_not_know_all_epochs(home: Home) -> None:
    """Its newest announcements may be lost: of these files nobody knows what they are."""
    _, written = home.source()
    written.segment(2)
    written.file(1, 1)
    other = written.segment(2, partition=1), written.file(1, 2, partition=1)
    unknown = written.file(3, 1)
    assert home.maintain()[0].data_files == 1, "of the other partition"
    assert {_name(unknown), _name(other[0]), "0/0000000001-00000001.journal"} <= written.names()
    # Nor of partitions that it has never heard of.
    written.file(1, 1, partition=7)
    assert home.maintain() == []


def test_what_is_newer_than_all_that_is_announced_stays_until_more_is(home: Home) -> None:
    """By it alone, a catalog that is restored may know that something is missing."""
    _, written = home.source()
    written.segment(1)
    newer = [written.file(1, 2, first=3), written.segment(2, announce=False)]
    owned = written.store.partition(0)
    owned.claim(JobId("push-3"), stood_still=owned.lease())
    assert home.maintain() == []
    assert {_name(one) for one in newer} < written.names()
    written.segment(4)
    assert home.maintain()[0].data_files == 2


def test_a_file_that_is_gone_already_is_no_error_and_trouble_is_told(home: Home) -> None:
    _, written = home.source()
    written.segment(2)
    orphan = written.file(1, 1)
    folder = written.folder / "0"
    if os.getuid() != 0:
        folder.chmod(0o500)
        assert "ermission" in home.maintain()[0].trouble
        folder.chmod(0o700)
    (home.root / path_of(written.journal, orphan)).unlink()
    assert home.maintain() == []
    assert sweep(written.store, str(home.root), now=datetime.now(timezone.utc), min_age=timedelta(0)).files == ()


def _name(segment: Segment) -> str:
    return f"{segment.partition}/{segment.epoch:010d}-{segment.number:08d}.journal"


# ── what a dropped source leaves ──────────────────────────────────────────────────────────────────────────────────────


def test_the_journal_of_a_dropped_source_goes_and_no_other(home: Home) -> None:
    dropped, gone = home.source("gone")
    _, stays = home.source("stays")
    for written in (gone, stays):
        written.segment(1)
        written.segment(1, partition=1)
    assert home.reconcile() == []
    before = stays.rows(), stays.names()
    home.drop(dropped)
    assert home.reconcile() == [("remove", "public.gone", True)]
    assert (gone.rows(), gone.folder.exists()) == (0, False)
    assert (stays.rows(), stays.names()) == before
    assert home.reconcile() == []


def test_a_drop_fences_the_writers(home: Home) -> None:
    source_id, written = home.source()
    written.segment(1)
    owned, holder = written.store.partition(0), Holder(JobId("push-1"), 1)
    owned.beat(holder)
    home.drop(source_id)
    for step in (owned.beat, owned.release):
        with pytest.raises(Fenced):
            step(holder)
    home.reconcile()
    with pytest.raises(Fenced):
        owned.announce(holder, None, written.file(1, 2), [])
    assert home.reconcile() == [("remove", "public.s", True)], "what it wrote meanwhile"
    assert not written.folder.exists()


def test_a_journal_stays_while_an_app_reads_it_or_a_writer_came_back(home: Home) -> None:
    source_id, written = home.source()
    written.segment(1)
    with home.catalog.write() as session:
        job_id = jobs.create_job(
            session, kind="ingest", source_id=source_id, launcher="process", folder=str(home.root / "none")
        )
    home.drop(source_id)
    with home.catalog.read() as session:
        assert find_journals(session, frozenset({written.journal}), wall_ms()) == ()
    with home.catalog.write() as session:
        jobs.set_state(session, job_id, "stopped", expect=jobs.ACTIVE)
    owned = written.store.partition(0)
    holder = owned.claim(JobId("push-2"), stood_still=owned.lease())
    assert home.reconcile() == []
    owned.release(holder)
    assert home.reconcile() == [("remove", "public.s", True)]


def test_a_writer_that_came_back_and_died_is_not_waited_for_for_ever(home: Home) -> None:
    source_id, written = home.source()
    written.segment(1)
    home.drop(source_id, ago_ms=3_500_000)
    owned = written.store.partition(0)
    owned.claim(JobId("push-2"), stood_still=owned.lease())
    assert home.reconcile() == []
    with home.catalog.write() as session:
        session.execute(update(ItemRow).where(ItemRow.id == source_id).values(dropped_at=wall_ms() - 3_700_000))
    assert home.reconcile() == [("remove", "public.s", True)]
    assert written.rows() == 0


# ── what was trimmed ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_trimmed_goes_after_the_grace(home: Home) -> None:
    _, written = home.source()
    segments = [written.segment(1, number) for number in (1, 2, 3)]
    partition = written.store.partition(0)
    assert home.maintain() == []
    size = partition.load().size
    assert partition.trim(5).begin == 3, "whole segments"
    assert written.names() == {_name(one) for one in segments}

    none, hour = timedelta(0), timedelta(hours=1)
    assert remove_trimmed(written.store, str(home.root), grace=none).files == (), "it is only noted"
    assert remove_trimmed(written.store, str(home.root), grace=hour).files == ()
    assert partition.trim(99).begin == 6, "never the newest"
    told = [remove_trimmed(written.store, str(home.root), grace=none, dry_run=True) for _ in range(2)]
    assert [one.files for one in told] == [(path_of(written.journal, segments[0]),)] * 2
    assert (written.names(), told[0].bytes) == ({_name(one) for one in segments}, segments[0].length)
    swept = remove_trimmed(written.store, str(home.root), grace=none)
    assert swept.files == (path_of(written.journal, segments[0]),), "what was noted a while ago"
    assert written.names() == {_name(one) for one in segments[1:]}
    state = partition.load()
    assert (state.begin, state.end, state.size) == (6, 9, size - segments[0].length)
    assert [one.number for one in written.store.segments(0, 0, 99)] == [2, 3]

    assert len(remove_trimmed(written.store, str(home.root), grace=none).files) == 1
    assert written.names() == {_name(segments[2])}
    assert partition.load().size == segments[2].length
    assert remove_trimmed(written.store, str(home.root), grace=none).files == ()
    written.segment(1, 4)
    assert partition.load().begin == 6
    assert [one.number for one in written.store.segments(0, 6, 99)] == [3, 4]


def test_a_removal_that_was_killed_is_finished_by_the_next(home: Home) -> None:
    _, written = home.source()
    first, *_ = [written.segment(1, number) for number in (1, 2)]
    partition = written.store.partition(0)
    partition.trim(3)
    partition.unread(grace_ms=0)
    (home.root / path_of(written.journal, first)).unlink()
    for _ in range(2):  # It found them, and died.
        assert [one.number for one in partition.unread(grace_ms=0)] == [1]
    assert len(remove_trimmed(written.store, str(home.root), grace=timedelta(0)).files) == 1
    partition.forget([first])
    assert partition.load().size == written.store.segments(0, 3, 6)[0].length, "once"


def test_ids_of_batches_go_with_their_messages_and_no_other(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    _, written = home.source()
    _, stays = home.source("other")
    for one in (written, stays):
        for number in range(1, 8):
            one.segment(1, number)
        one.segment(1, partition=1)
    partition = written.store.partition(0)
    names = [f"b-0-{first}" for first in range(0, 21, 3)]
    assert partition.forget_batches() == 0
    partition.trim(16)
    assert set(written.store.batches(names)) == set(names), "maintenance takes them"
    monkeypatch.setattr(journals, "_LET_GO_AT_ONCE", 2)
    remove_trimmed(written.store, str(home.root))
    assert set(written.store.batches([*names, "b-1-0"])) == {"b-0-15", "b-0-18", "b-1-0"}
    assert set(stays.store.batches([*names, "b-1-0"])) == {*names, "b-1-0"}
    assert partition.trim(99).begin == 18
    remove_trimmed(written.store, str(home.root))
    assert set(written.store.batches(names)) == {"b-0-18"}, "of the newest segment"
    assert partition.forget_batches() == 0
