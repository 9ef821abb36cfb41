"""Every statement of the dialect has its room, and names are foreseen as the statements before will leave them."""

from __future__ import annotations

from typing import get_args

import pytest

from airflow_provider_mzshare.control.sql.script import QualifiedName, parse_name, parse_script
from airflow_provider_mzshare.control.sql.values import Plain
from airflow_provider_mzshare.control.statements.foreseen import ForeseenNames, Made
from airflow_provider_mzshare.control.statements.registry import HANDLERS


def test_every_statement_has_one_that_carries_it_out() -> None:
    assert set(get_args(Plain)) == set(HANDLERS)


def after(script: str) -> ForeseenNames:
    names = ForeseenNames()
    names.make(QualifiedName("public", "new"))
    for transaction in parse_script(script):
        for statement in transaction.statements:
            names.note(statement)  # type: ignore[arg-type]
    return names


@pytest.mark.parametrize(
    ("script", "name", "behind"),
    [
        ("SHOW TABLES", "a", "a"),
        ("ALTER TABLE a RENAME TO b", "b", "a"),
        ("ALTER TABLE a RENAME TO b", "a", None),
        ("ALTER TABLE a RENAME TO b; ALTER TABLE b RENAME TO c", "c", "a"),
        ("ALTER TABLE a SWAP WITH s.b", "s.b", "a"),
        ("ALTER TABLE a SWAP WITH b; ALTER TABLE a SWAP WITH b", "a", "a"),
        ("DROP TABLE a", "a", None),
        ("DROP SCHEMA s CASCADE", "s.a", None),
        ("ALTER SCHEMA s RENAME TO r", "r.a", "s.a"),
        ("ALTER SCHEMA s RENAME TO r", "s.a", None),
        ("ALTER SCHEMA s RENAME TO r; ALTER SCHEMA r SWAP WITH q", "q.a", "s.a"),
        ("ALTER SCHEMA s RENAME TO r; ALTER SCHEMA r SWAP WITH q", "r.a", "q.a"),
        ("ALTER TABLE s.a RENAME TO b; ALTER SCHEMA s SWAP WITH q", "q.b", "s.a"),
        ("ALTER TABLE s.a RENAME TO b; ALTER SCHEMA s SWAP WITH q", "q.a", None),
        ("ALTER SCHEMA s SWAP WITH q; ALTER TABLE q.a RENAME TO b", "q.b", "s.a"),
    ],
)
def test_names_are_foreseen(script: str, name: str, behind: str | None) -> None:
    assert after(script).behind(parse_name(name)) == (parse_name(behind) if behind else None)


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("SHOW TABLES", "new"),
        ("ALTER TABLE new RENAME TO b", "b"),
        ("ALTER TABLE new SWAP WITH b", "b"),
        ("ALTER SCHEMA public SWAP WITH s", "s.new"),
    ],
)
def test_what_the_script_makes_moves_too(script: str, name: str) -> None:
    assert isinstance(after(script).behind(parse_name(name)), Made)
