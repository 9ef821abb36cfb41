"""Envelopes by their registry: from the statement to the spec and the plan, and back; also one that is not ours."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest

import airflow_provider_mzshare
from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.catalog.objects.lookup import parse_table_spec
from airflow_provider_mzshare.control.definition_errors import BadExport
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.printing import print_create_table
from airflow_provider_mzshare.control.sql.script import QualifiedName, parse_script
from airflow_provider_mzshare.control.statements.purification import purify
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.envelopes.base import DELETES, KeyedEnvelope
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.errors import StatementError, UnknownEnvelope
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan

PACKAGE = Path(airflow_provider_mzshare.__file__).parent


class Keyed:
    """It keeps the first record of a key, until one without a value takes it away."""

    name = "keyed"
    appends = False

    def lacks(self, *, format: str, include: Collection[str]) -> str | None:
        return None if "key" in include else "INCLUDE KEY"

    def deletes(self, values: pa.Array) -> pa.Array:
        return values.is_null()

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        rows = {tuple(row[key] for key in keys): row for row in before.to_pylist()}
        for event in events.to_pylist():
            key = tuple(event[name] for name in keys)
            if event.pop(DELETES):
                rows.pop(key, None)
            else:
                rows.setdefault(key, event)
        return pa.Table.from_pylist(list(rows.values()), schema=before.schema)


KEYED: KeyedEnvelope = Keyed()


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered as an entry point of another package would be."""
    monkeypatch.setattr(ENVELOPES, "targets", {**ENVELOPES.targets, "keyed": f"{__name__}:KEYED"})
    monkeypatch.setattr(ENVELOPES, "_loaded", {})


def parse(clauses: str) -> values.CreateTable:
    (transaction,) = parse_script(f"CREATE TABLE t FROM SOURCE s (REFERENCE r) {clauses}")
    (statement,) = transaction.statements
    assert isinstance(statement, values.CreateTable)
    return statement


@pytest.mark.parametrize("name", list(ENVELOPES))
def test_an_envelope_bears_the_name_it_is_registered_by(name: str) -> None:
    envelope = ENVELOPES.get(name)
    assert envelope.name == name


@pytest.mark.parametrize("clauses", ["FORMAT TEXT", "FORMAT TEXT ENVELOPE NONE", "ENVELOPE NONE", ""])
def test_a_table_that_names_none_takes_every_record_for_a_row(clauses: str) -> None:
    spec = parse(clauses).to_spec("r")
    assert spec.envelope == "none"
    assert "ENVELOPE" not in print_create_table(QualifiedName("public", "t"), QualifiedName("public", "s"), spec)


@pytest.mark.usefixtures("keyed")
def test_an_envelope_goes_from_the_statement_to_the_spec_and_the_plan_and_back() -> None:
    spec = parse("FORMAT TEXT INCLUDE KEY ENVELOPE KEYED").to_spec("r")
    assert parse_table_spec(spec.model_dump_json()).envelope == "keyed"
    plan = FanoutPlan(1, (member_plan("u1", spec, place=PARTITIONED, hash_version=1),))
    assert [member.envelope for member in FanoutPlan.from_json(plan.to_json()).members] == ["keyed"]
    printed = print_create_table(QualifiedName("public", "t"), QualifiedName("public", "s"), spec)
    assert "INCLUDE KEY ENVELOPE KEYED" in printed


@pytest.mark.usefixtures("keyed")
def test_what_an_envelope_needs_is_told_at_its_clause() -> None:
    with pytest.raises(StatementError, match="ENVELOPE KEYED needs INCLUDE KEY"):
        parse("FORMAT TEXT ENVELOPE KEYED")


