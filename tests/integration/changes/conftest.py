"""A home with a catalog, filled by hand, and both doors to it: the command line and the Python client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare import MzShare, connect
from airflow_provider_mzshare.control.catalog import Catalog
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "home")


@pytest.fixture
def filled(cli: Cli) -> Iterator[Filled]:
    cli.home.mkdir()
    with Catalog(f"sqlite:///{cli.home / 'catalog.db'}") as catalog:
        catalog.upgrade()
        yield Filled(catalog, cli.home)


@pytest.fixture
def mz(filled: Filled, cli: Cli) -> Iterator[MzShare]:
    with connect(home=cli.home) as found:
        yield found
