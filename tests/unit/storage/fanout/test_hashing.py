from __future__ import annotations

import dataclasses
import random
import struct
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import blake2b
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.errors import UnknownHashVersion
from airflow_provider_mzshare.storage.fanout import hashing
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS, digest, hash_rows, hash_table, row_lanes
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from tests.unit.storage.fanout.records import batch_of, member

SAMPLES = {
    "boolean": [True, False],
    "smallint": [0, 1, -1],
    "integer": [0, 1, -1],
    "bigint": [0, 1, -(2**63), 2**63 - 1],
    "real": [0.0, 0.5, -0.5],
    "double": [0.0, 0.1, -0.1],
    "numeric(38,2)": [Decimal("0.00"), Decimal("0.01"), Decimal("-0.01"), Decimal(10**35), Decimal(-(10**35))],
    "text": ["", "a", "b", "é", "a" * 1_000],
    "bytea": [b"", b"\0", b"\0\0", b"a"],
    "date": [date(1970, 1, 1), date(1, 1, 1), date(2024, 2, 29)],
    "timestamp": [datetime(1970, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)],
    "timestamptz": [datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 1, tzinfo=timezone.utc)],
}


def table_of(type_name, values, **more):
    return pa.table({"v": pa.array(values, arrow_type(type_name)), **more})


def mixed_table(rows=500, seed=1):
    rng = random.Random(seed)
    columns = {
        name: pa.array([rng.choice([None, *SAMPLES[name]]) for _ in range(rows)], arrow_type(name)) for name in SAMPLES
    }
    return pa.table({**columns, "_mz_partition": pa.array([0] * rows, pa.int32()), "_mz_offset": range(rows)})


@pytest.mark.parametrize("type_name", SAMPLES)
def test_every_value_and_null_have_their_own_hash(type_name):
    values = [None, *SAMPLES[type_name]]
    assert len({hash_table(table_of(type_name, [value])) for value in values}) == len(values)


def mix(value, shifts, factors):
    for shift, factor in zip(shifts, (*factors, 1), strict=True):
        value = (value ^ value >> shift) * factor % 2**64
    return value


LOW = ((30, 27, 31), (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
HIGH = ((33, 29, 32), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))


def words_of(type_name, value):
    """The words of one value in plain Python."""
    if isinstance(value, str):
        return words_of(type_name, value.encode())
    if isinstance(value, bytes):
        return struct.unpack("<2Q", blake2b(value, digest_size=16).digest())
    if isinstance(value, Decimal):
        return divmod(int(value.scaleb(2)) % 2**128, 2**64)[::-1]
    if isinstance(value, float):
        return (
            struct.unpack("<Q", struct.pack("<d", value))
            if type_name == "double"
            else struct.unpack("<I", struct.pack("<f", value))
        )
    if isinstance(value, datetime):
        value = (value.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    elif isinstance(value, date):
        value = value.toordinal() - date(1970, 1, 1).toordinal()
    return (int(value) % 2**64,)


TAGS = {
    "boolean": "bool",
    "smallint": "int16",
    "integer": "int32",
    "bigint": "int64",
    "real": "float",
    "double": "double",
}


def model_hash(columns, rows):
    total = 0
    for row in rows:
        lanes = [0, 0]
        for (name, type_name), value in zip(columns, row, strict=True):
            tag = TAGS.get(type_name, type_name)
            seeds = struct.unpack("<4Q", blake2b(f"{name}\0{tag}".encode(), digest_size=32).digest())
            for lane, mixer in enumerate((LOW, HIGH)):
                word = seeds[lane]
                for each in () if value is None else words_of(type_name, value):
                    word = mix(word ^ each, *mixer)
                lanes[lane] += seeds[2 + lane] if value is None else word
        total += (mix(lanes[1] % 2**64, *HIGH) << 64) + mix(lanes[0] % 2**64, *LOW)
    return total % 2**128


def test_hash_equals_its_definition_in_plain_python():
    table = mixed_table()
    columns = [*((name, name) for name in SAMPLES), ("_mz_partition", "integer"), ("_mz_offset", "bigint")]
    assert hash_table(table) == model_hash(columns, zip(*table.to_pydict().values(), strict=True))


def test_hash_stays_what_it_was():
    """Stored commits and certificates are compared with it: a change here is a change of format."""
    table = pa.table({"a": [1, None], "b": ["x", ""], "_mz_offset": [0, 1]})
    assert f"{hash_table(table):032x}" == "107fe00bc79b9c8ac4b7168d8abc6414"


def test_order_of_rows_does_not_matter():
    table = mixed_table()
    order = list(range(table.num_rows))
    random.Random(2).shuffle(order)
    assert hash_table(table.take(order)) == hash_table(table)


def test_order_of_columns_does_not_matter_but_their_names_do():
    table = mixed_table()
    assert hash_table(table.select(table.column_names[::-1])) == hash_table(table)
    renamed = table.rename_columns(["x", *table.column_names[1:]])
    assert hash_table(renamed) != hash_table(table)


@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.integers(0, 500), max_size=6))
def test_cutting_into_batches_does_not_matter(cuts):
    table = mixed_table()
    bounds = [0, *sorted(cuts), table.num_rows]
    parts = [table.slice(a, b - a) for a, b in pairwise(bounds)]
    assert sum(map(hash_table, parts)) % MODULUS == hash_table(table)
    assert hash_table(pa.concat_tables(parts)) == hash_table(table)