@pytest.mark.usefixtures("keyed")
def test_a_table_whose_rows_would_change_is_not_made_and_filled_as_if_they_did_not() -> None:
    source = KafkaSourceSpec(connection="c", topic="r")
    statement = parse("FORMAT TEXT INCLUDE KEY ENVELOPE KEYED")
    with pytest.raises(BadExport, match="ENVELOPE KEYED changes rows"):
        purify(statement, source, ReferenceInfo(None, "r"))
    assert purify(parse("FORMAT TEXT"), source, ReferenceInfo(None, "r")).envelope == "none"


def test_one_that_is_not_here_is_refused_in_a_statement_and_where_the_table_would_be_filled() -> None:
    with pytest.raises(StatementError, match="ENVELOPE DEBEZIUM is not supported yet; there is NONE and UPSERT"):
        parse("FORMAT TEXT ENVELOPE DEBEZIUM")
    stored = parse_table_spec(TableSpec(reference="r", format="text", envelope="keyed").model_dump_json())
    assert "ENVELOPE KEYED" in print_create_table(QualifiedName("public", "t"), QualifiedName("public", "s"), stored)
    with pytest.raises(UnknownEnvelope, match="there is no envelope 'keyed'"):
        member_plan("u1", stored, place=PARTITIONED, hash_version=1)


@pytest.mark.parametrize("envelope", [ENVELOPES.get("upsert"), KEYED], ids=lambda envelope: envelope.name)
def test_what_comes_out_does_not_depend_on_how_ticks_are_grouped(envelope: KeyedEnvelope) -> None:
    schema = pa.schema([("k", pa.int64()), ("l", pa.string()), ("v", pa.string()), ("_mz_tick", pa.int64())])
    draw = random.Random(14)
    events = pa.Table.from_pylist(
        [
            {
                "k": draw.randrange(4),
                "l": draw.choice("ab"),
                "v": str(n),
                "_mz_tick": n // 5,
                DELETES: draw.random() < 0.4,
            }
            for n in range(200)
        ],
        schema=schema.append(pa.field(DELETES, pa.bool_())),
    )

    def folded(ticks_at_once: int) -> list[dict[str, object]]:
        state = schema.empty_table()
        for first in range(0, 40, ticks_at_once):
            some = events.slice(first * 5, ticks_at_once * 5)
            touched = set(zip(some["k"].to_pylist(), some["l"].to_pylist(), strict=True))
            rows = state.to_pylist()
            before = [row for row in rows if (row["k"], row["l"]) in touched]
            after = envelope.fold(some, pa.Table.from_pylist(before, schema=schema), ("k", "l"))
            kept = [row for row in rows if (row["k"], row["l"]) not in touched]
            state = pa.Table.from_pylist(kept + after.to_pylist(), schema=schema)
        return sorted(state.to_pylist(), key=lambda row: (row["k"], row["l"]))

    assert 0 < len(folded(1)) < 8
    assert folded(1) == folded(4) == folded(40)


def test_an_upsert_keeps_the_last_record_of_a_key_and_none_after_a_deletion() -> None:
    upsert = cast("KeyedEnvelope", ENVELOPES.get("upsert"))
    assert upsert.deletes(pa.array([b"", None, b"x"])).to_pylist() == [False, True, False]
    rows = [(1, "a"), (2, "b"), (1, "c"), (2, None), (3, None), (4, None), (4, "g")]
    events = pa.Table.from_pylist([{"k": k, "v": v, DELETES: v is None} for k, v in rows])
    before = pa.Table.from_pylist([{"k": 2, "v": "old"}, {"k": 3, "v": "old"}])
    after = upsert.fold(events, before, ("k",)).to_pylist()
    assert sorted(after, key=lambda row: row["k"]) == [{"k": 1, "v": "c"}, {"k": 4, "v": "g"}]


def test_nobody_else_tests_for_an_envelope_by_its_name() -> None:
    told_apart = re.compile(r"""envelope\w*\)?\s*(==|!=|in|not in)\s*[("']""")
    files = [file for file in PACKAGE.rglob("*.py") if "envelopes" not in file.relative_to(PACKAGE).parts]
    assert [file.name for file in files if told_apart.search(file.read_text())] == []
