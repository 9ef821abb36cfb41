"""A file that is put together of columns is, byte for byte, the one that Arrow would have written."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.core.schema import HASH_VERSION
from airflow_provider_mzshare.storage.fanout import rows, splicing, writer
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, data_schema
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.splicing import Encoding, SplicedFile, encode, encodings, parquet_options
from airflow_provider_mzshare.storage.fanout.thrift import (
    Items,
    Typed,
    UnknownThrift,
    frozen,
    read_struct,
    write_struct,
)
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from tests.support.json_mutants import COLUMN_TYPES, mutants
from tests.support.parquet_pages import pages
from tests.support.random_passes import random_pairs
from tests.unit.storage.fanout.records import TICK, batch_of, member

INCLUDE = (("key", "k"), ("partition", "p"), ("offset", "o"), ("timestamp", "t"))
WIDE = tuple((name, name) for name in COLUMN_TYPES)


def tables():
    """Of all types, each with its own bad records; the same columns under other names; ticks that are there already."""
    singles = [member((name, name), id=f"one {name}") for name in COLUMN_TYPES]
    return (
        *singles,
        member(*WIDE, id="wide", include=INCLUDE),
        member(*WIDE[::-1], id="reversed"),
        member(id="plain", include=INCLUDE),
        member(format="text", id="text", include=(("offset", "a.b"), ("key", "é"))),
        member(format="bytes", id="bytes", include=INCLUDE),
        member(format="bytes", id="late", data_after=TICK),
        member(*WIDE[:3], id="late too", data_after=TICK + 1, errors_after=TICK),
        member(format="bytes", id="partition", partitions=(1,)),
        member(("missing", "text"), ("text", "text"), id="nulls"),
    )


def pass_over(folder: Path, batches, monkeypatch, *, spliced: bool, ends=None):
    """Every table's files as bytes, and what the pass says of them."""
    placed = []
    for number, table in enumerate(tables()):
        paths = {f"{role}_path": folder / str(number) / role for role in ("data", "errors")}
        for path in paths.values():
            path.mkdir(parents=True)
        placed.append(type(table)(**{**vars_of(table), **{name: str(path) for name, path in paths.items()}}))
    monkeypatch.setattr(writer, "SPLICED_FROM", 1 if spliced else 10**9)
    out = write_partition(iter(batches), FanoutPlan(TICK, tuple(placed), ends or {}).to_json())
    found = {}
    for row in (row for batch in out for row in batch.to_pylist()):
        path = row.pop("path")
        member_of = [table for table in placed if table.table_id == row["table_id"]]
        files = [Path(getattr(table, f"{row['role']}_path")) / path for table in member_of if path]
        found[row["table_id"], row["role"]] = (row, [file.read_bytes() for file in files])
    return found


def vars_of(table):
    return {name: getattr(table, name) for name in table.__dataclass_fields__}


def some_batches(seed: int, sizes):
    values = list(mutants(seed, sum(sizes)))
    keys = [None if n % 3 else b"key-%d" % (n % 40) for n in range(len(values))]
    start = 0
    for number, size in enumerate(sizes):
        part = slice(start, start + size)
        yield batch_of(values[part], keys=keys[part], partition=number % 2, first=start)
        start += size


