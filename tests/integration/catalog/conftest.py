"""A catalog of the current version, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from airflow_provider_mzshare.control.catalog import Catalog


@pytest.fixture
def opened(catalog_url: str) -> Iterator[Callable[[], Catalog]]:
    """Return a way to open the test's catalog as one more process would."""
    with ExitStack() as closing:
        yield lambda: closing.enter_context(Catalog(catalog_url))


@pytest.fixture
def catalog(opened: Callable[[], Catalog]) -> Catalog:
    created = opened()
    created.upgrade()
    return created
