"""What msgspec reads is, record for record, what the strict reading gives: rows, errors and hashes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence

import pytest

from airflow_provider_mzshare.formats import fastjson
from airflow_provider_mzshare.formats.jsontext import JsonParser
from airflow_provider_mzshare.storage.fanout.decode import Decoded, decode_batch
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.writing.shipping import pack_writer
from tests.support.decoding_table import FIELDS
from tests.support.json_mutants import COLUMN_TYPES, NUMBERS, OTHERS, TEXTS, mutants
from tests.unit.storage.fanout.records import TICK, batch_of, decode_one, member
from tests.unit.storage.fanout.test_decoding import RECORDS

SINGLES = tuple(member((name, name), id=name) for name in COLUMN_TYPES)
WIDE = (member(*((name, name) for name in COLUMN_TYPES), id="wide"), member(id="plain"))
OTHER_TYPES = (
    member(("jsonb", "text"), ("bigint", "numeric(38,0)"), id="a"),
    member(("numeric(5,2)", "double"), id="b"),
    member(("double", "jsonb"), ("text", "jsonb"), id="c"),
    member(("jsonb", "bigint"), ("boolean", "text"), id="d", text_columns=("boolean",)),
)
"""Fields that other tables have as a type that keeps every digit."""


@pytest.fixture
def strict(monkeypatch):
    """Decode as where msgspec is not installed."""

    def decode(batch, plan):
        with monkeypatch.context() as without:
            without.setattr(fastjson, "is_installed", lambda: False)
            without.setattr(fastjson, "_decode_all", lambda *_: pytest.fail("msgspec was asked"))
            return decode_batch(batch, plan)

    return decode


def plain(decoded: Decoded) -> list[tuple[object, ...] | None]:
    parts = (decoded.data, decoded.errors)
    return [part and (part.batch.schema, part.batch.to_pylist(), part.hash) for part in parts]


def compare(strict, values: Sequence[bytes | None], tables: tuple[MemberPlan, ...], hint: str = "") -> None:
    batch, plan = batch_of(values), FanoutPlan(TICK, tables)
    fast, slow = decode_batch(batch, plan), strict(batch, plan)
    for table in fast:
        for got in (fast[table].data, fast[table].errors):
            if got:
                got.batch.validate(full=True)
        if plain(fast[table]) != plain(slow[table]):
            wrong = next((v for v in values if not same_alone(strict, v, plan, table)), "only together")
            pytest.fail(f"{table} {hint}: {wrong!r}")


def same_alone(strict, value: bytes | None, plan: FanoutPlan, table: str) -> bool:
    batch = batch_of([value])
    return plain(decode_batch(batch, plan)[table]) == plain(strict(batch, plan)[table])


def compare_mutants(strict, seed: int, count: int) -> None:
    print(f"seed {seed}")
    values = list(mutants(seed, count))
    for start in range(0, count, 1_000):
        part = values[start : start + 1_000]
        for tables in (SINGLES, WIDE, OTHER_TYPES, (member(id="plain"),)):
            compare(strict, part, tables, f"seed {seed}")


def test_the_fast_reading_is_used(monkeypatch):
    monkeypatch.setattr(JsonParser, "parse_all", lambda *_: pytest.fail("read strictly"))
    values = [b'{"bigint":1,"numeric(5,2)":1.50,"jsonb":{"a":1.10}}', b' {"x":[{}]}\n']
    assert decode_batch(batch_of(values), FanoutPlan(TICK, WIDE))["wide"].data.batch.num_rows == 2


@pytest.mark.parametrize("alone", [True, False])
def test_every_documented_record_and_field(strict, alone):
    values = [value for value, *_ in RECORDS.values()]
    values += [f'{{"{type_name}":{sent}}}'.encode() for type_name, cases in FIELDS.values() for sent, _ in cases]
    values += [f'{{"a":{sent}}}'.encode() for _, cases in FIELDS.values() for sent, _ in cases]
    tables = (*SINGLES, *WIDE, *OTHER_TYPES, member(("a", "text"), id="documented"))
    for part in [[value] for value in values] if alone else [values, values[::-1]]:
        compare(strict, part, tables)


def test_every_odd_value_in_a_column_of_every_type(strict):
    odd = (*NUMBERS, *TEXTS, *OTHERS)
    values = [f'{{"{name}":{each}}}'.encode() for name in COLUMN_TYPES for each in odd]
    for tables in (SINGLES, WIDE, OTHER_TYPES):
        compare(strict, values, tables)


def test_mutated_records(strict):
    compare_mutants(strict, random.SystemRandom().randrange(10**9), 3_000)


@pytest.mark.full(seconds=120)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10))
def test_many_mutated_records(strict, seed):
    compare_mutants(strict, seed, 10_000)


def test_numbers_that_arrow_would_wrap_are_refused():
    """Arrow reads these texts, as other numbers."""
    for type_name, sent in (
        ("numeric(38,38)", "-55"),
        ("numeric(5,2)", "7765137909968173937640705225429895." + "0" * 41),
    ):
        found = decode_one(member(("a", type_name)), f'{{"a":{sent}}}'.encode())
        assert found == f'field "a": out of range for {type_name}'


def test_only_what_is_refused_is_read_strictly(monkeypatch):
    read = []
    parse_all = JsonParser.parse_all

    def counting(self, texts):
        read.append(list(texts))
        return parse_all(self, texts)

    monkeypatch.setattr(JsonParser, "parse_all", counting)
    bad = [b"{", b"[1]", None, b"\xff", b'{"a":1e400}', b'{"x":' + b"[" * 200 + b"]" * 200 + b"}"]
    good = [b'{"a":1}', b'{"a":"no number"}', b'{"x":[' + b",".join([b"{}"] * 200) + b"]}"] * 300
    values = [*good[:500], *bad, *good[500:]]
    found = decode_batch(batch_of(values), FanoutPlan(TICK, (member(("a", "bigint")),)))["u1"]
    assert read == [["{", "[1]", None, None, '{"a":1e400}', bad[-1].decode()]]
    assert [text for text in found.errors.batch.column("error").to_pylist() if "no" not in text[:20]]
    assert found.errors.batch.num_rows == len(bad) + 300
    assert found.data.batch.num_rows == 600


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "", "é", "f0", "😀", "__class__", "a b", "\x7f"])
def test_fields_of_any_name(strict, name):
    values = [json.dumps({name: 5}).encode(), json.dumps({name: 5}, ensure_ascii=False).encode(), b'{"f0":7}', b"{}"]
    table = member((name, "bigint"))
    compare(strict, values, (table,))
    assert decode_one(table, values[0]) == {name: 5}


def test_executors_without_msgspec_give_the_same_rows(tmp_path):
    code = f"""
