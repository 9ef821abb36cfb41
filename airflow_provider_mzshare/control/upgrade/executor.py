"""Executes plans. All steps of a source are one transaction: if it is killed, the source is as before, or all is done.

A run over many sources can be repeated: what is done is not done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import MigrationRow
from airflow_provider_mzshare.control.catalog.database.source_states import lock_source
from airflow_provider_mzshare.control.catalog.objects import flags, lookup
from airflow_provider_mzshare.control.catalog.objects.definitions import Definitions
from airflow_provider_mzshare.control.catalog.objects.item_names import Name, lock_namespace
from airflow_provider_mzshare.control.catalog.objects.upgrades import (
    end_migration,
    is_taken,
    kept_definitions,
    last_migration,
    load_definitions,
    note_migration,
    stored_report,
    write_definitions,
)
from airflow_provider_mzshare.control.definition_errors import CannotRollBack, NothingToMigrate, run_sql
from airflow_provider_mzshare.control.upgrade.choosing import Wanted, choose
from airflow_provider_mzshare.control.upgrade.plan import Action, Plan, plan_finalize, plan_migration
from airflow_provider_mzshare.control.upgrade.plan_facts import check_current
from airflow_provider_mzshare.control.upgrade.report import Report, SourceReport, source_report
from airflow_provider_mzshare.control.upgrade.rollback import plan_rollback
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.storage.crashpoints import crashpoint


@dataclass(frozen=True)
class Run:
    """How sources are run.

    :param batch_size: how many sources are done before ``may_start`` is asked again.
    """

    action: Action = "migrate"
    apply: bool = False
    batch_size: int = 10
    stop_on_first_failure: bool = True
    may_start: Callable[[], bool] = lambda: True
    plans: Callable[[Plan], None] = lambda plan: None
    """Called with each plan before it is executed."""


def run(catalog: Catalog, wanted: Wanted, how: Run) -> Report:
    """Failures are in the report. What is worth a retry (the catalog is away, another run was faster) is raised."""
    if how.batch_size < 1:
        raise TerminalError("a batch has at least one source", hint="batch_size=10")
    with catalog.read() as session:
        chosen = choose(session, wanted, how.action)
    reports: list[SourceReport] = []
    planned: set[Name] = set()
    for number, source_id in enumerate(chosen):
        if how.apply and number % how.batch_size == 0 and not how.may_start():
            break
        reports.append(_one(catalog, source_id, how, planned))
        if reports[-1].state == "failed" and how.stop_on_first_failure:
            break
    return Report(how.action, not how.apply, [*reports, *_pending(catalog, chosen[len(reports) :])])


def _pending(catalog: Catalog, left: Sequence[ItemId]) -> list[SourceReport]:
    with catalog.read() as session:
        return [SourceReport(lookup.get_source_item(session, one).display, one, "pending") for one in left]


def _one(catalog: Catalog, source_id: ItemId, how: Run, planned: set[Name]) -> SourceReport:
    try:
        return _apply(catalog, source_id, how) if how.apply else _look(catalog, source_id, how, planned)
    except TerminalError as error:
        with catalog.read() as session:
            name = lookup.get_source_item(session, source_id).display
        return SourceReport(name, source_id, "failed", error=error.line)


def _look(catalog: Catalog, source_id: ItemId, how: Run, planned: set[Name]) -> SourceReport:
    """:param planned: names that the plans before this one give to sources."""
    with catalog.read() as session:
        plan = _plan(session, source_id, how.action, planned)
        if isinstance(plan, SourceReport):
            return plan
    planned.add(plan.after.source.name)
    how.plans(plan)
    return source_report(plan, "planned")


def _apply(catalog: Catalog, source_id: ItemId, how: Run) -> SourceReport:
    """Plan and execute in one transaction: nothing can change in between."""
    with catalog.write() as session:
        _lock(session, source_id)
        plan = _plan(session, source_id, how.action, set())
        if isinstance(plan, SourceReport):
            return plan
        how.plans(plan)
        report = _carry_out(session, plan)
    crashpoint(f"{how.action}_committed")
    return report


def execute_plan(catalog: Catalog, plan: Plan) -> SourceReport:
    """Execute an older plan as it is. Raises StalePlan, and does nothing, if the plan's facts have changed since."""
    with catalog.write() as session:
        _lock(session, ItemId(plan.before.source.id))
        check_current(session, plan)
        report = _carry_out(session, plan)
    crashpoint(f"{plan.action}_committed")
    return report


