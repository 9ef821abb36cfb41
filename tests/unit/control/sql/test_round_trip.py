"""Statements made of anything survive print and parse: every kind, every field, odd names and strings."""

from __future__ import annotations

import string
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.postgres.specs import PostgresSpec
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.durations import MAX_MS, format_duration, parse_duration
from airflow_provider_mzshare.control.sql.names import QualifiedName, quote
from airflow_provider_mzshare.control.sql.queries import parse_query, print_query
from airflow_provider_mzshare.control.sql.script import parse_name, parse_script, print_statement
from airflow_provider_mzshare.core.ids import format_item_id
from airflow_provider_mzshare.core.specs import ColumnSpec, Include, LegacySpec, SourceSettings, Start

ODD = [
    "select", "source", "table", "view", "if", "a b", 'q"q', "$(rm -rf /)", "{{ x }}", "--conf", "/*", "';", "`", "\\",
    "%s", "😀", "\u202e", "İ", "ſource", "a.b", ".", "0", "public", "\u00a0", "u1", "offset", "key", "date", "name",
    "timestamp", "end", "values", "left", "interval", "array", "row", "none", "data", "with", "null", "true",
]  # fmt: skip
part = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=60),
    st.text(string.printable[:95], min_size=1, max_size=60),
)
names = st.builds(QualifiedName, part, part)
references = st.lists(part, min_size=1, max_size=3).map(tuple)
some = st.booleans()
column_names = part.filter(lambda name: not set(name) & set(" ,;{}()=") and not name.lower().startswith("_mz_"))
types = st.sampled_from(["boolean", "smallint", "bigint", "double", "numeric(5,2)", "text", "timestamptz", "jsonb"])
key_types = st.sampled_from(["boolean", "smallint", "bigint", "numeric(5,2)", "text", "timestamptz"])
columns = st.lists(column_names, max_size=5, unique_by=str.lower).flatmap(
    lambda found: st.tuples(*(st.builds(ColumnSpec, name=st.just(name), type=types) for name in found))
)
texts = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=60) | st.sampled_from(["it's", "a\nb", "\t"])
whole = st.integers(1, 2**40)
# Tenths of seconds and whole milliseconds: what a float and a duration both say exactly.
source_settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "trigger_interval_ms": st.integers(50, 10**9),
        "max_records_per_tick": whole,
        "idle_tick_seconds": st.integers(1, 10**6).map(lambda tenths: tenths / 10),
        "backfill_rate": st.integers(0, 10**9),
        "cutover_wait_ms": st.integers(0, 10**9),
    },
)
starts = st.one_of(
    st.just(Start()),
    st.integers(-(2**62), 2**62).map(lambda at: Start(mode="timestamp", timestamp=at)),
    st.lists(st.integers(0, 2**62), min_size=1, max_size=4).map(
        lambda offsets: Start(mode="offset", asked={str(n): offset for n, offset in enumerate(offsets)})
    ),
)


@st.composite
def outputs(draw: st.DrawFn) -> values.Output:
    """Every name once: columns, those of the key, what is included, the errors."""
    written, key_format = (draw(st.sampled_from(each)) for each in (("json", "text", "bytes"), (None, "json", "text")))
    found = iter(draw(st.lists(column_names, min_size=12, max_size=12, unique_by=str.lower)))
    free = (name for name in found if name.lower() != "data")

    def listed(most: int, kinds: st.SearchStrategy[str]) -> tuple[ColumnSpec, ...]:
        return tuple(ColumnSpec(name=next(free), type=draw(kinds)) for _ in range(draw(st.integers(0, most))))

    keyed = draw(some)
    columns = listed(3, types) if written == "json" else ()
    key_columns = listed(2, key_types if keyed else types) if key_format == "json" else ()
    metadata = [draw(st.sampled_from(["partition", "offset", "timestamp"])) for _ in range(draw(st.integers(0, 2)))]
    if not key_columns and (keyed or key_format or draw(some)):
        metadata.insert(draw(st.integers(0, len(metadata))), "key")
    include = tuple(
        Include(what=what, name=draw(st.just(what) | st.just(next(free)))) for what in dict.fromkeys(metadata)
    )  # type: ignore[arg-type]
    taken = {name.lower() for name in (*(c.name for c in (*columns, *key_columns)), *(i.name for i in include))}
    clear = len(taken) == len(columns) + len(key_columns) + len(include)
    include = include if clear else tuple(Include(what=each.what, name=next(free)) for each in include)
    errors = next(free) if keyed and draw(some) else None
    return values.Output(written, columns, include, "upsert" if keyed else "none", key_format, key_columns, errors)


