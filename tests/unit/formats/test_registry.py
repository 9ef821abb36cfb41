"""Formats by name: what is not there is named, and one that cannot be loaded is a matter of its own tables."""

from __future__ import annotations

import json

import pytest

from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.errors import StatementError, UnknownFormat
from airflow_provider_mzshare.formats.registry import FORMATS, any_of, format_named, sql_words
from airflow_provider_mzshare.storage.fanout.plan import FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.results import merge_results
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.table_columns import user_columns
from airflow_provider_mzshare.storage.writing.member_plans import member_plan
from tests.support.plugins import FORMAT, installed
from tests.unit.storage.fanout.records import batch_of, member

KNOWN = "there is no format 'piped'; there are: json, text, bytes, none"


def test_a_stored_format_that_nobody_has_registered_is_named_with_what_there_is() -> None:
    stored = json.dumps({"reference": "t", "format": "piped"})
    spec = TableSpec.model_validate_json(stored)
    for ask in (
        lambda: user_columns(spec),
        lambda: member_plan("u1", spec, place=PARTITIONED, hash_version=1),
        lambda: format_named(spec.format),
    ):
        with pytest.raises(UnknownFormat, match=KNOWN) as found:
            ask()
        assert found.value.hint == "install the package that has it, here and where apps run"


def test_a_word_that_nobody_has_registered_is_refused_with_what_there_is() -> None:
    text = "CREATE TABLE t FROM SOURCE s FORMAT PIPED"
    with pytest.raises(StatementError, match="expected JSON, TEXT or BYTES, found PIPED"):
        parse_script(text)
    with installed(FORMAT, FORMATS):
        assert sql_words() == ("JSON", "TEXT", "BYTES", "PIPED")
        assert parse_script(text)
        with pytest.raises(StatementError, match="a column list needs FORMAT JSON or PIPED; FORMAT TEXT has the one"):
            parse_script("CREATE TABLE t (a int) FROM SOURCE s FORMAT TEXT")
        with pytest.raises(StatementError, match="column a: a line has no bytea; take text"):
            parse_script("CREATE TABLE t (a bytea) FROM SOURCE s FORMAT PIPED")
    assert sql_words() == ("JSON", "TEXT", "BYTES")


def test_a_word_that_is_planned_is_read_once_somebody_has_registered_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "CREATE TABLE t FROM SOURCE s FORMAT CSV"
    with pytest.raises(StatementError, match="FORMAT CSV is not supported yet"):
        parse_script(text)
    monkeypatch.setattr(FORMATS, "targets", {**FORMATS.targets, "csv": FORMATS.targets["text"]})
    assert parse_script(text)


def test_names_are_known_without_loading_a_format() -> None:
    assert any_of(("JSON",)) == "JSON"
    assert any_of(("JSON", "TEXT", "BYTES")) == "JSON, TEXT or BYTES"


def test_a_format_that_cannot_be_loaded_or_fails_harms_its_own_tables_alone(tmp_path) -> None:
    for name in ("good", "errors"):
        (tmp_path / name).mkdir()
    good = member(id="u1", format="text", data_path=str(tmp_path / "good"), errors_path=str(tmp_path / "errors"))
    missing = MemberPlan("u2", "no_such_module:FORMAT", (), (), "", "")
    broken = MemberPlan("u3", "json:dumps", (), (), "", "")
    (rows,) = write_partition(iter([batch_of([b"x"])]), FanoutPlan(1, (good, missing, broken)).to_json())
    found = merge_results(rows.to_pylist())
    assert found["u1"].error is None
    assert found["u2"].error == "ModuleNotFoundError: No module named 'no_such_module'"
    assert "AttributeError" in str(found["u3"].error)
