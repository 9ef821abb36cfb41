"""Is an older plan still true? Compares its facts with the catalog as it is now. Changes nothing."""

from __future__ import annotations

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog.objects import flags, lookup
from airflow_provider_mzshare.control.catalog.objects.definitions import Definitions, Item
from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.objects.upgrades import is_taken, last_migration, load_definitions
from airflow_provider_mzshare.control.hints import command
from airflow_provider_mzshare.control.upgrade.plan import Plan
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import StalePlan


def check_current(session: Session, plan: Plan) -> None:
    """Raise StalePlan unless everything is as planned. The caller has the locks of the namespace and of the source."""
    source = display_name(plan.before.source.name)
    if changes := _changes(session, plan):
        again = f"{command('migrate', source)}{'' if plan.action == 'migrate' else f' --{plan.action}'}"
        raise StalePlan(f"the {plan.action} of source {source}", changes, hint=f"{again}, which makes a new plan")


def _changes(session: Session, plan: Plan) -> list[str]:
    source_id = ItemId(plan.before.source.id)
    if lookup.get_source_item(session, source_id).status == "dropped":
        return [f"source {source_id} was dropped"]
    changes = differences(plan.before, load_definitions(session, source_id))
    row = last_migration(session, source_id)
    if plan.migration != (None if row is None else (row.number, row.state)):
        changes.append("it was migrated, rolled back or finalized since")
    if plan.action == "rollback" and flags.is_on(session, flags.FORCE_TABLES):
        changes.append(f"{flags.FORCE_TABLES} was false, and is true now")
    had = {item.name for item in plan.before.items()}
    given = [item.name for item in plan.after.items() if item.name not in had]
    return changes + [
        f"the name {display_name(name)} was free, and is taken now" for name in given if is_taken(session, name)
    ]


def differences(before: Definitions, now: Definitions) -> list[str]:
    """Each difference as a clause. Names of other sources' objects do not matter: definitions refer to them by id."""
    present = {item.id: item for item in now.items()}
    known = {item.id for item in before.items()}
    found = [f"{_told(item)} was dropped" for item in before.items() if item.id not in present]
    found += [f"{_told(item)} was changed" for item in before.items() if present.get(item.id, item) != item]
    found += [f"{_told(item)} was made" for item in now.items() if item.id not in known]
    if before.comments != now.comments:
        found.append("comments on its columns were changed")
    return found


def _told(item: Item) -> str:
    return f"{item.kind} {display_name(item.name)} ({item.id})"
