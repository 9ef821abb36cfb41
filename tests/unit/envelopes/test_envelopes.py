"""Envelopes by their registry: from the statement to the spec and the plan, and back; also one that is not ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import airflow_provider_mzshare
from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kafka.specs import KafkaSourceSpec
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.catalog.objects.lookup import parse_table_spec
from airflow_provider_mzshare.control.sql import values
from airflow_provider_mzshare.control.sql.printing import print_create_table
from airflow_provider_mzshare.control.sql.script import QualifiedName, parse_script
from airflow_provider_mzshare.control.statements.purification import purify
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.errors import StatementError, UnknownEnvelope
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from tests.support.plugins import ENVELOPE, installed

ADDING = "adding_envelope:ADDING"
PACKAGE = Path(airflow_provider_mzshare.__file__).parent


@pytest.fixture
def adding() -> Iterator[None]:
    with installed(ENVELOPE, ENVELOPES):
        yield


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


@pytest.mark.usefixtures("adding")
def test_an_envelope_goes_from_the_statement_to_the_spec_and_the_plan_and_back() -> None:
    spec = parse("FORMAT TEXT INCLUDE KEY ENVELOPE ADDING").to_spec("r")
    assert parse_table_spec(spec.model_dump_json()).envelope == "adding"
    plan = FanoutPlan(1, (member_plan("u1", spec, place=PARTITIONED, hash_version=1),))
    assert [member.envelope for member in FanoutPlan.from_json(plan.to_json()).members] == [ADDING]
    printed = print_create_table(QualifiedName("public", "t"), QualifiedName("public", "s"), spec)
    assert "INCLUDE KEY ENVELOPE ADDING" in printed


@pytest.mark.usefixtures("adding")
def test_what_an_envelope_needs_is_told_at_its_clause() -> None:
    with pytest.raises(StatementError, match="ENVELOPE ADDING needs INCLUDE KEY"):
        parse("FORMAT TEXT ENVELOPE ADDING")


@pytest.mark.usefixtures("adding")
def test_a_table_of_any_envelope_keeps_its_name() -> None:
    source = KafkaSourceSpec(connection="c", topic="r")
    for word in ("ADDING", "UPSERT", "NONE"):
        spec = purify(parse(f"FORMAT TEXT INCLUDE KEY ENVELOPE {word}"), source, ReferenceInfo(None, "r"))
        assert spec.envelope == word.lower()


def test_one_that_is_not_here_is_refused_in_a_statement_and_where_the_table_would_be_filled() -> None:
    with pytest.raises(StatementError, match="expected NONE, UPSERT or DEBEZIUM, found ADDING"):
        parse("FORMAT TEXT ENVELOPE ADDING")
    stored = parse_table_spec(TableSpec(reference="r", format="text", envelope="adding").model_dump_json())
    assert "ENVELOPE ADDING" in print_create_table(QualifiedName("public", "t"), QualifiedName("public", "s"), stored)
    with pytest.raises(UnknownEnvelope, match="there is no envelope 'adding'"):
        member_plan("u1", stored, place=PARTITIONED, hash_version=1)


def test_nobody_else_tests_for_an_envelope_by_its_name() -> None:
    told_apart = re.compile(r"""envelope\w*\)?\s*(==|!=|in|not in)\s*[("']""")
    files = [file for file in PACKAGE.rglob("*.py") if "envelopes" not in file.relative_to(PACKAGE).parts]
    assert [file.name for file in files if told_apart.search(file.read_text())] == []
