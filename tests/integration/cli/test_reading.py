"""``read`` of tables that are not live: what there is, with a note; or, with --require-live, an error and no row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.core.ids import ItemId
from tests.integration.cli.conftest import Cli
from tests.support.filled import Filled


@pytest.fixture
def filled(cli: Cli) -> Iterator[Filled]:
    cli.home.mkdir()
    with Catalog(f"sqlite:///{cli.home / 'catalog.db'}") as catalog:
        catalog.upgrade()
        yield Filled(catalog, cli.home)


@pytest.fixture
def source(filled: Filled) -> ItemId:
    """With ``orders``, which is live, and ``late``, which came later."""
    source = filled.source()
    filled.table(source, "orders", "id bigint")
    filled.feed(source, [{"id": 1}, {"id": 2}])
    filled.table(source, "late", "id bigint")
    return source


def test_an_empty_table_is_not_taken_for_the_truth(cli: Cli, filled: Filled, source: ItemId) -> None:
    backfilling = "table late is backfilling, 1 tick (2 offsets) behind, 0 of 2 offsets"
    for output, nothing in (("csv", "id\n"), ("json", "[]\n")):
        answer = cli.ok("read", "late", "-o", output)
        assert answer.out == nothing
        assert answer.err == f"note: {backfilling}: it has not got all rows. Try: mzshare wait late --for live\n"
    assert cli.error("read", "late", "--require-live") == f"error: {backfilling}. Try: mzshare wait late --for live"
    assert "created, without a tick yet" in cli.ok("read", _created(filled)).err


def _created(filled: Filled) -> str:
    filled.table(filled.source("other"), "new", "id bigint")
    return "new"


def test_nothing_is_said_of_a_table_that_is_live(cli: Cli, source: ItemId) -> None:
    for options in ([], ["--require-live"], ["--errors"]):
        assert cli.ok("read", "orders", "-o", "csv", *options).err == ""
    assert cli.ok("read", "s", "--require-live").err == "", "a source's progress is no table"


def test_a_stalled_table_is_old_and_as_of_a_tick_it_is_final(cli: Cli, filled: Filled, source: ItemId) -> None:
    stalls = filled.table(other := filled.source("other"), "stalls", "id bigint")
    tick = filled.feed(other, [{"id": 1}])
    filled.feed(other, [{"id": 2}], stall=[stalls])
    answer = cli.ok("read", "stalls", "-o", "csv")
    assert answer.out == "id\n1\n"
    assert "table stalls is stalled (full), 1 tick (1 offset) behind" in answer.err
    assert "ALTER TABLE stalls RESUME" in answer.err
    assert "is stalled (full)" in cli.error("read", "stalls", "--require-live")
    for options in (["--tick", str(tick.number)], ["--as-of", str(tick.mz_timestamp)]):
        final = cli.ok("read", "stalls", "-o", "csv", "--require-live", *options)
        assert (final.out, final.err) == ("id\n1\n", "")


def test_a_view_tells_of_each_table_under_it(cli: Cli, source: ItemId) -> None:
    cli.ok("sql", "CREATE VIEW low AS SELECT id FROM late; CREATE VIEW v AS SELECT o.id FROM low AS o")
    assert "table late is backfilling" in cli.error("read", "v", "--require-live"), "before Spark is started"