def test_repeated_row_missing_row_and_moved_offset_show():
    table = mixed_table(20)
    whole = hash_table(table)
    assert hash_table(pa.concat_tables([table, table.slice(3, 1), table.slice(3, 1)])) != whole
    assert hash_table(table.slice(1)) != whole
    for name in ("_mz_offset", "_mz_partition"):
        place = table.column_names.index(name)
        values = table.column(name).to_pylist()
        values[5] += 1
        assert hash_table(table.set_column(place, name, pa.array(values, table.schema.field(name).type))) != whole


def test_values_swapped_between_two_rows_show():
    one = pa.table({"a": [1, 2], "b": ["x", "y"]})
    other = pa.table({"a": [1, 2], "b": ["y", "x"]})
    assert hash_table(one) != hash_table(other)


def test_values_swapped_between_two_columns_show():
    assert hash_table(pa.table({"a": [1], "b": [2]})) != hash_table(pa.table({"a": [2], "b": [1]}))


def test_tick_is_not_part_of_the_hash():
    table = mixed_table(5)
    ticks = [table.append_column("_mz_tick", pa.array([tick] * 5)) for tick in (1, 2)]
    assert hash_table(ticks[0]) == hash_table(ticks[1]) == hash_table(table)


def test_zero_has_no_sign_and_nan_no_payload():
    quiet, other = pa.array([0x7FF8000000000000, 0xFFF8000000000001], pa.uint64()).view(pa.float64())
    assert hash_table(table_of("double", [-0.0])) == hash_table(table_of("double", [0.0]))
    assert hash_table(table_of("double", [quiet.as_py()])) == hash_table(table_of("double", [other.as_py()]))


def test_sum_carries_from_the_low_lane_into_the_high_one():
    table = mixed_table(60)
    singles = [hash_table(table.slice(row, 1)) for row in range(60)]
    assert sum(single & (2**64 - 1) for single in singles) >= 2**64
    assert sum(singles) % MODULUS == hash_table(table)


def test_no_rows_hash_to_zero():
    assert hash_table(mixed_table(0)) == 0
    assert hash_rows(row_lanes([], 0)) == 0


@pytest.mark.parametrize("held_as", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_the_way_arrow_holds_text_does_not_matter(held_as):
    table = table_of("text", ["a", None, "", "a", "é"])
    assert hash_table(table.cast(pa.schema([("v", held_as)]))) == hash_table(table)


def test_type_without_a_hash_is_refused():
    with pytest.raises(TypeError, match="list"):
        digest(pa.array([[1]]))


def test_rows_read_back_from_parquet_have_the_hash_of_the_decoded_batch(tmp_path):
    columns = tuple((f"c{n}", name) for n, name in enumerate((*SAMPLES, "jsonb")))
    document = (
        b'{"c0":true,"c1":-5,"c2":7,"c3":9007199254740993,"c4":0.1,"c5":-0.0,"c6":12.30,"c7":"\xc3\xa9","c8":"AP8=",'
        b'"c9":"0001-01-01","c10":"1900-01-01T00:00:00.000001","c11":"2024-01-02T03:04:05+05:30","c12":{"a":[1.10]}}'
    )
    values = [document, b"{}", b'{"c1":1.5}', document, b"nonsense"]
    table = member(*columns, include=(("key", "k"), ("timestamp", "t")))
    found = decode_batch(batch_of(values, keys=[b"x", None, b"y", b"", b"z"]), FanoutPlan(3, (table,)))["u1"]
    for rows, count in ((found.data, 3), (found.errors, 2)):
        pq.write_table(pa.Table.from_batches([rows.batch]), tmp_path / "f.parquet", store_schema=False)
        back = pq.read_table(tmp_path / "f.parquet")
        assert back.num_rows == count
        assert hash_table(back) == hash_table(rows.batch) == rows.hash


# ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def later_version(monkeypatch):
    """A second version that says more of a row than the first."""

    def shifted(name, column):
        return hashing.column_lanes(f"2:{name}", column)

    later = dataclasses.replace(hashing.row_hash(1), version=2, column_lanes=shifted)
    monkeypatch.setitem(hashing.VERSIONS, 2, later)
    return 2


def test_the_first_version_is_what_was_stored_before_there_were_any():
    table = pa.table({"a": [1, None], "b": ["x", ""], "_mz_offset": [0, 1]})
    assert f"{hash_table(table, hashing.FIRST):032x}" == "107fe00bc79b9c8ac4b7168d8abc6414"


def test_an_unknown_version_is_refused_by_its_number():
    with pytest.raises(UnknownHashVersion, match="hashes of version 7, but this mzshare knows only: 1") as refused:
        hash_table(mixed_table(1), 7)
    assert refused.value.version == 7
    assert refused.value.hint
    with pytest.raises(UnknownHashVersion, match="version 7"):
        decode_batch(batch_of([b"{}"]), FanoutPlan(1, (dataclasses.replace(member(("a", "bigint")), hash_version=7),)))


def test_tables_of_one_pass_may_have_different_versions(later_version):
    both = [dataclasses.replace(member(("a", "bigint")), table_id=f"u{v}", hash_version=v) for v in (1, later_version)]
    found = decode_batch(batch_of([b'{"a":1}', b'{"a":2}', b"bad"]), FanoutPlan(1, tuple(both)))
    for one in both:
        for rows in (found[one.table_id].data, found[one.table_id].errors):
            assert rows.hash == hash_table(rows.batch, one.hash_version)
            assert rows.hash != hash_table(rows.batch, 3 - one.hash_version)
