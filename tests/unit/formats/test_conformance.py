"""What every format must do, for all that are registered: ours, and one that only the tests' own tree has."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import chunks, from_spark, row_batch
from airflow_provider_mzshare.control.sql.script import parse_script, print_statement
from airflow_provider_mzshare.core.arrow_types import arrow_type
from airflow_provider_mzshare.core.schema import TYPES
from airflow_provider_mzshare.formats.base import Batch, TableColumns
from airflow_provider_mzshare.formats.registry import FORMATS, format_target, sql_word
from airflow_provider_mzshare.storage.fanout.decode import Decoded, Readers, SharedBatch, decode_batch
from airflow_provider_mzshare.storage.fanout.hashing import MODULUS
from airflow_provider_mzshare.storage.fanout.numbering import TickNumbers
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan, data_schema
from airflow_provider_mzshare.storage.writing.shipping import pack_writer
from tests.support.decoding_table import FIELDS
from tests.support.plugins import FORMAT, installed
from tests.unit.storage.fanout.records import MICROS, TICK, batch_of, decode_one, member

with installed(FORMAT, FORMATS):
    NAMES = tuple(FORMATS)
    OF_ROWS = tuple(name for name in NAMES if FORMATS.get(name).own_columns)
    OF_RECORDS = tuple(name for name in NAMES if name not in OF_ROWS)
    WITH_COLUMNS = tuple(name for name in OF_RECORDS if FORMATS.get(name).takes_columns)


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    with installed(FORMAT, FORMATS):
        yield


def test_the_tests_own_format_is_among_them() -> None:
    assert set(NAMES) == {*FORMATS.own, "piped"}


# ── records, of whatever bytes ────────────────────────────────────────────────────────────────────────────────────────

ALL_TYPES = [name for name in TYPES if name != "numeric"] + ["numeric(5,2)", "numeric(38,9)"]
HUGE = 4 << 20
RECORDS = [
    None, b"", b" \n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}", b"[]", b"null", b'{"c0":1}', b'{"c0":"x"}',
    b'{"c0":NaN}', b'{"c0":1e400}', b'{"c0":"\\ud800"}', b'{"c0":' + b"[" * 200 + b"]" * 200 + b"}", b"[" * 100_000,
    b"|", b"1|2", b"1|ann|2.5", b"|".join([b"1"] * 40), b"a,b,c\r\n", b"--- \n- a", b"\x08\x96\x01", b"Obj\x01\x04",
    "é😀\u2028".encode(), b"9" * 5_000, b'{"c1":"' + b"x" * HUGE + b'"}', b"|" * HUGE, bytes(range(256)) * 64,
]  # fmt: skip
SMALL = [value for value in RECORDS if value is None or len(value) < HUGE]


def tables(name: str) -> tuple[MemberPlan, ...]:
    """All shapes that a table of the format can have."""
    found = FORMATS.get(name)
    include = tuple((what, f"k_{what}") for what in ("key", "partition", "offset", "timestamp"))
    plain = member(id="plain", format=name, include=include)
    if not found.takes_columns:
        return (plain,)
    taken = [type_name for type_name in ALL_TYPES if not found.refuses(type_name)]
    wide = tuple((f"c{number}", type_name) for number, type_name in enumerate(taken))
    singles = [member(("c0", type_name), id=type_name, format=name) for type_name in taken]
    return (plain, *singles, member(*wide, id="wide", format=name, include=include))


def decoded(name: str, values: Sequence[bytes | None], first: int = 0) -> dict[str, Decoded]:
    keys = [value and value[:9] for value in values]
    return decode_batch(batch_of(values, keys=keys, first=first), FanoutPlan(TICK, tables(name)))


def offsets(part: object) -> list[int]:
    return part.batch.column("_mz_offset").to_pylist() if part else []  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", OF_RECORDS)
def test_every_record_is_a_row_or_an_error_of_every_table(name: str) -> None:
    found = decoded(name, RECORDS)
    for table in tables(name):
        got = found[table.table_id]
        assert sorted(offsets(got.data) + offsets(got.errors)) == list(range(len(RECORDS))), table.table_id
        if got.data:
            assert got.data.batch.schema.equals(data_schema(table))
            got.data.batch.validate(full=True)


@pytest.mark.parametrize("name", OF_RECORDS)
def test_null_and_no_bytes_are_told_apart(name: str) -> None:
    """NULL, a tombstone, is NULL or an error; it is never the empty value."""
    for table in tables(name):
        null, empty = decode_one(table, None), decode_one(table, b"")
        if isinstance(null, dict):
            assert {null[column] for column, _ in table.value_columns()} == {None}
        else:
            assert null == "value is NULL"
        assert null != empty


@pytest.mark.parametrize("name", OF_RECORDS)
def test_errors_never_quote_the_record(name: str) -> None:
    token = b"sesame7391"
    values = [token, b'{"c0":"' + token + b'"', b'{"c0":"' + token + b'"}', token + b"\xff", token + b"|" + token]
    for got in decoded(name, values).values():
        texts = got.errors.batch.column("error").to_pylist() if got.errors else []
        assert not [text for text in texts if token.decode() in text]


@pytest.mark.parametrize("name", OF_RECORDS)
def test_any_split_into_batches_gives_the_same_rows_errors_and_hashes(name: str) -> None:
    values = SMALL * 2
    random.Random(11).shuffle(values)
    whole = decoded(name, values)
    cuts = [0, 1, 2, 9, len(values)]
    parts = [decoded(name, values[low:high], first=low) for low, high in pairwise(cuts)]
    check_same(whole, parts)


binary = st.one_of(
    st.none(),
    st.binary(max_size=60),
    st.text(max_size=30).map(str.encode),
    st.text('{}[]":,|\\-+.eE0123456789 truefalsn\n\t\r', max_size=40).map(str.encode),
    st.dictionaries(
        st.sampled_from(["c0", "c1", "c5", "x"]), st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=4
    ).map(lambda each: json.dumps(each).encode()),
)


@pytest.mark.parametrize("name", OF_RECORDS)
@settings(max_examples=15, deadline=None)
@given(values=st.lists(binary, min_size=1, max_size=12), data=st.data())
def test_fuzz_gives_rows_or_errors_however_it_is_split(
    name: str, values: list[bytes | None], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(values)))
    parts = [decoded(name, values[:cut]), decoded(name, values[cut:], first=cut)]
    check_same(decoded(name, values), parts)


def check_same(whole: dict[str, Decoded], parts: Sequence[dict[str, Decoded]]) -> None:
    for table, got in whole.items():
        for role in ("data", "errors"):
            pieces = [found for part in parts if (found := getattr(part[table], role))]
            rows = getattr(got, role)
            assert (rows.hash if rows else 0) == sum(piece.hash for piece in pieces) % MODULUS, table
            if rows:
                assert (
                    pa.Table.from_batches([piece.batch for piece in pieces])
                    .combine_chunks()
                    .to_batches()[0]
                    .equals(rows.batch)
                ), table


@pytest.mark.parametrize("name", OF_RECORDS)
def test_rows_do_not_depend_on_what_other_tables_need(name: str) -> None:
    together = decoded(name, SMALL)
    for table in tables(name):
        batch = batch_of(SMALL, keys=[value and value[:9] for value in SMALL])
        alone = decode_batch(batch, FanoutPlan(TICK, (table,)))[table.table_id]
        for role in ("data", "errors"):
            one, other = getattr(alone, role), getattr(together[table.table_id], role)
            assert (one and one.hash) == (other and other.hash), table.table_id


# ── columns: the strict table ─────────────────────────────────────────────────────────────────────────────────────────


def _as_object(type_name: str, sent: str) -> bytes | None:
    return f'{{"c0":{sent}}}'.encode()


def _as_line(type_name: str, sent: str) -> bytes | None:
    """Text stands as it is, so that nothing is a wrong text; no text at all is NULL."""
    if type_name != "text":
        return None if sent == "null" else sent.encode()
    text = json.loads(sent)
    fine = isinstance(text, str) and text and text.isprintable()
    return text.encode() if fine else None


def _as_postgres(values: pa.Array) -> pa.Array:
    """The text that Postgres writes."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return pa.array([None if each is None else "ft"[each] for each in values.to_pylist()], pa.string())
    if pa.types.is_binary(kind):
        return pa.array([None if each is None else f"\\x{each.hex()}" for each in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind):
        zone = "+00" if kind.tz else ""
        texts = [None if each is None else f"{each.replace(tzinfo=None)}{zone}" for each in values.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_floating(kind):
        return pa.array([None if each is None else repr(each) for each in values.to_pylist()], pa.string())
    return values.cast(pa.string())


ROW_WRITERS: dict[str, Callable[[pa.Array], pa.Array]] = {"none": lambda values: values, "postgres": _as_postgres}
"""How an upstream gives a column to a format of rows, whose values are given with our types."""
AS_THEY_ARE = tuple(name for name in OF_ROWS if not FORMATS.get(name).takes_changes)
"""Formats of rows whose values have types."""

WRITERS: dict[str, Callable[[str, str], bytes | None]] = {"json": _as_object, "piped": _as_line}
"""How a format writes a record of one field that is given as JSON; None where it has no way to say that."""


@pytest.mark.parametrize("name", WITH_COLUMNS)
@pytest.mark.parametrize("row", FIELDS)
def test_columns_take_what_the_document_says(name: str, row: str) -> None:
    type_name, cases = FIELDS[row]
    if FORMATS.get(name).refuses(type_name):
        return
    for sent, expected in cases:
        value = WRITERS[name](type_name, sent)
        if value is not None:
            found = decode_one(member(("c0", type_name), format=name), value)
            wrong = isinstance(expected, str) and expected.startswith('field "a": ')
            if wrong:
                assert isinstance(found, str), sent
                assert found.partition(": ")[2] == expected.partition(": ")[2], sent
            else:
                assert found == {"c0": expected}, sent


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_a_bad_field_harms_only_the_tables_that_use_it(name: str) -> None:
    found = FORMATS.get(name)
    columns = (("c0", "bigint"), ("c1", "bigint"))
    assert len(found.fields(columns)) == 2
    reading = found.reader([TableColumns(columns)])(Batch(batch_of(RECORDS[:10])))
    for field in found.fields(columns):
        column = reading.field(field, "bigint", as_text=False)
        assert column.values.type == arrow_type("bigint")
        assert all(column.values[row].as_py() is None for row in column.errors)


# ── rows, of whatever types ───────────────────────────────────────────────────────────────────────────────────────────

GOOD = {
    f"{row} {number}": (type_name, expected)
    for row, (type_name, cases) in FIELDS.items()
    for number, (_, expected) in enumerate(cases)
    if not (isinstance(expected, str) and expected.startswith('field "a": '))
}
"""Values that some column can hold, and its type."""
WIDE = tuple((f"c{number}", type_name) for number, (type_name, _) in enumerate(GOOD.values()))


def rows_of(columns: Mapping[str, pa.Array], first: int = 0) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    at = pa.array([0] * count, pa.int32()), pa.array(range(first, first + count), pa.int64())
    return row_batch(PARTITIONED, at, pa.array([MICROS] * count, pa.timestamp("us", "UTC")), columns)


def wide_rows(format: str = "none") -> pa.RecordBatch:
    """In row n, column n is NULL and all others have their value."""
    count, written = len(WIDE), ROW_WRITERS[format]
    return rows_of(
        {
            name: written(pa.array([None if row == number else value for row in range(count)], arrow_type(type_name)))
            for number, ((name, type_name), (_, value)) in enumerate(zip(WIDE, GOOD.values(), strict=True))
        }
    )


def read_rows(batch: pa.RecordBatch, *tables: MemberPlan) -> dict[str, Decoded]:
    return decode_batch(batch, FanoutPlan(TICK, tables))


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_are_what_the_upstream_gave(name: str) -> None:
    got = read_rows(wide_rows(name), member(*WIDE, format=name))["u1"]
    assert got.errors is None
    assert got.data is not None
    for number, row in enumerate(got.data.batch.to_pylist()):
        for column, ((field, _), (_, value)) in enumerate(zip(WIDE, GOOD.values(), strict=True)):
            assert row[field] == (None if column == number else value)


@pytest.mark.parametrize("name", OF_ROWS)
def test_any_split_of_rows_and_any_other_table_gives_the_same(name: str) -> None:
    batch = wide_rows(name)
    tables = [member(column, id=column[0], format=name) for column in WIDE] + [member(*WIDE, id="wide", format=name)]
    whole = read_rows(batch, *tables)
    cuts = [0, 1, 5, 5, batch.num_rows]
    check_same(whole, [read_rows(batch.slice(low, high - low), *tables) for low, high in pairwise(cuts)])
    for table in tables:
        (alone,) = read_rows(batch, table).values()
        assert alone == whole[table.table_id]


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_table_takes_what_it_lists_and_wider_types_than_were_given(name: str) -> None:
    written = ROW_WRITERS[name]
    given_rows = rows_of({"a": written(pa.array([1], pa.int16())), "b": written(pa.array([2], pa.int64()))})
    (got,) = read_rows(given_rows, member(("b", "bigint"), ("a", "numeric(9,0)"), format=name)).values()
    assert got.data is not None
    assert got.data.batch.select(["b", "a"]).to_pylist() == [{"b": 2, "a": Decimal(1)}]


@pytest.mark.parametrize("name", AS_THEY_ARE)
@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([7]), "7"),
        (pa.array([True]), "true"),
        (pa.array(["x"]), "x"),
        (pa.array([None], pa.int32()), None),
        (pa.array([Decimal("1.10")]), "1.10"),
        (pa.array([1_700_000_000_123], pa.timestamp("ms", "UTC")), "2023-11-14 22:13:20.123Z"),
    ],
)
def test_a_column_taken_as_text(name: str, values: pa.Array, text: str | None) -> None:
    (got,) = read_rows(rows_of({"v": values}), member(("v", "text"), format=name, text_columns=("v",))).values()
    assert got.data is not None
    assert got.data.batch.column("v").to_pylist() == [text]


