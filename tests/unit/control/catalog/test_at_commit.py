"""A change that nobody keeps up is refused: what relations show could be stale for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog import Catalog, at_commit
from airflow_provider_mzshare.control.catalog.objects import schemas
from tests.support.catalog import new_sqlite


def test_a_catalog_that_nobody_listens_to_is_read_and_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Catalog(new_sqlite(tmp_path / "catalog.db")) as catalog:
        monkeypatch.setattr(at_commit, "_listeners", [])
        with catalog.read() as session:
            before = [schema.display for schema in schemas.list_schemas(session)]
        with pytest.raises(RuntimeError, match="composition"):
            _change(catalog)
        with catalog.read() as session:
            assert [schema.display for schema in schemas.list_schemas(session)] == before, "nothing of it was kept"
    with Catalog(f"sqlite:///{tmp_path / 'new.db'}") as new, pytest.raises(RuntimeError, match="composition"):
        new.upgrade()


def _change(catalog: Catalog) -> None:
    with catalog.write() as session:
        schemas.create_schema(session, "s")
        at_commit.definitions_change(session)
