from __future__ import annotations

import gc
import json
import os
import resource
import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_mzshare.storage.fanout import writer
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, data_schema, errors_schema
from airflow_provider_mzshare.storage.fanout.received import ROLE, received
from airflow_provider_mzshare.storage.fanout.results import RESULT_SCHEMA, merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from tests.unit.storage.fanout.records import TICK, batch_of, member

BATCHES = [
    batch_of([b'{"a":1}', b'{"a":"x"}', b'{"a":3}'], partition=2, first=10),
    batch_of([b"oops", b'{"a":5}'], partition=2, first=13),
]


def table_in(folder, *columns, id="u1", **more):
    for role in ("data", "errors"):
        (folder / id / role).mkdir(parents=True, exist_ok=True)
    paths = {"data_path": str(folder / id / "data"), "errors_path": str(folder / id / "errors")}
    return member(*columns, id=id, **{**paths, **more})


def run(*tables, batches=BATCHES):
    out = list(write_partition(iter(batches), FanoutPlan(TICK, tables).to_json()))
    assert all(batch.schema.equals(RESULT_SCHEMA) for batch in out)
    return [row for batch in out for row in batch.to_pylist() if row["role"] != ROLE]


def files_under(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def test_files_and_results_describe_the_rows(tmp_path):
    table = table_in(tmp_path, ("a", "bigint"))
    rows = run(table)
    assert [(row["table_id"], row["role"], row["rows"]) for row in rows] == [("u1", "data", 3), ("u1", "errors", 2)]
    for row, schema, offsets in zip(rows, (data_schema(table), errors_schema()), ([10, 12, 14], [11, 13]), strict=True):
        path = tmp_path / "u1" / row["role"] / row["path"]
        assert row["path"].startswith(f"part-{TICK}-")
        assert path.stat().st_size == row["size"]
        found = pq.read_table(path)
        assert found.schema.equals(schema)
        assert found.column("_mz_offset").to_pylist() == offsets
        assert f"{hash_table(found):032x}" == row["hash"]
        assert json.loads(row["stats"]) == {
            "numRecords": len(offsets),
            "minValues": {"_mz_tick": TICK, "_mz_partition": 2, "_mz_offset": offsets[0]},
            "maxValues": {"_mz_tick": TICK, "_mz_partition": 2, "_mz_offset": offsets[-1]},
            "nullCount": {"_mz_tick": 0, "_mz_partition": 0, "_mz_offset": 0},
        }
        assert (row["error"], row["first_error"]) == (None, None)


def test_every_column_of_data_and_errors_is_compressed_by_zstd(tmp_path):
    for row in run(table_in(tmp_path, ("a", "bigint"))):
        group = pq.read_metadata(tmp_path / "u1" / row["role"] / row["path"]).row_group(0)
        assert {group.column(number).compression for number in range(group.num_columns)} == {"ZSTD"}


def test_members_and_roles_without_rows_make_no_file_and_no_result(tmp_path):
    assert run(table_in(tmp_path), batches=[]) == []
    assert run(table_in(tmp_path), batches=[batch_of([])]) == []
    rows = run(table_in(tmp_path, format="bytes", id="u2"))
    assert [row["role"] for row in rows] == ["data"]
    assert len(files_under(tmp_path)) == 1


def test_what_was_read_is_told_once_for_all_members(tmp_path):
    keyed = batch_of([b"four", None, b""], keys=[b"key", b"k", None])
    members = (table_in(tmp_path, format="bytes"), table_in(tmp_path, format="text", id="u2"))
    out = write_partition(iter([keyed, batch_of([]), *BATCHES]), FanoutPlan(TICK, members).to_json())
    found = received(row for batch in out for row in batch.to_pylist())
    assert (found.messages, found.bytes) == (8, 42)


def test_two_attempts_never_share_a_file(tmp_path):
    table = table_in(tmp_path, format="bytes")
    assert run(table)[0]["path"] != run(table)[0]["path"]
    assert len(files_under(tmp_path)) == 2


def test_paths_may_be_uris(tmp_path):
    table = table_in(tmp_path / "with space", format="bytes")
    moved = member(
        format="bytes", data_path=(tmp_path / "with space" / "u1" / "data").as_uri(), errors_path=table.errors_path
    )
    assert run(moved)[0]["path"] in files_under(tmp_path)[0]


def test_member_whose_folder_is_broken_leaves_the_others_intact(tmp_path):
    (tmp_path / "file").write_text("")
    broken = table_in(tmp_path, ("a", "bigint"), id="u1", data_path=str(tmp_path / "file" / "data"))
    missing = table_in(tmp_path, ("a", "bigint"), id="u2", errors_path=str(tmp_path / "nowhere"))
    good = table_in(tmp_path, ("a", "bigint"), id="u3")
    found = merge_results(run(broken, missing, good))
    assert found["u1"].error is not None
    assert "file/data" in found["u1"].error
    assert "nowhere" in str(found["u2"].error)
    assert found["u1"].files == found["u2"].files == {"data": [], "errors": []}
    assert (found["u3"].rows("data"), found["u3"].rows("errors"), found["u3"].error) == (3, 2, None)
    assert {name.split("/")[0] for name in files_under(tmp_path)} == {"u3"}


def test_disk_that_fills_up_while_writing_fails_the_member_and_removes_its_file(tmp_path):
    """A limit on file size stands for a full disk: the write itself fails, after the file was begun."""
    large, small = table_in(tmp_path, format="bytes", id="u1"), table_in(tmp_path, ("a", "bigint"), id="u2")
    batches = [batch_of([json.dumps({"a": 1, "x": os.urandom(200_000).hex()}).encode()])] * 3
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limit[1]))
    try:
        found = merge_results(run(large, small, batches=batches))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert "File too large" in str(found["u1"].error)
    assert found["u2"].rows("data") == 3
    assert [name.split("/")[0] for name in files_under(tmp_path)] == ["u2"]