@pytest.mark.parametrize("name", AS_THEY_ARE)
@pytest.mark.parametrize(
    "given_column", [{"v": pa.array([2**40])}, {"v": pa.array([b"\xff"])}, {"other": pa.array([1])}]
)
def test_what_an_upstream_no_longer_gives_fails_that_table_and_changes_no_value(
    name: str, given_column: dict[str, pa.Array]
) -> None:
    batch = rows_of({"fine": pa.array(["x"]), **given_column})
    type_name = "text" if pa.types.is_binary(batch.column("row").type[-1].type) else "integer"
    plan = FanoutPlan(TICK, (member(("v", type_name), format=name), member(("fine", "text"), id="u2", format=name)))
    shared = SharedBatch(batch, TickNumbers(TICK, {}, PARTITIONED), Readers(plan))
    with pytest.raises((pa.ArrowInvalid, KeyError)):
        shared.decode(plan.members[0])
    assert shared.decode(plan.members[1]).data is not None


def test_chunks_carry_rows_through_spark() -> None:
    batches = [wide_rows(), rows_of({"a": pa.array([], pa.int64())}), rows_of({"a": pa.array([1])}).slice(0, 1)]
    sent = pa.Table.from_batches(chunks(batches)).combine_chunks().to_batches()
    assert [batch.schema.names for batch in sent] == [["chunk"]]
    assert list(from_spark(sent)) == batches
    records = batch_of([b"x"])
    assert list(from_spark([records])) == [records], "records come as they are"


