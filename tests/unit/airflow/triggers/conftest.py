"""A real catalog in a file, and connections from the environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.models import import_all_models

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.embedded.process import free_ports

# Where some of Airflow's models are known and not all, its connections cannot be read.
import_all_models()


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """Return a catalog that Airflow's connection ``mz`` leads to."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("AIRFLOW_CONN_MZ", json.dumps({"conn_type": "mzshare", "extra": {"home": str(home)}}))
    with Catalog(f"sqlite:///{home / 'catalog.db'}") as created:
        created.upgrade()
        yield created


@pytest.fixture
def free_port() -> int:
    """Return a port that nobody listens on."""
    return free_ports(1)[0]
