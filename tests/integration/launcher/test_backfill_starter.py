"""Commands start the backfills they need, on the machine that runs the apps; elsewhere they name who does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.control.supervision.backfill_starter import BackfillStarter
from airflow_provider_mzshare.errors import JarProblem
from airflow_provider_mzshare.wiring import Wiring
from tests.integration.cli.conftest import Cli
from tests.integration.launcher.conftest import Home
from tests.support.statements import Session

SOURCE = "CREATE SOURCE a FROM LOAD GENERATOR AUCTION; CREATE TABLE t FROM SOURCE a (REFERENCE bids);"
LATE = "CREATE TABLE late FROM SOURCE a (REFERENCE users)"
NOBODY = "nothing has started its backfill yet"


@pytest.fixture
def cli(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """With a source ``a`` that has moved on; nothing runs yet."""
    chosen = home.settings
    monkeypatch.setattr(Wiring, "launchers", home.launchers)
    names = ("MZSHARE_CATALOG", chosen.catalog_url), ("MZSHARE_JARS", str(chosen.jars))
    lease = {"MZSHARE_LEASE_SECONDS": "1", "MZSHARE_HEARTBEAT_SECONDS": "0.1"}
    session = Session(chosen.catalog_url)
    session.run(SOURCE)
    session.tick({4: 3}, source="a")
    yield Cli(chosen.home, {**dict(names), **lease})
    session.catalog.close()


def starter(of: Home, start: bool | None = None, **changes: object) -> BackfillStarter:
    settings = replace(of.settings, **changes)  # type: ignore[arg-type]
    return BackfillStarter(of.catalog, settings, of.connections, of.launchers, start=start)


def test_a_new_table_is_brought_up_at_once_where_the_app_of_its_source_runs(cli: Cli, home: Home) -> None:
    cli.ok("start", "a")
    source_id = home.table("t").source_id
    home.running(source_id)
    answer = cli.ok("sql", LATE)
    assert answer.err.startswith(f"backfill {home.table('late').backfill_id} for late: job ")
    assert len(home.jobs(source_id, "backfill")) == 1
    assert cli.ok("sql", f"{LATE.replace('late', 'other')}; DROP TABLE other").err == "", "it was dropped again"
    late = cli.ok("sql", "--no-start", LATE.replace("late", "later"))
    assert late.err == ""
    assert "mzshare start public.a starts it" in late.out
    assert len(home.jobs(source_id, "backfill")) == 1
    cli.ok("sql", "EXPLAIN " + LATE.replace("late", "never"))
    assert len(home.jobs(source_id, "backfill")) == 1, "what was only explained gets nothing"
    # A wait starts what nobody has started, once.
    assert "not live after" in cli("wait", "later", "--timeout", "0.5").err
    assert len(home.jobs(source_id, "backfill")) == 2
    assert starter(home).bring_up([home.table("later").id]) == []


def test_where_the_apps_do_not_run_the_command_that_starts_them_is_named_by_all(cli: Cli, home: Home) -> None:
    answer = cli.ok("sql", LATE)
    (told,) = cli.ok("status", "late", "--no-lag", "-o", "json").json
    assert (answer.err, told["hint"]) == ("", "mzshare start public.a")
    assert "mzshare start public.a starts it" in answer.out
    assert NOBODY in str(told["reason"])
    waited = cli("wait", "late", "--timeout", "0.5")
    first, *_, last = waited.err.splitlines()
    assert first == f"0 of 3 offsets, public.late is backfilling, 1 tick behind ({NOBODY}). Try: mzshare start public.a"
    assert last.endswith("Try: mzshare start public.a")
    assert not home.jobs(home.table("t").source_id, "backfill")
    # A source that was never started: its tables are not live by any wait.
    cli.ok("sql", "CREATE SOURCE b FROM LOAD GENERATOR COUNTER; CREATE TABLE n FROM SOURCE b")
    idle = cli("wait", "n", "--timeout", "0.5").err.splitlines()
    assert idle[0] == "the source is waiting (nothing has started it yet). Try: mzshare start public.b"


def test_only_what_nobody_has_started_is_started_and_only_from_the_home_that_runs_the_source(
    cli: Cli, home: Home, tmp_path: Path
) -> None:
    cli.ok("sql", LATE)
    late, source_id = home.table("late"), home.table("t").source_id
    cli.ok("stop", "a")
    assert starter(home, start=True).bring_up([late.id]) == [], "its source was asked to stop"
    home.set_desired(source_id, "running")
    assert starter(home).bring_up([late.id]) == [], "the source's app runs nowhere"
    cli.ok("start", "a")
    assert home.is_alive(home.jobs(source_id, "backfill")[0])
    cli.ok("sql", "--no-start", LATE.replace("late", "later"))
    later = [home.table("later").id]
    assert starter(home, start=False).bring_up(later) == []
    assert starter(home, home=tmp_path / "other").bring_up(later) == [], "another home's apps"
    with pytest.raises(JarProblem):
        starter(home, jars=tmp_path).bring_up(later)
    (started,) = starter(home, start=True, home=tmp_path / "other").bring_up(later)
    assert started.tables == ("later",)
    with home.catalog.write() as session:
        jobs.set_state(session, home.jobs(source_id, "backfill")[0].id, "lost", expect=jobs.ACTIVE)
    assert starter(home).bring_up(later) == [], "what was lost is the reconciler's"
