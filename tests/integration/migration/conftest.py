"""A catalog that may hold legacy sources, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from tests.support.legacy import allow_legacy


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    with Catalog(catalog_url) as created:
        created.upgrade()
        allow_legacy(created)
        yield created
