"""A catalog that may hold old-style sources, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from tests.support.old_style import OldStyle


@pytest.fixture
def old(catalog_url: str) -> Iterator[OldStyle]:
    with Catalog(catalog_url) as catalog:
        catalog.upgrade()
        yield OldStyle(catalog)
