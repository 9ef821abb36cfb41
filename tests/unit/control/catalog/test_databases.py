"""Catalog URLs: what is accepted, what is shown, how a driver's error is told."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError

from airflow_provider_mzshare.control.catalog.databases import display_url, parse_url, told
from airflow_provider_mzshare.errors import CatalogUnreachable, CatalogUnusable, TransientError

POSTGRES = parse_url("postgresql+psycopg://me:s3cr3t@db:5432/catalog?password=s3cr3t")
SQLITE = parse_url("sqlite:////data/catalog.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_is_always_reached_through_psycopg_3(scheme: str) -> None:
    assert parse_url(f"{scheme}://me@db/catalog").drivername == "postgresql+psycopg"


def test_a_relative_file_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_url("sqlite:///x/catalog.db").database == str(tmp_path / "x" / "catalog.db")


@pytest.mark.parametrize(
    "url", ["", "catalog.db", "sqlite://", "sqlite:///:memory:", "mysql://u:s3cr3t@h/d", "postgresql://u:s3cr3t@h:x/d"]
)
def test_other_urls_are_refused_with_advice_and_without_a_password(url: str) -> None:
    with pytest.raises(CatalogUnusable) as refused:
        parse_url(url)
    assert "sqlite:////absolute/path" in refused.value.hint
    assert "s3cr3t" not in refused.value.line


def test_a_url_is_shown_without_its_secrets() -> None:
    assert display_url(POSTGRES) == "postgresql+psycopg://me:***@db:5432/catalog"
    assert display_url(SQLITE) == "sqlite:////data/catalog.db"


def test_a_lost_server_is_transient() -> None:
    error = OperationalError("SELECT 1", None, psycopg.OperationalError("server closed the connection\nmore"))
    answer = told(error, POSTGRES)
    assert isinstance(answer, TransientError)
    assert str(answer).endswith("does not answer: server closed the connection")
    assert "s3cr3t" not in str(answer)


def test_a_transaction_ended_by_the_server_is_transient() -> None:
    idle = psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")
    assert isinstance(told(DatabaseError("SELECT 1", None, idle), POSTGRES), CatalogUnreachable)


def test_a_locked_file_is_transient_and_a_broken_one_is_not() -> None:
    locked = OperationalError("BEGIN", None, sqlite3.OperationalError("database is locked"))
    assert "stayed locked for 30 s" in str(told(locked, SQLITE))
    assert isinstance(told(locked, SQLITE), CatalogUnreachable)
    broken = DatabaseError("BEGIN", None, sqlite3.DatabaseError("file is not a database"))
    assert isinstance(told(broken, SQLITE), CatalogUnusable)


def test_errors_of_our_own_making_stay_what_they_are() -> None:
    for error in (
        OperationalError("SELECT", None, sqlite3.OperationalError("no such table: x")),
        IntegrityError("INSERT", None, sqlite3.IntegrityError("UNIQUE constraint failed")),
    ):
        assert told(error, SQLITE) is error
    taken = IntegrityError("INSERT", None, psycopg.errors.UniqueViolation("duplicate key"))
    assert told(taken, POSTGRES) is taken