@pytest.mark.parametrize("sizes", [(1,), (300, 1, 40), (1_500,)])
def test_files_and_what_is_said_of_them_are_the_same_as_arrow_writes(tmp_path, monkeypatch, sizes):
    seed = random.SystemRandom().randrange(10**9)
    print(f"seed {seed}")
    batches = list(some_batches(seed, sizes))
    ends = {"0": (sizes[0] // 2,), "1": (10**6,)}
    spliced = pass_over(tmp_path / "spliced", batches, monkeypatch, spliced=True, ends=ends)
    written = pass_over(tmp_path / "written", batches, monkeypatch, spliced=False, ends=ends)
    assert spliced.keys() == written.keys()
    for which, found in spliced.items():
        assert found == written[which], (which, seed)


@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_random_passes_over_random_tables_give_the_files_that_arrow_writes(seed):
    """Every type and its odd values, NULLs, sizes, pieces, bad records, tables that come and leave: page by page."""
    with tempfile.TemporaryDirectory() as folder:
        for pair in random_pairs(Path(folder), seed):
            spliced, written = pair.spliced.read_bytes(), pair.written.read_bytes()
            assert pages(spliced) == pages(written), pair.name
            assert (spliced, pair.told) == (written, pair.told_of_written), pair.name


def test_columns_of_many_pages_and_dictionaries_that_overflow(tmp_path):
    rng = random.Random(5)
    columns = {
        "unique": pa.array([f"{n:x}" * 20 for n in range(30_000)]),
        "few": pa.array([rng.choice(["a", "b", None]) for _ in range(30_000)]),
        "large": pa.array([os.urandom(60) for _ in range(30_000)]),
        "real": pa.array([rng.random() for _ in range(30_000)]),
        "none": pa.nulls(30_000, pa.date32()),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    how = encodings(batch.schema, PARTITIONED)
    spliced, written = pa.BufferOutputStream(), pa.BufferOutputStream()
    file = SplicedFile(spliced, batch.schema, how)
    with pq.ParquetWriter(written, batch.schema, **parquet_options(how)) as ordinary:
        for part in (batch, batch.slice(7, 20_000), batch.slice(29_999)):
            file.write([encode(v, each) for v, each in zip(part.columns, how.values(), strict=True)], part.num_rows)
            ordinary.write_batch(part)
    file.close()
    assert spliced.getvalue().equals(written.getvalue())


def test_a_column_is_encoded_once_for_all_tables(tmp_path, monkeypatch):
    encoded = []
    monkeypatch.setattr(rows, "encode", lambda values, how: encoded.append(how) or encode(values, how))
    members = []
    for number in range(9):
        (tmp_path / str(number)).mkdir()
        columns = (("a", "bigint"), ("b", "text"))[: 1 + number % 2]
        members.append(member(*columns, id=f"u{number}", data_path=str(tmp_path / str(number))))
    batches = [batch_of([b'{"a":1,"b":"x"}'] * 5, first=5 * n) for n in range(2)]
    (results,) = write_partition(iter(batches), FanoutPlan(TICK, tuple(members)).to_json())
    assert len(encoded) == 2 * 5
    for row in results.to_pylist()[:9]:
        found = pq.read_table(tmp_path / row["table_id"][1:] / row["path"])
        assert f"{hash_table(found, HASH_VERSION):032x}" == row["hash"]
        assert found.schema.equals(data_schema(members[int(row["table_id"][1:])]))


def test_few_tables_are_written_by_arrow(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SplicedFile", lambda *_: pytest.fail("put together"))
    tables = tuple(member(format="bytes", id=f"u{n}", data_path=str(tmp_path)) for n in range(7))
    assert list(write_partition(iter([batch_of([b"x"])]), FanoutPlan(TICK, tables).to_json()))


@pytest.mark.parametrize("problem", [ValueError("another footer"), KeyError(4), None])
def test_with_an_arrow_whose_files_are_made_otherwise_arrow_writes_them(tmp_path, monkeypatch, problem):
    def other(values, how):
        if problem:
            raise problem
        return encode(values, how._replace(statistics=not how.statistics))

    splicing.is_exact.cache_clear()
    try:
        assert splicing.is_exact()
        splicing.is_exact.cache_clear()
        monkeypatch.setattr(splicing, "encode", other)
        assert not splicing.is_exact()
        monkeypatch.setattr(writer, "SplicedFile", lambda *_: pytest.fail("put together"))
        tables = tuple(member(format="bytes", id=f"u{n}", data_path=str(tmp_path)) for n in range(9))
        assert list(write_partition(iter([batch_of([b"x"])]), FanoutPlan(TICK, tables).to_json()))
    finally:
        splicing.is_exact.cache_clear()


def test_disk_that_fills_up_fails_the_member_and_removes_its_file(tmp_path):
    """A limit on file size stands for a full disk, as in the tests of the writer."""
    members = []
    for number in range(9):
        (tmp_path / str(number)).mkdir()
        columns = () if number == 2 else (("a", "bigint"),)
        members.append(member(*columns, id=f"u{number}", data_path=str(tmp_path / str(number))))
    batches = [batch_of([json.dumps({"a": 1, "x": os.urandom(200_000).hex()}).encode()])] * 3
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, limit[1]))
    try:
        out = list(write_partition(iter(batches), FanoutPlan(TICK, tuple(members)).to_json()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    found = merge_results(row for batch in out for row in batch.to_pylist() if row["role"] in ("data", "errors"))
    assert "File too large" in str(found["u2"].error)
    assert {each.rows("data") for table, each in found.items() if table != "u2"} == {3}
    assert sorted(path.parent.name for path in tmp_path.rglob("*.parquet")) == [
        str(number) for number in range(9) if number != 2
    ]


# ── Thrift ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_footers_are_read_and_written_to_the_byte():
    schema = pa.schema([(f"column {n}", pa.list_(pa.decimal128(9, 2)) if n % 3 else pa.int16()) for n in range(40)])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema) as file:
        file.write_table(schema.empty_table())
    data = sink.getvalue().to_pybytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert write_struct(read_struct(footer)) == footer


def test_values_of_all_kinds_come_back():
    fields = {
        1: Typed(1, True), 2: Typed(2, False), 3: Typed(3, b"\x07"), 4: Typed(4, -1), 5: Typed(5, -(2**31)),
        6: Typed(6, 2**62),
        7: Typed(7, b"\0" * 8), 8: Typed(8, b"x" * 300), 9: Typed(9, Items(5, list(range(-100, 100)))),
        40: Typed(9, Items(1, [1, 2, 2])),
        41: Typed(12, {3: Typed(6, -(2**62))}), 5_000: Typed(9, Items(12, [{}, {1: Typed(5, 0)}])),
    }  # fmt: skip
    assert read_struct(write_struct(fields)) == fields
    assert write_struct(frozen(fields)) == write_struct(fields)


def test_what_no_footer_has_is_told():
    with pytest.raises(UnknownThrift, match="type 11"):
        read_struct(b"\x1b\x00")


def test_encodings_are_those_that_each_column_needs():
    schema = data_schema(member(("a", "bigint"), ("b", "text"), ("c", "bytea"), include=(("offset", "o"),)))
    assert encodings(schema, PARTITIONED) == {
        "a": Encoding(), "b": Encoding(True), "c": Encoding(True), "o": Encoding(),
        "_mz_tick": Encoding(True, False, True), "_mz_partition": Encoding(True, False, True),
        "_mz_offset": Encoding(False, True, True),
    }  # fmt: skip
