"""The reference names every operator, field and option there is."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_mzshare.hooks.definitions import SOURCE_ARGUMENTS, TABLE_ARGUMENTS, TABLE_FIELDS
from airflow_provider_mzshare.provider_info import get_provider_info
from tests.unit.airflow.test_provider_info import OPERATORS

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "airflow.md").read_text()


def test_everything_is_in_the_reference() -> None:
    info = get_provider_info()
    fields = info["connection-types"][0]["conn-fields"]
    for name in (*OPERATORS, *fields, *info["config"]["mzshare"]["options"], *TABLE_FIELDS, *SOURCE_ARGUMENTS):
        assert f"`{name}`" in REFERENCE, name
    assert all(f"`{name}`" in REFERENCE for name in TABLE_ARGUMENTS)
