"""The list of revisions, and what is said about each kind of catalog found."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from airflow_provider_mzshare.control.catalog.database import schema_versions
from airflow_provider_mzshare.errors import CatalogMissing, CatalogOutdated, CatalogTooNew


def test_the_revisions_written_out_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(schema_versions.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == schema_versions.REVISIONS
    assert scripts.get_heads() == [schema_versions.HEAD]


@pytest.mark.parametrize(
    ("found", "refusal", "hint"),
    [
        (None, CatalogMissing, "mzshare catalog upgrade"),
        ("0001", CatalogOutdated, "mzshare catalog upgrade"),
        ("0099", CatalogTooNew, "pip install --upgrade"),
    ],
)
def test_each_unfit_catalog_has_its_own_advice(found: str | None, refusal: type[Exception], hint: str) -> None:
    with pytest.raises(refusal) as refused:
        schema_versions.check_revision(found, "sqlite:////x")
    assert hint in refused.value.hint  # type: ignore[attr-defined]


def test_the_newest_revision_is_accepted() -> None:
    schema_versions.check_revision(schema_versions.HEAD, "sqlite:////x")
