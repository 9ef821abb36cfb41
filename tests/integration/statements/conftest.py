"""Statements on catalogs of either kind, mostly with load generators: they need no broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.catalog import new_sqlite
from tests.support.statements import Session

AUCTION = "CREATE SOURCE a FROM LOAD GENERATOR AUCTION;"


@pytest.fixture
def sql(tmp_path: Path) -> Iterator[Session]:
    session = Session(new_sqlite(tmp_path / "catalog.db"))
    yield session
    session.catalog.close()


@pytest.fixture
def sql_on_both(catalog_url: str) -> Iterator[Session]:
    session = Session(catalog_url)
    yield session
    session.catalog.close()