def _lock(session: Session, source_id: ItemId) -> None:
    lock_namespace(session)
    lock_source(session, source_id)


def _carry_out(session: Session, plan: Plan) -> SourceReport:
    crashpoint(f"{plan.action}_planned")
    now = plan.before
    for step in plan.steps:
        write_definitions(session, now, step.after)
        now = step.after
        crashpoint(step.label)
    report = source_report(plan, "done")
    _note(session, plan, report)
    crashpoint(f"{plan.action}_noted")
    return report


def _note(session: Session, plan: Plan, report: SourceReport) -> None:
    if plan.action == "migrate":
        note_migration(session, ItemId(plan.before.source.id), plan.before, plan.after, report.to_json())
        return
    if plan.migration is None:
        raise ValueError(f"there is no migration of source {plan.before.source.id} to {plan.action}")
    number, _ = plan.migration
    end_migration(session, number, "rolled_back" if plan.action == "rollback" else "finalized")


# ── plans ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plan(session: Session, source_id: ItemId, action: Action, planned: set[Name]) -> Plan | SourceReport:
    """The plan, or the report of a source for which nothing is left to do."""
    row = last_migration(session, source_id)
    found = _decide(session, source_id, action, planned, row)
    if isinstance(found, SourceReport) or row is None:
        return found
    return replace(found, migration=(row.number, row.state))


def _decide(
    session: Session, source_id: ItemId, action: Action, planned: set[Name], row: MigrationRow | None
) -> Plan | SourceReport:
    now = load_definitions(session, source_id)
    source = lookup.get_source_item(session, source_id)
    if source.status == "dropped":
        raise NothingToMigrate(f"source {source.display!r} was dropped")
    if action == "migrate":
        if now.is_legacy:
            return plan_migration(now, lambda name: name in planned or is_taken(session, name))
        return _already(source, row, "it is not an old-style source" if row is None else "")
    if row is None or row.state == "rolled_back":
        return _not_migrated(source, action, row)
    if action == "finalize":
        return _already(source, row) if row.state == "finalized" else plan_finalize(now)
    return _way_back(session, source, now, row)


def _already(source: lookup.SourceItem, row: MigrationRow | None, note: str = "") -> SourceReport:
    """The report of what was done then."""
    objects = SourceReport.from_json(stored_report(row)).objects if row and row.state != "rolled_back" else ()
    return SourceReport(source.display, source.id, "already", objects=objects, notes=(note,) if note else ())


def _not_migrated(source: lookup.SourceItem, action: Action, row: MigrationRow | None) -> SourceReport:
    if action == "rollback" and row is not None:
        return _already(source, row)
    raise NothingToMigrate(f"source {source.display!r} was not migrated", hint="mzshare migrate --all")


def _way_back(session: Session, source: lookup.SourceItem, now: Definitions, row: MigrationRow) -> Plan:
    before, left = kept_definitions(row)
    if row.state == "finalized":
        raise CannotRollBack(
            source.display, "it was finalized", hint="ALTER SOURCE … RENAME TO, ALTER TABLE … RENAME TO"
        )
    if flags.is_on(session, flags.FORCE_TABLES):
        hint = run_sql(f"ALTER SYSTEM SET {flags.FORCE_TABLES} = false")
        raise CannotRollBack(source.display, f"{flags.FORCE_TABLES} is true", hint=hint)
    return plan_rollback(now, before, left, lambda name: is_taken(session, name))
