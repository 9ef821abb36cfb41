"""Catalog URLs: what is accepted, what is shown, how a driver's error is told."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy.exc import DatabaseError, IntegrityError, InternalError, OperationalError, ProgrammingError

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database import databases
from airflow_provider_mzshare.control.catalog.database.databases import display_url, parse_url, told
from airflow_provider_mzshare.control.catalog.objects.item_names import lock_namespace
from airflow_provider_mzshare.errors import CatalogUnreachable, CatalogUnusable, MzShareError, TransientError

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
    assert display_url(POSTGRES) == "postgresql+psycopg://…@db:5432/catalog"
    assert display_url(SQLITE) == "sqlite:////data/catalog.db"


@pytest.mark.parametrize(
    "password", ["s3@cr3t", "s3@cr3t:1", "s3/@cr3t", "s3@cr3t/x", "s3?@cr3t", "s3@cr3t?x", "@s3cr3t@"]
)
def test_a_password_that_was_not_escaped_is_refused_and_no_piece_of_it_is_told(password: str) -> None:
    with pytest.raises(CatalogUnusable) as refused:
        parse_url(f"postgresql://me:{password}@db/catalog")
    assert "cr3t" not in refused.value.line
    assert "me:" not in refused.value.line
    assert str(parse_url(f"postgresql://me:{quote(password, safe='')}@db/catalog").password) == password


@pytest.mark.parametrize(
    "name", ["sp ace", "a%20b", "a?b=1", "ha#sh", "it's", 'say "x"', "ünï 😀", "co:lon", "a@b", "back\\slash"]
)
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name / "catalog.db"
    with Catalog(f"sqlite:///{file}") as catalog:
        assert catalog.url == catalog.display_url == f"sqlite:///{file}"
        assert catalog.revision() is None
        assert parse_url(catalog.url) == parse_url(f"sqlite:///{file}")
        databases.create_file(parse_url(catalog.url))
    assert list(tmp_path.rglob("*.db")) == [file]
    with closing(databases.open_engine(parse_url(f"sqlite:///{file}")).raw_connection()) as opened:
        opened.cursor().execute("CREATE TABLE t (x)")
    assert file.stat().st_size > 0
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {file.parent}


def test_a_lost_server_is_transient() -> None:
    error = OperationalError("SELECT 1", None, psycopg.OperationalError("server closed the connection\nmore"))
    answer = told(error, POSTGRES)
    assert isinstance(answer, TransientError)
    assert str(answer).endswith("does not answer: server closed the connection")
    assert "s3cr3t" not in str(answer)


def test_a_transaction_ended_by_the_server_is_transient() -> None:
    idle = psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")
    assert isinstance(told(DatabaseError("SELECT 1", None, idle), POSTGRES), CatalogUnreachable)


def test_a_server_that_takes_no_writes_for_now_is_transient() -> None:
    standby = psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction")
    answer = told(InternalError("UPDATE", None, standby), POSTGRES)
    assert isinstance(answer, CatalogUnreachable)
    assert "the server runs" in answer.hint
    assert "MZSHARE_CATALOG" in answer.hint


def test_a_missing_right_does_not_go_away_by_itself() -> None:
    denied = psycopg.errors.InsufficientPrivilege("permission denied for schema mzshare")
    assert isinstance(told(ProgrammingError("SELECT 1", None, denied), POSTGRES), CatalogUnusable)


def test_a_file_that_cannot_be_written_is_told_with_what_to_look_at() -> None:
    readonly = OperationalError("BEGIN", None, sqlite3.OperationalError("attempt to write a readonly database"))
    answer = told(readonly, SQLITE)
    assert isinstance(answer, CatalogUnusable)
    assert "MZSHARE_HOME" in answer.hint


@pytest.mark.parametrize(("is_file", "error"), [("home", CatalogUnusable), ("", CatalogUnreachable)])
def test_a_place_where_no_file_can_be_is_told_in_our_words(
    tmp_path: Path, is_file: str, error: type[MzShareError]
) -> None:
    """The folder is a file, or the file is a folder."""
    place = tmp_path / "home" / "catalog.db"
    if is_file:
        (tmp_path / "home").write_text("")
    else:
        place.mkdir(parents=True)
    with pytest.raises(error, match="the catalog at sqlite://") as caught, Catalog(f"sqlite:///{place}") as catalog:
        catalog.upgrade()
    assert "can be written" in caught.value.hint


def test_upgrading_what_is_no_database_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("this is no database " * 100)
    with pytest.raises(CatalogUnusable) as caught, Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
    assert caught.value.hint == "restore a backup, then run mzshare catalog repair"


def test_nobody_else_can_read_an_embedded_catalog(tmp_path: Path) -> None:
    with Catalog(f"sqlite:///{tmp_path / 'catalog.db'}") as catalog:
        catalog.upgrade()
        with catalog.write() as session:
            lock_namespace(session)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("catalog.db", "catalog.db-shm", "catalog.db-wal"), 0o600)


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
