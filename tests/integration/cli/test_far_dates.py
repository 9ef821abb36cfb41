"""Times that Python cannot hold, in tables that versions before have filled: printed as PostgreSQL prints them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.connectors import record_times
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.core.specs import Include
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled

FAR = [253_402_300_800_000_000, -62_135_596_800_000_001, 0]
TEXTS = ["10000-01-01 00:00:00+00", "0001-12-31 23:59:59.999999+00 BC", "1970-01-01T00:00:00+00:00"]


@pytest.fixture
def filled(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    monkeypatch.setattr(record_times, "hold", lambda given: given)
    catalog = Catalog(f"sqlite:///{cli.home / 'catalog.db'}")
    catalog.ensure()
    made = Filled(catalog, cli.home)
    source = made.source()
    made.table(source, "t", "n bigint", include=[Include(what="timestamp", name="at")])
    made.feed(source, [{"n": n} for n in range(3)], timestamps=FAR)
    made.feed(source, [{"n": "bad"}], timestamps=FAR[:1])
    yield made
    catalog.close()


@pytest.mark.usefixtures("filled")
def test_every_output_prints_them(cli: Cli) -> None:
    assert cli.ok("read", "t", "-o", "json").json == [{"n": n, "at": text} for n, text in enumerate(TEXTS)]
    rows = list(csv.DictReader(io.StringIO(cli.ok("read", "t", "-o", "csv").out)))
    assert [row["at"] for row in rows] == TEXTS
    shown = cli.ok("read", "t").out
    assert all(text in shown for text in TEXTS)
    (error,) = cli.ok("read", "t", "--errors", "-o", "json").json
    assert error["timestamp"] == TEXTS[0]
