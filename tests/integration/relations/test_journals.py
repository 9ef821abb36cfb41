"""What the relation of journals says of sources that have one."""

from __future__ import annotations

import re

from sqlalchemy import update

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.models import SourceRow
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.core.ids import ItemId
from tests.support.catalog import add_source
from tests.support.journal_rows import JOURNAL, Writer
from tests.support.relations import Described


def with_journal(catalog: Catalog, name: str = "s") -> ItemId:
    source = add_source(catalog, name)
    with catalog.write() as session:
        session.execute(update(SourceRow).where(SourceRow.id == source).values(incarnation=JOURNAL))
    return source


def test_journals_are_listed_with_their_sources(described: Described) -> None:
    assert described.query("SELECT * FROM mz_journals") == []
    source = with_journal(described.catalog)
    writer = Writer(described.catalog, 3)
    (empty,) = described.query("SELECT * FROM mz_journals")
    assert empty == {
        "object_id": source, "partition": 3, "first_offset": 0, "next_offset": 0, "segments": 0, "bytes": 0,
        "oldest_at": None, "newest_at": None, "writer": "push-1",
    }  # fmt: skip
    writer.announce(2)
    writer.begin(5)
    row = described.one("SELECT * FROM mz_journals")
    assert (row["next_offset"], row["segments"], row["bytes"]) == (7, 2, 70)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["oldest_at"])
    assert row["oldest_at"] <= row["newest_at"]
    writer.store.release(writer.holder)
    assert described.one("SELECT writer, name FROM mz_journals JOIN mz_sources ON id = object_id") == {
        "writer": None, "name": "s",
    }  # fmt: skip
    with described.catalog.write() as session:
        items.drop_source(session, source)
    assert described.query("SELECT * FROM mz_journals") == []
