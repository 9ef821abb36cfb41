"""A catalog with tables that have rows, and ways to make views in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.object_models import DependencyRow
from airflow_provider_mzshare.control.catalog.objects import lookup
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.values import CreateView
from airflow_provider_mzshare.control.statements.context import Context
from airflow_provider_mzshare.control.statements.handlers.views import create_view
from airflow_provider_mzshare.control.statements.upstream_checks import Checked
from airflow_provider_mzshare.core.ids import ItemId
from tests.support.filled import Filled

Make = Callable[..., ItemId]


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as made:
        made.upgrade()
        yield made


@pytest.fixture
def filled(catalog: Catalog, tmp_path: Path) -> Filled:
    return Filled(catalog, tmp_path)


@pytest.fixture
def make(catalog: Catalog) -> Make:
    """Make a view in a transaction of its own."""

    def made(name: str, query: str, *, if_not_exists: bool = False) -> ItemId:
        statement = CreateView(QualifiedName("public", name), if_not_exists, query)
        with catalog.write() as session:
            return ItemId(str(create_view(session, Checked(statement), Context(dry_run=False)).id))

    return made


def stored(catalog: Catalog, name: str) -> str:
    with catalog.read() as session:
        item = lookup.find(session, ("public", name))
    assert isinstance(item, lookup.ViewItem)
    return item.query


def reads(catalog: Catalog, view_id: ItemId) -> set[str]:
    with catalog.read() as session:
        query = select(DependencyRow.referenced_id).where(DependencyRow.object_id == view_id)
        return set(session.scalars(query))