def test_table_that_stops_on_errors_reports_the_lowest_bad_record_and_writes_nothing(tmp_path):
    stopping = table_in(tmp_path, ("a", "bigint"), id="u1", stop_on_error=True)
    other = table_in(tmp_path, ("a", "bigint"), id="u2")
    rows = run(stopping, other, batches=[BATCHES[1], BATCHES[0]])
    found = merge_results(rows)["u1"]
    assert found.first_error == 'field "a": expected bigint, got string'
    assert found.first_error_at == (2, 11)
    assert found.files == {"data": [], "errors": []}
    assert {name.split("/")[0] for name in files_under(tmp_path)} == {"u2"}


def test_table_that_stops_on_errors_is_written_while_there_is_none(tmp_path):
    table = table_in(tmp_path, format="bytes", stop_on_error=True)
    assert merge_results(run(table))["u1"].rows("data") == 5


def test_failing_read_is_raised_and_leaves_no_file(tmp_path):
    def broken_read():
        yield BATCHES[0]
        raise OSError("the broker is gone")

    with pytest.raises(OSError, match="the broker is gone"):
        list(write_partition(broken_read(), FanoutPlan(TICK, (table_in(tmp_path, format="bytes"),)).to_json()))
    assert files_under(tmp_path) == []
    assert gc.isenabled()


def test_large_batches_are_decoded_in_parts_with_the_same_outcome(tmp_path, monkeypatch):
    table = table_in(tmp_path, ("a", "bigint"))
    whole = [(row["rows"], row["hash"]) for row in run(table)]
    monkeypatch.setattr(writer, "_PIECE_ROWS", 1)
    assert [(row["rows"], row["hash"]) for row in run(table)] == whole
    monkeypatch.undo()
    monkeypatch.setattr(writer, "_PIECE_BYTES", 1)
    assert [(row["rows"], row["hash"]) for row in run(table)] == whole


def test_batches_as_spark_gives_them_are_taken(tmp_path):
    """The session's time zone on timestamps, large types, another order of columns, a column too many."""
    table = table_in(tmp_path, ("a", "bigint"), include=(("timestamp", "t"), ("key", "k")))
    schema = pa.schema(
        [
            ("timestamp", pa.timestamp("us", "Europe/Berlin")),
            ("topic", pa.string()),
            ("value", pa.large_binary()),
            ("key", pa.large_binary()),
            ("offset", pa.int64()),
            ("partition", pa.int32()),
        ]
    )
    other = []
    for batch in BATCHES:
        wide = pa.Table.from_batches([batch]).append_column("topic", pa.array(["t"] * batch.num_rows))
        other += wide.select(schema.names).cast(schema).to_batches()
    assert [row["hash"] for row in run(table, batches=other)] == [row["hash"] for row in run(table)]


def test_delta_reads_the_files_and_the_hash_holds(tmp_path):
    from deltalake import DeltaTable, write_deltalake

    columns = (("a", "numeric(10,2)"), ("d", "date"), ("t", "timestamptz"), ("n", "timestamp"), ("s", "smallint"))
    table = table_in(tmp_path, *columns, ("r", "real"), ("j", "jsonb"), ("b", "boolean"), ("y", "bytea"))
    value = (
        b'{"a":1.5,"d":"1900-01-01","t":"2024-01-02T03:04:05.6Z","n":"1500-01-01T00:00:00","s":3,"r":0.1,"j":[1],'
        b'"b":true,"y":"AP8="}'
    )
    row = run(table, batches=[batch_of([value, b"{}"])])[0]
    rows = pq.read_table(tmp_path / "u1" / "data" / row["path"])
    write_deltalake(str(tmp_path / "delta"), rows)
    back = pa.table(DeltaTable(str(tmp_path / "delta")).to_pyarrow_table())
    assert f"{hash_table(back):032x}" == row["hash"]
