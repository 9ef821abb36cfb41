"""What a source offers: noted at its making and at REFRESH, listed, and printed as statements that run."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from unittest import mock

import pytest

from airflow_provider_mzshare.cli.main import run
from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.control.catalog.objects.references import list_references, store_references
from airflow_provider_mzshare.errors import UnknownItem
from tests.integration.statements.conftest import AUCTION
from tests.support.statements import Session

OUTPUTS = ["organizations", "users", "accounts", "auctions", "bids"]


def offered(sql: Session, name: str = "a") -> list[str]:
    with sql.catalog.read() as session:
        return [reference.name for reference in list_references(session, sql.source(name).id)]


def test_references_are_noted_at_creation_and_at_refresh_and_only_then(sql_on_both: Session) -> None:
    sql = sql_on_both
    sql.run(AUCTION)
    assert offered(sql) == OUTPUTS
    with sql.catalog.write() as session:  # as if the upstream had been otherwise when it was asked
        store_references(session, sql.source("a").id, [ReferenceInfo("auction", "bids", ())])
    sql.run("CREATE TABLE t FROM SOURCE a (REFERENCE users); ALTER SOURCE a SET (BACKFILL RATE 1)")
    assert offered(sql) == ["bids"]
    assert sql.run("ALTER SOURCE a REFRESH REFERENCES") == ["ALTER SOURCE public.a u1 (5 references, changed)"]
    assert offered(sql) == OUTPUTS
    assert sql.run("ALTER SOURCE u1 REFRESH REFERENCES") == [
        "ALTER SOURCE public.a u1 (5 references, the same as before)"
    ]
    sql.run("CREATE SOURCE u1 FROM LOAD GENERATOR COUNTER")
    assert sql.run("ALTER SOURCE u1 REFRESH REFERENCES") == [
        "ALTER SOURCE public.u1 u3 (1 reference, the same as before)"
    ], "a name comes before an id"
    for text in ("nope", "u2", "u99", "t"):
        with pytest.raises(UnknownItem):
            sql.run(f"ALTER SOURCE {text} REFRESH REFERENCES")
    with sql.catalog.read() as session:
        (bids,) = [r for r in list_references(session, sql.source("a").id) if r.name == "bids"]
    assert (bids.namespace, bids.columns) == ("auction", ("id", "buyer", "auction_id", "amount", "bid_time"))


def command(sql: Session, tmp_path: Path, *argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    env = {"MZSHARE_CATALOG": sql.catalog.url, "MZSHARE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with (
        mock.patch.dict(os.environ, env, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(["references", *argv])
    return code, out.getvalue(), err.getvalue()


def test_the_command_lists_them_and_prints_statements_that_run(sql: Session, tmp_path: Path) -> None:
    odd = '"odd; $(x) ""schema"""'
    sql.run(AUCTION + f"CREATE SOURCE {odd}.src FROM LOAD GENERATOR AUCTION; CREATE TABLE bids FROM SOURCE a "
            "(REFERENCE bids); CREATE TABLE bids_1 FROM SOURCE a (REFERENCE bids);")  # fmt: skip
    code, out, _ = command(sql, tmp_path, "a", "-o", "json")
    assert code == 0
    assert [(row["namespace"], row["name"]) for row in json.loads(out)] == [("auction", name) for name in OUTPUTS]
    assert json.loads(out)[-1]["columns"] == "id, buyer, auction_id, amount, bid_time"
    for source, free in (("a", "bids_2"), (f"{odd}.src", f"{odd}.bids")):
        code, out, _ = command(sql, tmp_path, source, "--schema", "auction", "--sql")
        assert code == 0
        assert len(out.splitlines()) == len(OUTPUTS)
        assert f"CREATE TABLE {free if '.' in free else f'public.{free}'} FROM SOURCE" in out, "no name is taken"
        sql.run(out)
    code, _, err = command(sql, tmp_path, "a", "--schema", "nope")
    assert (code, err) == (1, "error: source a has no references in a schema 'nope'. Try: one of auction\n")
    code, _, err = command(sql, tmp_path, "bids")
    assert code == 1
    assert "'bids' is a table, not a source" in err


def test_a_source_is_refreshed_in_the_transaction_that_makes_it(sql_on_both: Session) -> None:
    _, answer = sql_on_both.run(f"BEGIN; {AUCTION}; ALTER SOURCE a REFRESH REFERENCES; COMMIT")
    assert answer == "ALTER SOURCE public.a u1 (5 references, the same as before)"
