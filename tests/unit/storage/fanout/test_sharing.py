from __future__ import annotations

import json
import random

import pytest

from airflow_provider_mzshare.formats import fastjson
from airflow_provider_mzshare.formats import json as decoding
from airflow_provider_mzshare.formats.jsontext import JsonParser
from airflow_provider_mzshare.storage.fanout import rows
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import hash_table
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, data_schema, errors_schema
from tests.unit.storage.fanout.records import MICROS, TICK, batch_of, member


def test_bad_field_harms_only_the_tables_that_use_it():
    batch = batch_of([b'{"a":1,"b":"x"}', b'{"a":"bad","b":"y"}', b'{"a":3,"b":9}'], first=100)
    tables = (member(("a", "bigint"), id="u1"), member(("b", "text"), id="u2"), member(("a", "text"), id="u3"))
    found = decode_batch(batch, FanoutPlan(TICK, tables))
    offsets = {
        table: tuple(part and part.batch.column("_mz_offset").to_pylist() for part in (each.data, each.errors))
        for table, each in found.items()
    }
    assert offsets == {"u1": ([100, 102], [101]), "u2": ([100, 101], [102]), "u3": ([101], [100, 102])}


def test_error_is_the_first_bad_column_in_the_tables_order():
    batch = batch_of([b'{"a":"x","b":"y"}'])
    tables = (
        member(("b", "bigint"), ("a", "bigint"), id="u1"),
        member(("a", "bigint"), ("b", "bigint"), id="u2"),
        member(("c", "bigint"), id="u3", include=(("key", "k"),)),
    )
    found = decode_batch(batch, FanoutPlan(TICK, tables))
    assert [found[t].errors.batch.column("error")[0].as_py() for t in ("u1", "u2")] == [
        'field "b": expected bigint, got string',
        'field "a": expected bigint, got string',
    ]
    assert found["u3"].errors is None


def test_error_row_carries_the_raw_record_and_its_place():
    batch = batch_of([b"ok", b"\xff"], keys=[b"k", b"\xfe"], partition=3, first=5)
    found = decode_batch(batch, FanoutPlan(TICK, (member(format="text"),)))["u1"].errors.batch
    assert found.schema.equals(errors_schema())
    row = found.to_pylist()[0]
    assert row.pop("timestamp").timestamp() == pytest.approx(MICROS / 1e6, abs=1e-6)
    assert row == {
        "key": b"\xfe", "value": b"\xff", "error": "invalid UTF-8 at byte 0",
        "_mz_tick": TICK, "_mz_partition": 3, "_mz_offset": 6,
    }  # fmt: skip


def test_columns_come_in_the_documented_order():
    table = member(("b", "numeric(10,2)"), ("a", "smallint"), include=(("offset", "o"), ("key", "k")))
    found = decode_batch(batch_of([b'{"a":1,"b":2.5}']), FanoutPlan(TICK, (table,)))["u1"].data.batch
    assert found.schema.equals(data_schema(table))
    assert found.schema.names == ["b", "a", "o", "k", "_mz_tick", "_mz_partition", "_mz_offset"]


def test_sixteen_tables_parse_once_and_convert_each_field_once(monkeypatch):
    parsed, converted = [], []
    decode_all, convert = fastjson._decode_all, fastjson.convert

    def counting_decode(shape, raw):
        parsed.append(len(raw))
        return decode_all(shape, raw)

    def counting_convert(values, type_name):
        converted.append(type_name)
        return convert(values, type_name)

    monkeypatch.setattr(fastjson, "_decode_all", counting_decode)
    monkeypatch.setattr(fastjson, "convert", counting_convert)
    tables = tuple(member(("a", "bigint"), ("b", ("text", "date")[n % 2]), id=f"u{n}") for n in range(16))
    decode_batch(batch_of([b'{"a":1,"b":"2026-01-02"}'] * 10), FanoutPlan(TICK, tables))
    assert parsed == [10]
    assert sorted(converted) == ["bigint", "date", "text"]


def test_so_they_do_where_msgspec_is_not_installed(monkeypatch):
    monkeypatch.setattr(fastjson, "is_installed", lambda: False)
    parsed, converted = [], []
    parse_all, convert = JsonParser.parse_all, decoding.convert

    def counting_parse(self, texts):
        parsed.append(len(texts))
        return parse_all(self, texts)

    def counting_convert(values, type_name):
        converted.append(type_name)
        return convert(values, type_name)

    monkeypatch.setattr(JsonParser, "parse_all", counting_parse)
    monkeypatch.setattr(decoding, "convert", counting_convert)
    tables = tuple(member(("a", "bigint"), ("b", ("text", "jsonb")[n % 2]), id=f"u{n}") for n in range(16))
    decode_batch(batch_of([b'{"a":1,"b":"x"}'] * 10), FanoutPlan(TICK, tables))
    assert parsed == [10]
    assert sorted(converted) == ["bigint", "jsonb", "text"]


