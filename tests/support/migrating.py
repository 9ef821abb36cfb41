"""Migrations on a catalog without apps: carried out, and looked at."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.catalog.objects.item_names import Name
from airflow_provider_mzshare.control.upgrade.choosing import Wanted
from airflow_provider_mzshare.control.upgrade.executor import Run, run
from airflow_provider_mzshare.control.upgrade.plan import Action
from airflow_provider_mzshare.control.upgrade.report import Report
from airflow_provider_mzshare.control.views.resolving import print_current
from airflow_provider_mzshare.core.ids import ItemId
from tests.support.catalog import Log, wrote_all

ORDERS = ("public", "orders")
on_one = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""What asks the database nothing that other tests do not ask on both."""
ALL = Wanted(everything=True)


def do(catalog: Catalog, action: Action = "migrate", wanted: Wanted = ALL, **how: Any) -> Report:
    report = run(catalog, wanted, Run(action, apply=True, **how))
    assert not report.failed, report
    return report


def item(catalog: Catalog, name: Name) -> lookup.Item:
    with catalog.read() as session:
        found = lookup.find(session, name)
    assert found is not None, name
    return found


def name_of(catalog: Catalog, item_id: ItemId) -> Name:
    with catalog.read() as session:
        return lookup.get_item(session, item_id).name


def view_text(catalog: Catalog, view_id: ItemId) -> str:
    with catalog.read() as session:
        view = lookup.get_item(session, view_id)
        assert isinstance(view, lookup.ViewItem)
        return print_current(session, view.query)


def reads(catalog: Catalog, view_id: ItemId) -> set[str]:
    with catalog.read() as session:
        return set(session.scalars(select(DependencyRow.referenced_id).where(DependencyRow.object_id == view_id)))


def ingest(catalog: Catalog, source_id: ItemId) -> Log:
    """Two ticks with rows and errors, by a holder that stays."""
    log = Log(catalog, source_id)
    log.tick()
    for version in (1, 2):
        tick = log.mint()
        log.commit(tick, wrote_all(log.store.members(), version))
    return log
