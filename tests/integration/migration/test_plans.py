"""A migration's plan can be kept and carried out as it is, until something that it rests on has changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.objects import comments, flags, items
from airflow_provider_mzshare.control.catalog.objects.renames import rename_item
from airflow_provider_mzshare.control.upgrade.executor import Run, execute_plan, run
from airflow_provider_mzshare.control.upgrade.plan import Action, Plan
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import StalePlan
from tests.support.catalog import add_source
from tests.support.legacy import add_multi, add_single, add_view, data, definitions
from tests.support.migrating import ALL, ORDERS, do, on_one

SINGLE, TABLE = ItemId("u1"), ItemId("u2")


@pytest.fixture
def old(catalog: Catalog) -> Catalog:
    """An old-style source ``orders`` with its one output and a view on it, and one with two subsources."""
    add_single(catalog, ORDERS)
    add_multi(catalog, ("public", "auction"))
    add_view(catalog, ("public", "v"), "SELECT id FROM orders")
    return catalog


def plans(catalog: Catalog, action: Action = "migrate") -> list[Plan]:
    """As a dry run shows them."""
    found: list[Plan] = []
    report = run(catalog, ALL, Run(action, plans=found.append))
    assert not report.failed, report
    return found


def test_planning_changes_nothing_and_these_very_plans_are_carried_out(old: Catalog) -> None:
    actions: tuple[Action, ...] = ("migrate", "rollback", "migrate", "finalize")
    for action in actions:
        before, rows = definitions(old), data(old)
        planned = plans(old, action)
        assert [plan.before.source.id for plan in planned] == [SINGLE, ItemId("u4")]
        assert (definitions(old), data(old)) == (before, rows)
        reports = [execute_plan(old, plan) for plan in planned]
        assert [report.state for report in reports] == ["done"] * 2
        assert data(old) == rows
        assert definitions(old) != before
        assert {one.state for one in run(old, ALL, Run(action)).sources} <= {"already"}, "nothing is left to do"


@on_one
def test_carried_out_later_a_plan_does_what_it_does_at_once(old: Catalog) -> None:
    do(old)
    at_once = definitions(old)
    do(old, "rollback")
    for plan in plans(old):
        execute_plan(old, plan)
    assert definitions(old) == at_once


def view(catalog: Catalog) -> None:
    add_view(catalog, ("public", "more"), "SELECT id FROM orders")


def renamed(catalog: Catalog) -> None:
    with catalog.write() as session:
        rename_item(session, SINGLE, ("public", "other"))


def commented(catalog: Catalog) -> None:
    with catalog.write() as session:
        comments.set_comment(session, SINGLE, "in euros", "amount")


def taken(catalog: Catalog) -> None:
    add_source(catalog, "orders_source")


def dropped(catalog: Catalog) -> None:
    with catalog.write() as session:
        items.drop_source(session, SINGLE, cascade=True)


def table_dropped(catalog: Catalog) -> None:
    with catalog.write() as session:
        items.drop_table(session, TABLE)


def forced(catalog: Catalog) -> None:
    with catalog.write() as session:
        flags.set_value(session, flags.FORCE_TABLES, "true")


SOURCE = "source orders_source (u1)"
STALE: list[tuple[Action, Callable[[Catalog], object], str]] = [
    ("migrate", view, "view more (u9) was made"),
    ("migrate", renamed, "source orders (u1) was changed"),
    ("migrate", commented, "comments on its columns were changed"),
    ("migrate", taken, "the name orders_source was free, and is taken now"),
    ("migrate", dropped, "source u1 was dropped"),
    ("migrate", do, "it was migrated, rolled back or finalized since"),
    ("rollback", view, "view more (u9) was made"),
    ("rollback", renamed, f"{SOURCE} was changed"),
    ("rollback", table_dropped, "table orders (u2) was dropped"),
    ("rollback", forced, "force_source_table_syntax was false, and is true now"),
    ("rollback", lambda catalog: do(catalog, "finalize"), "it was migrated, rolled back or finalized since"),
    ("finalize", renamed, f"{SOURCE} was changed"),
    ("finalize", lambda catalog: do(catalog, "rollback"), "it was migrated, rolled back or finalized since"),
]


@on_one
@pytest.mark.parametrize(("action", "overtaken", "change"), STALE)
def test_a_plan_that_somebody_has_overtaken_is_refused(
    old: Catalog, action: Action, overtaken: Callable[[Catalog], object], change: str
) -> None:
    if action != "migrate":
        do(old)
    plan = plans(old, action)[0]
    overtaken(old)
    before = definitions(old)
    with pytest.raises(StalePlan) as refused:
        execute_plan(old, plan)
    assert change in refused.value.message
    assert refused.value.message.startswith(f"the plan for the {action} of source ")
    assert refused.value.hint.startswith("mzshare migrate orders")
    assert refused.value.hint.endswith(", which makes a new plan")
    assert definitions(old) == before
