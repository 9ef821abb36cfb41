"""What a table's key is, once its upstream was asked; and what is refused for want of one."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.connectors.load_generator.upstream import LoadGeneratorUpstream
from airflow_provider_mzshare.connectors.registry import CONNECTORS
from airflow_provider_mzshare.control.definition_errors import BadExport
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.statements.purification import purify
from airflow_provider_mzshare.core.specs import ColumnSpec, SourceSpec, TableSpec
from airflow_provider_mzshare.storage.writing.member_plans import key_of
from tests.support.parsing import one

KAFKA = KafkaSourceSpec(connection="c", topic="r")
TOPIC = ReferenceInfo(None, "r")


def purified(clauses: str, source: SourceSpec = KAFKA, reference: ReferenceInfo = TOPIC) -> TableSpec:
    statement = one(f"CREATE TABLE t {clauses}")
    assert isinstance(statement, values.CreateTable)
    return purify(statement, source, reference)


def made(clauses: str, generator: str, output: str) -> TableSpec:
    source = LoadGeneratorSpec.model_validate({"generator": generator})
    offered = LoadGeneratorUpstream(source).references()
    return purified(clauses, source, next(each for each in offered if each.name == output))


@pytest.mark.parametrize(
    ("clauses", "key"),
    [
        ("FROM SOURCE s FORMAT JSON INCLUDE OFFSET, KEY ENVELOPE UPSERT", ("key",)),
        ("FROM SOURCE s FORMAT TEXT INCLUDE KEY AS \"K\" ENVELOPE UPSERT", ("K",)),
        ("FROM SOURCE s KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (b int, a text), OFFSET ENVELOPE UPSERT",
         ("b", "a")),
        ("FROM SOURCE s KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (b int, a text)", ()),
        ("FROM SOURCE s FORMAT JSON INCLUDE KEY", ()),
    ],
)  # fmt: skip
def test_the_key_of_decoded_records_is_what_is_included_of_it(clauses: str, key: tuple[str, ...]) -> None:
    assert key_of(purified(clauses)) == key


@pytest.mark.parametrize(
    ("generator", "output", "key"),
    [("key_value", "key_value", ("key",)), ("counter", "counter", ("counter",)), ("auction", "users", ("id",))],
)
def test_the_key_of_an_upstream_with_columns_is_its_own(generator: str, output: str, key: tuple[str, ...]) -> None:
    spec = made("FROM SOURCE s ENVELOPE UPSERT", generator, output)
    assert key_of(spec) == key
    assert key_of(TableSpec.model_validate_json(spec.model_dump_json())) == key
    assert key_of(made("FROM SOURCE s", generator, output)) == ()


def test_a_key_may_be_taken_as_text() -> None:
    spec = made("FROM SOURCE s ENVELOPE UPSERT WITH (TEXT COLUMNS (id))", "auction", "users")
    assert (key_of(spec), spec.columns[0]) == (("id",), ColumnSpec(name="id", type="text"))


def refused(clauses: str, source: SourceSpec, reference: ReferenceInfo) -> tuple[str, str]:
    with pytest.raises(BadExport) as caught:
        purified(clauses, source, reference)
    return caught.value.message, str(caught.value.hint)


GENERATED = LoadGeneratorSpec(generator="counter")


def reference(key_type: str = "bigint", keys: tuple[str, ...] = ("Id",)) -> ReferenceInfo:
    columns = (ColumnSpec(name="Id", type=key_type), ColumnSpec(name="v", type="text"))
    return ReferenceInfo("x", "y", columns, keys)


@pytest.mark.parametrize(
    ("clauses", "given", "message", "hint"),
    [
        ("ENVELOPE UPSERT", reference(keys=()), "ENVELOPE UPSERT needs a key, and reference x.y has none",
         "leave ENVELOPE UPSERT out: every record is a row then"),
        ("ENVELOPE UPSERT WITH (EXCLUDE COLUMNS (\"Id\"))", reference(),
         'EXCLUDE COLUMNS leaves out "Id", which is in the key of ENVELOPE UPSERT', 'EXCLUDE COLUMNS without "Id"'),
        ("ENVELOPE UPSERT", reference("double"),
         "column Id: double precision cannot be in a key: equal values have several forms; take numeric",
         'TEXT COLUMNS ("Id")'),
        ("ENVELOPE UPSERT", reference("jsonb"),
         "column Id: jsonb cannot be in a key: equal values have several forms; take text", 'TEXT COLUMNS ("Id")'),
        ("KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a int) ENVELOPE UPSERT", reference(),
         "reference x.y has columns of its own and nothing to decode",
         "leave KEY FORMAT JSON VALUE FORMAT TEXT and INCLUDE out"),
        ("FORMAT TEXT INCLUDE KEY ENVELOPE UPSERT (VALUE DECODING ERRORS = INLINE)", reference(),
         "reference x.y has columns of its own and nothing to decode",
         "leave FORMAT TEXT, INCLUDE and VALUE DECODING ERRORS out"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_the_upstream_is_refused(
    clauses: str, given: ReferenceInfo, message: str, hint: str
) -> None:
    assert refused(f"FROM SOURCE s {clauses}", GENERATED, given) == (f"table public.t: {message}", hint)


CHANGES = '(v text, "Id" bigint, PRIMARY KEY ("Id") NOT ENFORCED) FROM SOURCE s FORMAT JSON ENVELOPE DEBEZIUM'


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        (("Id",), "leave FORMAT JSON, PRIMARY KEY and ENVELOPE DEBEZIUM out; ENVELOPE UPSERT has a row for each key"),
        ((), "leave FORMAT JSON, PRIMARY KEY and ENVELOPE DEBEZIUM out"),
    ],
)
def test_changes_of_an_upstream_with_columns_are_refused_with_what_it_takes(keys: tuple[str, ...], hint: str) -> None:
    message = "table public.t: reference x.y has columns of its own and nothing to decode, so ENVELOPE DEBEZIUM is not"
    assert refused(CHANGES, GENERATED, reference(keys=keys)) == (f"{message} possible", hint)


def test_what_an_upstream_with_columns_advises_instead_is_taken() -> None:
    for clauses in ("FROM SOURCE s", "FROM SOURCE s ENVELOPE UPSERT"):
        purified(clauses, GENERATED, reference())


def test_an_upstream_that_only_knows_bytes_needs_a_format_also_for_a_key() -> None:
    message, hint = refused("FROM SOURCE s ENVELOPE UPSERT", KAFKA, TOPIC)
    assert message == "table public.t: a Kafka table needs FORMAT, to say how records are decoded"
    assert hint == "FORMAT JSON, TEXT or BYTES"


def test_an_upstream_whose_records_have_no_key_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(CONNECTORS.get("kafka")), "metadata", ("offset",))
    clauses = "FROM SOURCE s KEY FORMAT JSON VALUE FORMAT TEXT INCLUDE KEY (a int)"
    assert refused(clauses, KAFKA, TOPIC) == ("table public.t: records of a Kafka source have no key", "INCLUDE OFFSET")
