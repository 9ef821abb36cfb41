"""Hints of errors are commands that can be pasted, whatever a name looks like."""

from __future__ import annotations

import shlex

import pytest

from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.sql.script import QualifiedName, parse_name, parse_script
from airflow_provider_mzshare.errors import HasDependents, NameTaken, SpecConflict, UnknownItem

NAMES = [("public", "plain"), ("shop", "Order Lines"), ("public", 'say "hi"'), ("public", "it's"), ("public", "table")]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_they_must_be_written(name: tuple[str, str]) -> None:
    assert parse_name(display_name(name)) == QualifiedName(*name)


@pytest.mark.parametrize("name", NAMES)
def test_a_hint_can_be_pasted_into_a_shell(name: tuple[str, str]) -> None:
    shown = display_name(name)
    for error in (HasDependents(shown, ["t"]), SpecConflict(shown, "topic"), UnknownItem("source", shown)):
        command, subcommand, text = shlex.split(error.hint)
        assert (command, subcommand) == ("mzshare", "sql")
        (transaction,) = parse_script(text)
        assert getattr(transaction.statements[0], "name", QualifiedName(*name)) == QualifiedName(*name)


def test_what_is_unknown_is_told_with_what_is_known() -> None:
    assert UnknownItem(None, "nope").line == "nothing is named 'nope'. Try: mzshare status"
    assert UnknownItem("source", "t", "table").message == "'t' is a table, not a source"
    assert UnknownItem("job", "j").hint == "mzshare status"


def test_if_not_exists_is_only_advised_where_it_would_help() -> None:
    assert NameTaken("w", "source", "table").hint == "another name"
    assert "IF NOT EXISTS" in NameTaken("w", "table", "table").hint
