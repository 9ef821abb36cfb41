"""The rate shown for a source."""

from __future__ import annotations

from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.catalog.queries.overviews import TickOverview, rate_of
from airflow_provider_mzshare.core.positions import Position


def _tick(number: int, offset: int, committed_at: int | None) -> TickOverview:
    upper = Position({"0": offset, "1": offset})
    return TickOverview(number, Position(), upper, number, 0, committed_at, 1, False, {})


def test_the_rate_is_taken_between_the_oldest_and_the_newest_commit() -> None:
    assert rate_of([_tick(3, 70, 3_000), _tick(2, 30, 2_500), _tick(1, 20, 1_000)]) == 50.0


def test_without_two_commits_or_time_between_them_there_is_no_rate() -> None:
    assert rate_of([]) is None
    assert rate_of([_tick(1, 5, 1_000)]) is None
    assert rate_of([_tick(2, 9, 1_000), _tick(1, 5, 1_000)]) is None
    assert rate_of([_tick(2, 9, 900), _tick(1, 5, 1_000)]) is None


def test_the_default_schema_is_not_shown() -> None:
    assert display_name(("public", "orders")) == "orders"
    assert display_name(("raw", "orders")) == "raw.orders"
