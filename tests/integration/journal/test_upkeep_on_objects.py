"""What is removed of journals in an object store: whole folders, and objects that count for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import CatalogJournal
from airflow_provider_mzshare.control.supervision.journal_upkeep import sweep
from airflow_provider_mzshare.control.supervision.warehouse import journal_folders, remove_journal
from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile, list_segments
from tests.support.catalog import new_sqlite
from tests.support.journals import JOURNAL, numbered
from tests.support.s3 import S3Server

OTHER = type(JOURNAL)("journal:" + "f" * 16)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CatalogJournal]:
    with Catalog(new_sqlite(tmp_path / "catalog.db")) as catalog:
        yield CatalogJournal(catalog, JOURNAL)


def put(root: str, *, epoch: int = 1, number: int = 1, of: object = JOURNAL) -> Segment:
    file = SegmentFile.create(root, type(JOURNAL)(of), partition=0, epoch=epoch, number=number, first=0)
    file.append(numbered(0, 3))
    segment = file.flush()
    file.close()
    return segment


def test_folders_are_found_and_one_is_removed(s3: S3Server) -> None:
    root = s3.new_root()
    assert journal_folders(root) == frozenset()
    put(root)
    put(root, of=OTHER)
    assert journal_folders(root) == {JOURNAL, OTHER}
    for _ in range(2):
        remove_journal(root, JOURNAL)
        assert journal_folders(root) == {OTHER}


def test_objects_that_were_never_announced_go_after_a_day(s3: S3Server, journal: CatalogJournal) -> None:
    root, partition = s3.new_root(), journal.partition(0)
    holder = partition.claim(JobId("push-1"), stood_still=partition.lease())
    announced = put(root, number=2)
    partition.announce(holder, None, announced, [])
    orphan = put(root)
    partition.claim(JobId("push-2"), stood_still=partition.lease())
    put(root, epoch=2)
    now = datetime.now(timezone.utc)
    assert sweep(journal, root, now=now).files == ()
    swept = sweep(journal, root, now=now + timedelta(days=2))
    assert (swept.files, swept.bytes) == ((path_of(JOURNAL, orphan),), orphan.length)
    assert list_segments(root, JOURNAL, 0) == [(1, 2), (2, 1)]