# ── what the rest of the program asks ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_a_format_says_what_statements_ask_of_it(name: str) -> None:
    found = FORMATS.get(name)
    assert found.name == name
    assert re.fullmatch("[a-z][a-z0-9_]*", name), "its name in capitals is a word of SQL"
    assert found.plain_type in TYPES
    assert found.key_type in ("text", "bytea")
    assert found.takes_columns or not found.own_columns
    assert any(not found.refuses(type_name) for type_name in ALL_TYPES)


@pytest.mark.parametrize("name", [name for name in NAMES if sql_word(name)])
def test_its_word_is_read_and_printed(name: str) -> None:
    columns = " (a bigint)" if FORMATS.get(name).takes_columns else ""
    text = f"CREATE TABLE public.t{columns} FROM SOURCE public.s FORMAT {name.upper()} INCLUDE KEY"
    (statement,) = parse_script(text)[0].statements
    assert statement.format == name  # type: ignore[union-attr]
    assert print_statement(statement) == text


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(pack_writer(tmp_path_factory.mktemp("packed")))


@pytest.mark.parametrize("name", NAMES)
def test_an_executor_reads_it_with_what_travels(name: str, packed: str) -> None:
    """It has pyarrow and numpy, and none of our packages: neither an entry point nor a file."""
    paths = [path for path in sys.path if path.endswith("site-packages")]
    code = f"""
import sys
sys.path[:] = [{packed!r}, *(p for p in sys.path if not p.endswith("site-packages")), *{paths!r}]
import importlib.abc
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pydantic", "pyspark", "airflow", "sqlglot", "deltalake", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.decode import decode_batch
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA, row_batch
import airflow_provider_mzshare, pyarrow as pa
assert {packed!r} in airflow_provider_mzshare.__file__
rows = [{{"key": b"k", "value": b"{{}}", "partition": 0, "offset": 0, "timestamp": None}}]
batch = pa.RecordBatch.from_pylist(rows, schema=INPUT_SCHEMA)
columns, include = (), (("key", "k"),)
if {name in OF_ROWS}:
    placed = [batch.column(column) for column in ("partition", "offset", "timestamp")]
    batch = row_batch(PARTITIONED, placed[:2], placed[2], {{"a": pa.array(["1"] if {name == "postgres"} else [1])}})
    columns, include = (("a", "bigint"),), ()
plan = FanoutPlan(1, (MemberPlan("u1", {format_target(name)!r}, columns, include, "", ""),))
print(decode_batch(batch, FanoutPlan.from_json(plan.to_json()))["u1"].data.batch.num_rows)
"""
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split() == ["1"], ran.stderr
