"""Collections are created once, are what their property says, and can be read by both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.errors import BadCollection, WarehouseUnreachable
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from tests.support.delta import NAME, SCHEMA, new_collection, write_tick
from tests.support.delta_race import Racer, race

OTHER = CollectionId("u2-g1-data-ffffffff")


def test_a_new_collection_needs_no_feature_that_one_of_the_engines_lacks(tmp_path: Path) -> None:
    table = new_collection(tmp_path).table
    assert table.protocol().min_reader_version == 1
    assert table.protocol().min_writer_version == 2
    assert table.metadata().partition_columns == []
    assert table.metadata().configuration == {
        "mzshare.collection": NAME,
        "delta.checkpointInterval": "10",
        "delta.enableExpiredLogCleanup": "false",
        "delta.dataSkippingStatsColumns": "_mz_tick,_mz_partition,_mz_offset",
    }


def test_a_timestamp_without_zone_is_the_only_type_that_asks_for_a_feature(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), *SCHEMA])
    assert new_collection(tmp_path, schema=schema).table.protocol().reader_features == ["timestampNtz"]


def test_creating_again_changes_nothing(tmp_path: Path) -> None:
    collection = new_collection(tmp_path)
    write_tick(collection, 1)
    create_collection(str(tmp_path), NAME, SCHEMA)
    collection.refresh()
    assert collection.delta_version == 1


def test_creating_again_with_other_columns_is_refused(tmp_path: Path) -> None:
    new_collection(tmp_path)
    with pytest.raises(BadCollection, match="other columns"):
        create_collection(str(tmp_path), NAME, SCHEMA.append(pa.field("more", pa.string())))


def test_columns_of_a_newer_spec_are_added_once_and_older_versions_keep_theirs(tmp_path: Path) -> None:
    wide = SCHEMA.append(pa.field("more", pa.string()))
    one, other = new_collection(tmp_path), Collection.open(str(tmp_path), NAME)
    for collection in (one, one, other):
        collection.widen(wide)
        collection.widen(SCHEMA)
        assert {field.name for field in collection.table.schema().fields} == set(wide.names)
    assert [field.name for field in DeltaTable(one.uri, version=0).schema().fields] == SCHEMA.names
    with pytest.raises(BadCollection, match="other columns"):
        one.widen(pa.schema([("n", pa.string())]))


def test_racing_creators_leave_one_table(tmp_path: Path) -> None:
    assert race(str(tmp_path), [Racer("create")] * 4) == [0, 0, 0, 0]
    assert [path.name for path in (tmp_path / NAME / "_delta_log").glob("*.json")] == [f"{0:020d}.json"]


def test_a_folder_that_holds_another_collection_is_refused(tmp_path: Path) -> None:
    new_collection(tmp_path)
    (tmp_path / NAME).rename(tmp_path / OTHER)
    with pytest.raises(BadCollection, match=NAME):
        Collection.open(str(tmp_path), OTHER)
    with pytest.raises(BadCollection, match=NAME):
        create_collection(str(tmp_path), OTHER, SCHEMA)


def test_a_table_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path / NAME), SCHEMA)
    with pytest.raises(BadCollection, match="None"):
        Collection.open(str(tmp_path), NAME)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCollection, match="no Delta table"):
        Collection.open(str(tmp_path), NAME)


def test_a_warehouse_that_is_no_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WarehouseUnreachable, match="cannot be created"):
        create_collection(str(tmp_path / "file"), NAME, SCHEMA)


def test_a_file_uri_is_the_same_warehouse(tmp_path: Path) -> None:
    create_collection(tmp_path.as_uri(), NAME, SCHEMA)
    assert Collection.open(tmp_path.as_uri() + "/", NAME).stored_version() is None
    assert Collection.open(str(tmp_path), NAME).delta_version == 0