import sys
sys.path[0:0] = [{str(pack_writer(tmp_path))!r}]
if len(sys.argv) > 1:
    sys.modules["msgspec"] = None
from airflow_provider_mzshare.formats import fastjson
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
import pyarrow as pa
rows = [
    {{"key": None, "value": value, "partition": 0, "offset": n, "timestamp": None}}
    for n, value in enumerate([b'{{"a":1.50,"b":{{"c": "x"}}}}', b'{{"a":1.505}}', b'{{'])
]
batch = pa.RecordBatch.from_pylist(rows, schema=INPUT_SCHEMA)
format = "airflow_provider_mzshare.formats.json:JSON"
plan = FanoutPlan(1, (MemberPlan("u1", format, (("a", "numeric(5,2)"), ("b", "jsonb")), (), "", ""),))
found = decode_batch(batch, plan)["u1"]
print(fastjson.is_installed())
print(found.data.batch.to_pylist(), found.data.hash, found.errors.batch.to_pylist(), found.errors.hash)
"""
    outputs = []
    for more in ([], ["without"]):
        command = [sys.executable, "-I", "-c", code, *more]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert not ran.returncode, ran.stderr
        outputs.append(ran.stdout.split("\n", 1))
    assert [installed for installed, _ in outputs] == ["True", "False"]
    assert outputs[0][1] == outputs[1][1]
    assert "more than 2 digits" in outputs[0][1]