@st.composite
def column_options(draw: st.DrawFn, column: st.SearchStrategy[str]) -> dict[str, tuple[str, ...]]:
    found = draw(st.lists(column, max_size=4, unique=True))
    cut = draw(st.integers(0, len(found)))
    return {"text_columns": tuple(found[:cut]), "exclude_columns": tuple(found[cut:])}


paths = st.lists(part, min_size=1, max_size=4).map(lambda parts: ".".join(map(quote, parts)))


@st.composite
def create_tables(draw: st.DrawFn) -> values.CreateTable:
    bare = draw(some)
    envelope = draw(st.sampled_from(["none", "upsert"]))
    output = values.Output("none", draw(columns), envelope=envelope) if bare else draw(outputs())
    return values.CreateTable(
        name=draw(names),
        if_not_exists=draw(some),
        source=draw(names),
        reference=draw(st.none() | references),
        **output.by_name(),
        options={
            "on_decode_error": draw(st.sampled_from(["record", "stop"])),
            "retain_history_seconds": draw(st.integers(0, 10**9)),
            "snapshot": draw(some),
            **draw(column_options(part)),
        },
    )


@st.composite
def legacies(draw: st.DrawFn, shape: str) -> LegacySpec:
    fields: dict[str, Any] = {"shape": shape, "progress": draw(st.none() | names.map(str))}
    if shape == "schemas":
        fields["schemas"] = draw(st.lists(part, min_size=1, max_size=3, unique=True).map(tuple))
    if shape == "tables":
        pairs = st.tuples(references.map(lambda parts: ".".join(map(quote, parts))), names.map(str))
        unique = (lambda pair: pair[0], lambda pair: pair[1])
        fields["tables"] = draw(st.lists(pairs, min_size=1, max_size=3, unique_by=unique).map(tuple))
    return LegacySpec(**fields, **(draw(column_options(paths)) if shape != "single" else {}))


@st.composite
def create_sources(draw: st.DrawFn) -> values.CreateSource:
    spec: KafkaSourceSpec | LoadGeneratorSpec | PostgresSpec
    output = None
    kind = draw(st.sampled_from(["kafka", "load generator", "postgres"]))
    if kind == "postgres":
        spec = PostgresSpec(connection=draw(part), publication=draw(part))
    elif kind == "kafka":
        legacy = draw(st.none() | legacies("single"))
        spec = KafkaSourceSpec(connection=draw(part), topic=draw(part), start=draw(starts), legacy=legacy)
        output = draw(outputs()) if legacy else None
    else:
        generator = draw(st.sampled_from(["counter", "auction", "key_value"]))
        shapes = ["all_tables", "schemas", "tables"] if generator == "auction" else ["single"]
        legacy = draw(st.none() | st.sampled_from(shapes).flatmap(legacies))
        envelope = draw(st.sampled_from(["none", "upsert"]))
        output = values.Output(envelope=envelope) if legacy and legacy.shape == "single" else None
        fields = {
            "seed": draw(st.integers(-(2**62), 2**62)),
            "tick_interval_ms": draw(whole.filter(lambda n: n < MAX_MS)),
        }
        fields |= {"batch_size": draw(st.integers(1, 10**6)), "up_to": draw(st.none() | st.integers(0, 2**40))}
        if generator == "key_value":
            fields |= {
                "keys": draw(st.integers(1, 10**12)),
                "value_size": draw(st.integers(1, 1 << 20)),
                "partitions": draw(st.integers(1, 64)),
            }
        spec = LoadGeneratorSpec(generator=generator, legacy=legacy, **fields)
    connection = None if isinstance(spec, LoadGeneratorSpec) else spec.connection
    return values.CreateSource(draw(names), draw(some), connection, spec, draw(source_settings), output)


