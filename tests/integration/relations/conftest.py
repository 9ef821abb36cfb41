"""A catalog of the current version on each kind of database, and statements on it that need no broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from tests.support.relations import Described


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as created:
        created.upgrade()
        yield created


@pytest.fixture
def described(catalog: Catalog) -> Described:
    return Described(catalog)
