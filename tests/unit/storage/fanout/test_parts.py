"""The pass over a snapshot: parts are read by each task itself, and a reference that is lost fails its own members."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.postgres.decoding import snapshot_rows
from airflow_provider_mzshare.connectors.postgres.place import PLACE
from airflow_provider_mzshare.envelopes.registry import envelope_target
from airflow_provider_mzshare.errors import SnapshotLost
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.fanout.parts import write_parts
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.results import MemberResult, merge_results

A, B = "16401", "16402"


def member(folder: Path, table_id: str, reference: str) -> MemberPlan:
    for name in ("data", "errors"):
        (folder / table_id / name).mkdir(parents=True)
    return MemberPlan(
        table_id,
        format_target("postgres"),
        (("id", "bigint"), ("n", "bigint")),
        (),
        str(folder / table_id / "data"),
        str(folder / table_id / "errors"),
        stop_on_error=True,
        envelope=envelope_target("postgres"),
        keys=("id",),
        keys_in_value=True,
        place=PLACE,
        reference=reference,
    )


def read(part: str) -> Iterator[pa.RecordBatch]:
    """``16401:1,2,x``: rows of a reference; at an ``x`` its snapshot is lost, and a ``?`` is no number."""
    reference, rows = part.split(":")
    for row in rows.split(","):
        if row == "x":
            raise SnapshotLost("the table was rewritten")
        values = {"id": pa.array([row]), "n": pa.array(["7"])}
        yield snapshot_rows(int(reference), pa.array([ord(row[0])], pa.int64()), values)


def passed(folder: Path, *parts: str) -> dict[str, MemberResult]:
    plan = FanoutPlan(6, (member(folder, "u2", A), member(folder, "u3", B), member(folder, "u4", A)))
    rows = [{"reference": part.split(":")[0], "part": part} for part in parts]
    batches = write_parts(iter([pa.RecordBatch.from_pylist(rows)]), read, plan.to_json())
    return merge_results(row for batch in batches for row in batch.to_pylist())


def test_each_member_gets_the_rows_of_its_reference(tmp_path: Path) -> None:
    found = passed(tmp_path, f"{A}:1,2", f"{B}:3", f"{A}:4")
    assert {table_id: one.rows("data") for table_id, one in found.items()} == {"u2": 3, "u3": 1, "u4": 3}
    assert not any(one.error or one.files["errors"] for one in found.values())


@pytest.mark.parametrize("parts", [(f"{A}:1", f"{A}:x", f"{B}:3", f"{A}:4"), (f"{A}:1,x", f"{B}:3")])
def test_a_reference_that_is_lost_fails_its_members_alone(tmp_path: Path, parts: tuple[str, ...]) -> None:
    found = passed(tmp_path, *parts)
    lost = "the snapshot of the tables upstream was lost: the table was rewritten"
    assert {table_id: one.error for table_id, one in found.items()} == {"u2": lost, "u3": None, "u4": lost}
    assert found["u3"].rows("data") == 1


def test_a_value_that_cannot_be_decoded_is_told_with_its_column(tmp_path: Path) -> None:
    found = passed(tmp_path, f"{A}:1,?", f"{B}:3")
    assert found["u2"].first_error == 'field "id": no bigint'
    assert found["u3"].rows("data") == 1
