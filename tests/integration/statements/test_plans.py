"""The plan is what is executed: planning writes nothing, what was planned happens, and a stale plan says why it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog.database.models import (
    BackfillRow,
    BackfillTableRow,
    ItemRow,
    ReplacementRow,
    TableRow,
)
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.definition_errors import FlagOff
from airflow_provider_mzshare.control.lifecycle.table_plans import Backfill, TablePlan
from airflow_provider_mzshare.control.sql.script import parse_script
from airflow_provider_mzshare.control.statements.answers import Result
from airflow_provider_mzshare.control.statements.context import Context, StatementPlan
from airflow_provider_mzshare.control.statements.registry import execute_plan, plan_statement
from airflow_provider_mzshare.control.statements.upstream_checks import Checks
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import StalePlan
from tests.integration.statements.conftest import AUCTION
from tests.integration.statements.test_explaining import dump
from tests.integration.statements.test_many import locked_statements
from tests.support.catalog import new_sqlite
from tests.support.statements import Session

TABLE = "CREATE TABLE {} FROM SOURCE a (REFERENCE bids)"
BOTH = f"{AUCTION}{TABLE.format('t')};{TABLE.format('u')};"


def new(sql: Session) -> None:
    """A source that nothing has been read of."""
    sql.run(AUCTION)


def live(sql: Session) -> None:
    """``t`` and ``u`` are live, after one tick."""
    sql.run(BOTH)
    sql.tick({4: 5}, source="a")


def stalled(sql: Session) -> None:
    """``t`` has stalled, and ``u`` goes on."""
    live(sql)
    sql.tick({4: 7}, source="a", fail=("t",))
    sql.tick({4: 9}, source="a")


def refilled(sql: Session) -> None:
    """A new generation of ``t`` has stalled beside the current one."""
    live(sql)
    sql.run("ALTER TABLE t RESNAPSHOT")
    with sql.catalog.write() as session:
        row = session.scalars(select(ReplacementRow)).one()
        row.status, row.reason, row.backfill_id = "stalled", "the disk is full", None


def schemas(sql: Session) -> None:
    """A live table of the same name in each of two schemas."""
    sql.run(AUCTION + f"CREATE SCHEMA x; CREATE SCHEMA y; {TABLE.format('x.t')}; {TABLE.format('y.t')}")
    sql.tick({4: 5}, source="a")


CASES: dict[str, tuple[Callable[[Session], None], str]] = {
    "share": (new, TABLE.format("late")),
    "backfill": (live, TABLE.format("late")),
    "now": (live, f"{TABLE.format('late')} WITH (SNAPSHOT = false)"),
    "it exists": (live, TABLE.format("t").replace("TABLE t", "TABLE IF NOT EXISTS t")),
    "resume": (stalled, "ALTER TABLE t RESUME"),
    "resume a new generation": (refilled, "ALTER TABLE t RESUME"),
    "resnapshot": (live, "ALTER TABLE t RESNAPSHOT"),
    "resnapshot what stalled": (refilled, "ALTER TABLE t RESNAPSHOT"),
    "swap": (live, "ALTER TABLE t SWAP WITH u"),
    "forced swap": (stalled, "ALTER TABLE t SWAP WITH u FORCE"),
    "swap schemas": (schemas, "ALTER SCHEMA x SWAP WITH y"),
}
cases = pytest.mark.parametrize(("scene", "text"), CASES.values(), ids=CASES)


def plan(sql: Session, text: str) -> StatementPlan:
    """In a transaction that can only read, where the database knows such."""
    ((statement,),) = [transaction.statements for transaction in parse_script(text)]
    with Checks(sql.catalog, sql.connections, looks=False) as checks:
        (checked,) = checks.run([statement])
    with sql.catalog.read() as session:
        return plan_statement(session, checked)


def execute(sql: Session, planned: StatementPlan) -> Result:
    with sql.catalog.write() as session:
        return execute_plan(session, planned, Context(dry_run=False))


def defined(sql: Session) -> dict[str, Any]:
    """All that these statements write, but for ids and times that are new each time."""
    tables = TableRow.__table__.c
    filled = BackfillTableRow.__table__.c
    same = {
        "items": (ItemRow.id, ItemRow.kind, ItemRow.schema_name, ItemRow.name),
        "tables": [column for name, column in tables.items() if name not in ("backfill_id", "upper", "since")],
        "replacements": (ReplacementRow.table_id, ReplacementRow.generation, ReplacementRow.status,
                         ReplacementRow.position, ReplacementRow.next_tick),
        "backfills": (BackfillRow.source_id, BackfillRow.history_tick, BackfillRow.history_upper, BackfillRow.alone),
        "filled": [filled[name] for name in ("table_id", "generation", "heals", "from_tick", "from_position")],
    }  # fmt: skip
    with sql.catalog.read() as session:
        return {name: sorted(map(repr, session.execute(select(*columns)))) for name, columns in same.items()}


# ── planned, and then executed ────────────────────────────────────────────────────────────────────────────────────────


@cases
def test_planning_writes_nothing_and_that_very_plan_is_executed(
    sql_on_both: Session, tmp_path: Path, scene: Callable[[Session], None], text: str
) -> None:
    sql = sql_on_both
    scene(sql)
    before, was = dump(sql), defined(sql)
    planned = plan(sql, text)
    assert dump(sql) == before
    result = execute(sql, planned)
    assert (defined(sql) == was) is ("EXISTS" in text)
    other = Session(new_sqlite(tmp_path / "other.db"))
    with other.catalog:
        scene(other)
        (at_once,) = other.results(text)
        assert defined(sql) == defined(other), "as if it had been run"
    assert (result.command, result.name, result.id) == (at_once.command, at_once.name, at_once.id)


def test_a_backfill_that_was_planned_reads_what_was_minted_since_too(sql_on_both: Session) -> None:
    sql = sql_on_both
    live(sql)
    create, again = plan(sql, TABLE.format("late")), plan(sql, "ALTER TABLE t RESNAPSHOT")
    sql.tick({4: 6}, source="a")
    execute(sql, create)
    execute(sql, again)
    with sql.catalog.read() as session:
        made = active_backfills(session)
    assert [(one.history_tick, one.history_upper) for one in made] == [(2, Position({4: 6}))] * 2


# ── stale ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tick(sql: Session) -> None:
    sql.tick({4: 20}, source="a")


def stall(name: str) -> Callable[[Session], object]:
    return lambda sql: sql.tick({4: 20}, source="a", fail=(name,))


def run(text: str) -> Callable[[Session], object]:
    return lambda sql: sql.run(text)


NOT_SO = "the name was that of table u2, and is {} now"
STALE: list[tuple[str, Callable[[Session], object], str]] = [
    ("share", lambda sql: (sql.run(TABLE.format("t")), tick(sql)), "the end of its source's log was "),
    ("share", run(TABLE.format("late")), "the name was nobody's, and is that of table u2 now"),
    ("share", run("DROP SOURCE a"), "its source was there, and is dropped now"),
    ("backfill", run("DROP SOURCE a CASCADE"), "its source was there, and is dropped now"),
    ("now", tick, "the next tick was 2, and is 3 now"),
    ("it exists", run("DROP TABLE t"), NOT_SO.format("nobody's")),
    ("resume", run("ALTER TABLE t RESUME"), "its state was stalled, and is backfilling now"),
    ("resume", run("ALTER TABLE t RESNAPSHOT"), "its state was stalled, and is backfilling now"),
    ("resume", run("DROP TABLE t"), NOT_SO.format("nobody's")),
    ("resume", run("ALTER TABLE t SWAP WITH u FORCE"), NOT_SO.format("that of table u3")),
    ("resume a new generation", run("ALTER TABLE t RESUME"), "its state was stalled, and is backfilling now"),
    ("resnapshot", stall("t"), "its state was live, and is stalled now"),
    ("resnapshot", run("ALTER TABLE t RESNAPSHOT"), "the new generation beside it was none, and is generation 2, back"),
    ("resnapshot", run("ALTER TABLE t RENAME TO x"), NOT_SO.format("nobody's")),
    ("swap", stall("u"), "table u was live, 0 ticks (0 offsets) behind, and is stalled (the disk is full), 1 tick"),
    ("swap", run("DROP TABLE u"), "table 'public.u' does not exist"),
    ("swap", run(f"ALTER TABLE u RENAME TO v; {TABLE.format('u')}"), "public.u was u3, and is u4 now"),
    ("forced swap", run("DROP TABLE t"), "table 'public.t' does not exist"),
    ("swap schemas", run(TABLE.format("y.more")), "table y.more was added to its schema"),
    ("swap schemas", run("DROP TABLE x.t"), "table x.t is no longer in its schema"),
    ("swap schemas", run("DROP SCHEMA y CASCADE"), "schema 'y' does not exist"),
    ("swap schemas", stall("x.t"), "table x.t was live, 0 ticks (0 offsets) behind, and is stalled"),
]


@pytest.mark.parametrize(("case", "overtaken", "change"), STALE, ids=[f"{case}: {change}" for case, _, change in STALE])
def test_a_plan_that_somebody_has_overtaken_is_refused(
    sql: Session, case: str, overtaken: Callable[[Session], object], change: str
) -> None:
    scene, text = CASES[case]
    scene(sql)
    planned = plan(sql, text)
    overtaken(sql)
    before = dump(sql)
    with pytest.raises(StalePlan) as refused:
        execute(sql, planned)
    assert change in refused.value.message
    assert "is out of date: " in refused.value.message
    assert refused.value.hint == "run the same statement again; it makes a new plan"
    assert dump(sql) == before


@pytest.mark.parametrize("case", ["backfill", "resume", "resnapshot", "swap", "forced swap", "swap schemas"])
def test_a_log_that_goes_on_overtakes_no_plan_that_does_not_depend_on_its_end(sql: Session, case: str) -> None:
    scene, text = CASES[case]
    scene(sql)
    planned = plan(sql, text)
    tick(sql)
    before = defined(sql)
    execute(sql, planned)
    assert defined(sql) != before


def test_run_again_the_statement_is_planned_for_what_is_so_now(sql: Session) -> None:
    sql.run(AUCTION + TABLE.format("t"))
    planned = plan(sql, TABLE.format("late"))
    tick(sql)
    with pytest.raises(StalePlan):
        execute(sql, planned)
    assert "gets a backfill" in sql.run(TABLE.format("late"), dry_run=True)[0]
    execute(sql, plan(sql, TABLE.format("late")))
    assert sql.table("late").status == "backfilling"


def test_a_plan_is_executed_once(sql: Session) -> None:
    live(sql)
    planned = plan(sql, TABLE.format("late"))
    execute(sql, planned)
    with pytest.raises(StalePlan, match="the name was nobody's, and is that of table u4 now"):
        execute(sql, planned)


def test_a_plan_for_what_was_switched_off_since_is_refused(sql: Session) -> None:
    live(sql)
    planned = plan(sql, TABLE.format("late"))
    sql.run("ALTER SYSTEM SET enable_create_table_from_source = false")
    with pytest.raises(FlagOff):
        execute(sql, planned)


# ── told, and then done ───────────────────────────────────────────────────────────────────────────────────────────────


def without_sizes(told: TablePlan | None) -> TablePlan | None:
    """Only a dry run and EXPLAIN look at records."""
    if told is None:
        return None
    steps = [
        replace(step, estimate=replace(step.estimate, size=None)) if isinstance(step, Backfill) else step
        for step in told.steps
    ]
    return replace(told, steps=tuple(steps))


@cases
def test_what_explain_and_a_dry_run_tell_is_what_happens(
    sql: Session, scene: Callable[[Session], None], text: str
) -> None:
    scene(sql)
    before = dump(sql)
    ids = {f"public.{name}": sql.table(name).id for name in "tu"} if "TABLE t SWAP" in text else {}
    (explained,), (dry,) = sql.results(f"EXPLAIN {text}"), sql.results(text, dry_run=True)
    assert dump(sql) == before
    (real,) = sql.results(text)
    assert without_sizes(explained.plan) == without_sizes(dry.plan) == without_sizes(real.plan)
    if real.plan is not None:
        check_done(sql, real.plan)
    renamed = {row["object"]: row["detail"] for row in explained.rows or () if row["action"] == "rename table"}
    assert {name: f"to public.{'u' if name.endswith('t') else 't'}" for name in ids} == renamed
    assert all(sql.table(str(to).removeprefix("to public.")).id == ids[str(name)] for name, to in renamed.items())


def check_done(sql: Session, told: TablePlan) -> None:
    """The catalog holds what the steps say."""
    with sql.catalog.read() as session:
        backfills = active_backfills(session)
    for step in told.steps:
        name = step.tables[0].removeprefix("public.")
        if step.name in ("share", "start_at_now"):
            assert sql.table(name).status == "created"
            assert sql.table(name).position == getattr(step, "position", sql.source("a").start)
        if isinstance(step, Backfill):
            (made,) = backfills
            assert (made.history_tick, made.history_upper) == (step.last, step.upper)
            assert [(t.display, t.from_position) for t in made.tables] == [(name, step.lower)]
    replaced = [name for step in told.steps for name in getattr(step, "replaced", ())]
    assert [f"public.{t.display}" for one in backfills for t in one.tables if t.replaces] == replaced


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", ["share", "backfill", "resume", "resnapshot"])
def test_planned_and_executed_at_once_a_source_is_looked_at_once(sql: Session, case: str) -> None:
    """A source's tables may be thousands, and all who write wait meanwhile."""
    scene, text = CASES[case]
    scene(sql)
    with locked_statements(sql.catalog) as executed:
        sql.run(text)
    writes = [number for number, one in enumerate(executed) if one.startswith(("INSERT", "UPDATE"))]
    looks = [one for one in executed[: writes[0]] if "LEFT OUTER JOIN replacements" in one]
    assert len(looks) == 1, looks