def in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Each in its canonical print, as statements hold it."""
    column, other, table, alias = (in_quotes(draw(part)) for _ in range(4))
    full = ".".join((in_quotes(draw(part)), in_quotes(draw(part))))
    literal = "'" + draw(texts).replace("'", "''") + "'"
    text = draw(
        st.sampled_from(
            [
                f'SELECT "x".{column} AS {other} FROM {full} AS "x"',
                f"SELECT {column}, {literal} FROM {table} WHERE {other} = {literal} ORDER BY 1",
                f"WITH {alias} AS (SELECT 1 AS {column}) SELECT {column} FROM {alias} UNION ALL SELECT {literal}",
                f"SELECT COUNT(*) FROM (SELECT {column} FROM {table}) AS {alias}({other}) GROUP BY {other}",
                f"SELECT CAST({column} AS BIGINT) FROM {table} AS {alias} JOIN {full} ON {column} IS NULL",
            ]
        )
    )
    return print_query(parse_query(text))


kinds = st.sampled_from(["source", "table", "view"])


def named(kind: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, QualifiedName | str]]:
    return kind.flatmap(lambda k: st.tuples(st.just(k), part if k == "schema" else names))


subsources = st.lists(st.tuples(references, st.none() | names), min_size=1, max_size=3, unique_by=lambda pair: pair[0])
table_settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "on_decode_error": st.sampled_from(["record", "stop"]),
        "retain_history_seconds": st.integers(0, 10**9),
    },
)


def some_reset(*fields: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(fields), min_size=1, unique=True).map(tuple)


@st.composite
def comments(draw: st.DrawFn) -> values.CommentOn:
    kind, name = draw(named(st.sampled_from(["source", "table", "view", "schema", "column"])))
    column = draw(part) if kind == "column" else None
    return values.CommentOn(kind, name, draw(st.none() | texts), column)  # type: ignore[arg-type]


@st.composite
def create_subsources(draw: st.DrawFn) -> values.CreateSubsource:
    reference = draw(st.just(()) | references)
    return values.CreateSubsource(draw(names), draw(columns), draw(names), reference, **draw(column_options(part)))


@st.composite
def add_subsources(draw: st.DrawFn) -> values.AddSubsources:
    return values.AddSubsources(draw(names), tuple(draw(subsources)), **draw(column_options(paths)))


STATEMENTS: dict[type, st.SearchStrategy[Any]] = {
    values.CreateSource: create_sources(),
    values.CreateTable: create_tables(),
    values.CreateSubsource: create_subsources(),
    values.CreateView: st.builds(values.CreateView, names, some, queries()),
    values.CreateSchema: st.builds(values.CreateSchema, part, some),
    values.AlterSourceSet: st.one_of(
        st.builds(values.AlterSourceSet, names, source_settings.filter(bool)),
        st.builds(values.AlterSourceSet, names, st.just({}), some_reset(*SourceSettings.model_fields)),
    ),
    values.AddSubsources: add_subsources(),
    values.DropSubsources: st.builds(
        values.DropSubsources, names, st.lists(names, min_size=1, max_size=3, unique=True).map(tuple), some, some
    ),
    values.RefreshReferences: st.builds(values.RefreshReferences, names | st.integers(1, 10**6).map(format_item_id)),
    values.AlterTable: st.builds(values.AlterTable, names, st.just("resume"))
    | st.builds(values.AlterTable, names, st.just("resnapshot"), st.booleans()),
    values.AlterTableSet: st.one_of(
        st.builds(values.AlterTableSet, names, table_settings.filter(bool)),
        st.builds(values.AlterTableSet, names, st.just({}), some_reset("on_decode_error", "retain_history_seconds")),
    ),
    values.Rename: st.builds(
        lambda named, new: values.Rename(*named, new),
        named(st.sampled_from(["source", "table", "view", "schema"])),
        part,
    ),
    values.Swap: st.one_of(
        st.builds(values.Swap, st.just("table"), names, names, st.booleans()),
        st.builds(values.Swap, st.just("schema"), part, part, st.booleans()),
    ).filter(lambda swap: swap.name != swap.other),
    values.AlterSystem: st.one_of(
        st.builds(values.AlterSystem, st.sampled_from(get_args(values.Flag)), st.none() | some),
        st.builds(
            values.AlterSystem, part.filter(lambda name: name not in get_args(values.Flag)), st.none() | some | texts
        ),
    ),
    values.CommentOn: comments(),
    values.DropItem: st.builds(values.DropItem, kinds, names, some, some),
    values.DropSchema: st.builds(values.DropSchema, part, some, some),
    values.Show: st.one_of(
        st.builds(values.Show, st.sampled_from(["sources", "tables", "views", "subsources"]), st.none() | part),
        st.just(values.Show("schemas")),
    ),
    values.ShowCreate: st.builds(values.ShowCreate, st.none() | kinds, names),
    values.Query: st.builds(values.Query, queries()),
    values.Write: st.builds(values.Write, st.sampled_from(["INSERT", "UPDATE", "DELETE"]), names),
}
relaxed = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_every_kind_of_statement_is_tried() -> None:
    assert set(STATEMENTS) == set(get_args(values.Plain))


@pytest.mark.parametrize("kind", STATEMENTS, ids=lambda kind: kind.__name__)
def test_statements_survive_print_and_parse(kind: type) -> None:
    @relaxed
    @given(STATEMENTS[kind], some)
    def check(plain: Any, explained: bool) -> None:
        statement = values.Explain(plain) if explained else plain
        printed = print_statement(statement)
        ((again,),) = (transaction.statements for transaction in parse_script(printed))
        assert again == statement
        assert print_statement(again) == printed

    check()


@relaxed
@given(names)
def test_odd_names_survive_print_and_parse(name: QualifiedName) -> None:
    assert parse_name(str(name)) == name


@settings(max_examples=200, deadline=None)
@given(st.integers(0, MAX_MS))
def test_durations_survive_print_and_parse(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds
