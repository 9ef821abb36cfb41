"""The place of a record: its columns, its lane, what positions are compared with, and how it is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import airflow_provider_mzshare
from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA, input_schema
from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.schema import system_columns, system_names
from tests.support.places import BINLOG, LSN

PACKAGE = Path(airflow_provider_mzshare.__file__).parent


def test_only_the_places_of_connectors_name_their_columns() -> None:
    """A database could not use Kafka's: whatever comes later takes them from the place. Events of keys have more."""
    others = r"""["'`]_mz_(?!(tick|deletes|clears|kept|order|events|holds|old|new)\b|record_|["'`])"""
    named = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if re.search(others, file.read_text())}
    assert named == {"connectors/places.py", "connectors/postgres/place.py"}


@pytest.mark.parametrize("kind", ["kafka", "load_generator", "journal"])
def test_logs_with_partitions_keep_their_columns(kind: str) -> None:
    assert CONNECTORS.get(kind).place is PARTITIONED
    assert system_columns(CONNECTORS.get(kind).place.stored) == (
        ("_mz_tick", "bigint"),
        ("_mz_partition", "integer"),
        ("_mz_offset", "bigint"),
    )
    assert INPUT_SCHEMA.equals(
        pa.schema(
            [
                ("key", pa.binary()),
                ("value", pa.binary()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", "UTC")),
            ]
        )
    )


def test_records_have_the_columns_of_their_place() -> None:
    assert input_schema(LSN).names == ["key", "value", "lsn", "index", "timestamp"]
    assert input_schema(BINLOG).field("binlog").type == pa.decimal128(38, 0)


@pytest.mark.parametrize("place", [PARTITIONED, LSN, BINLOG])
def test_a_place_travels_as_json(place: Place) -> None:
    assert Place.from_plain(json.loads(json.dumps(place.to_plain()))) == place


def test_a_lane_is_a_number_where_records_have_it_as_one() -> None:
    assert PARTITIONED.lane_of("7") == 7
    assert LSN.lane_of("lsn") == "lsn"
    assert BINLOG.lane_of("3") == "3"


def test_a_place_is_told_in_the_words_of_its_upstream() -> None:
    assert PARTITIONED.tell((3, 17)) == "partition 3, offset 17"
    assert LSN.tell((0x16B3748, 2)) == "lsn 0/16B3748, index 2"
    assert LSN.in_lane("lsn", (5, 2)) == (5, 2)
    assert BINLOG.in_lane("eu", (5, 2)) == ("eu", 5, 2)
    assert PARTITIONED.in_lane(3, (17,)) == (3, 17)


def test_a_position_is_shown_as_people_know_it() -> None:
    assert LSN.shown(Position({"lsn": (7 << 32) + 0x16B3748})) == {"lsn": "7/16B3748"}
    assert PARTITIONED.shown(Position({0: 5})) == {}


def test_the_system_columns_of_a_collection_are_told_by_their_names() -> None:
    assert system_names(["n", "_mz_tick", "_mz_lsn", "_mz_index"]) == ("_mz_tick", "_mz_lsn", "_mz_index")
    # A column that came later stands behind them.
    assert system_names(["n", "_mz_tick", "_mz_lsn", "m"]) == ("_mz_tick", "_mz_lsn")
    assert system_names(["n", "m"]) == ()