def test_tables_of_text_and_bytes_parse_no_json(monkeypatch):
    monkeypatch.setattr(JsonParser, "parse_all", lambda *_: pytest.fail("JSON was parsed"))
    monkeypatch.setattr(fastjson, "_decode_all", lambda *_: pytest.fail("JSON was parsed"))
    tables = (member(format="text", id="u1"), member(format="bytes", id="u2"))
    assert decode_batch(batch_of([b"{"]), FanoutPlan(TICK, tables))["u1"].data.batch.num_rows == 1


def test_batch_of_good_and_bad_records_equals_each_record_alone():
    rng = random.Random(3)
    pieces = [b'{"a":1,"b":"x"}', b" {}", b"", None, b"[1]", b'{"a":1.5}', b'{"a":99999999999999999999}', b"\xff",
              b'{"b":"\\ud800","a":2}', b'{"a":1}x', b'{"b":5}', json.dumps({"a": 4, "b": "é"}).encode()]  # fmt: skip
    values = [rng.choice(pieces) for _ in range(120)]
    tables = (member(("a", "bigint"), ("b", "text"), id="u1"), member(id="u2"), member(format="text", id="u3"))
    plan = FanoutPlan(TICK, tables)
    whole = decode_batch(batch_of(values), plan)
    singly = [decode_batch(batch_of([value], first=n), plan) for n, value in enumerate(values)]
    for table in ("u1", "u2", "u3"):
        for part in ("data", "errors"):
            rows = [row for one in singly if (got := getattr(one[table], part)) for row in got.batch.to_pylist()]
            assert getattr(whole[table], part).batch.to_pylist() == rows
            total = sum(got.hash for one in singly if (got := getattr(one[table], part))) % 2**128
            assert getattr(whole[table], part).hash == total


def odd_tables(count):
    """Each with errors of its own, some that take the same rows, some with the same columns, two versions of ticks."""
    return tuple(
        member(
            *(((f"c{n % 12}", "bigint"),) if n % 3 else (("other", "text"),)),
            ("all", "bigint"),
            id=f"u{n}",
            data_after=TICK if n % 5 == 0 else 0,
            errors_after=TICK if n % 7 == 0 else 0,
        )
        for n in range(count)
    )


def test_tables_that_share_rows_have_what_each_has_alone():
    values = [json.dumps({"all": n, f"c{n % 12}": "bad", "other": "x"}).encode() for n in range(40)] + [b"{", b"[]"]
    ends = {"0": (21,)}
    tables = odd_tables(30)
    together = decode_batch(batch_of(values), FanoutPlan(TICK, tables, ends))
    seen = set()
    for table in tables:
        alone = decode_batch(batch_of(values), FanoutPlan(TICK, (table,), ends))[table.table_id]
        for found, wanted in zip(vars(together[table.table_id]).values(), vars(alone).values(), strict=True):
            assert found.batch.equals(wanted.batch)
            assert found.batch.schema.names == wanted.batch.schema.names
            assert (found.hash, found.bounds) == (wanted.hash, wanted.bounds)
            assert found.hash == hash_table(found.batch)
            offsets = found.batch.column("_mz_offset").to_pylist()
            assert found.bounds["_mz_offset"] == (min(offsets), max(offsets))
            seen.add(tuple(offsets))
    assert len(seen) > 20


def test_hash_and_bounds_are_computed_once_for_tables_of_the_same_columns(monkeypatch):
    summed, bounded = [], []
    hash_rows, bounds_of = rows.hash_rows, rows.bounds_of
    monkeypatch.setattr(rows, "hash_rows", lambda lanes: summed.append(1) or hash_rows(lanes))
    monkeypatch.setattr(rows, "bounds_of", lambda batch: bounded.append(1) or bounds_of(batch))
    one, other = (("a", "bigint"), ("b", "text")), (("b", "text"), ("a", "bigint"))
    tables = tuple(member(*(one, other, one[:1])[n % 3], id=f"u{n}") for n in range(12))
    found = decode_batch(batch_of([b'{"a":1,"b":"x"}'] * 10), FanoutPlan(TICK, tables))
    assert (len(summed), len(bounded)) == (2, 1)
    assert len({each.data.hash for each in found.values()}) == 2
