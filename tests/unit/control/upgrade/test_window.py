"""When batches may start, by the time of day in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from airflow_provider_mzshare.control.upgrade.window import Window
from airflow_provider_mzshare.errors import TerminalError


def at(text: str, day: int = 16) -> datetime:
    hours, minutes = text.split(":")
    return datetime(2026, 11, day, int(hours), int(minutes), tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("start", "end", "opened", "closed"),
    [
        ("09:00", "17:00", ["09:00", "12:00", "16:59"], ["08:59", "17:00", "00:00"]),
        ("22:00", "04:30", ["22:00", "23:59", "00:00", "04:29"], ["04:30", "12:00", "21:59"]),
        (None, None, ["00:00", "12:00"], []),
        ("", "", ["12:00"], []),
        ("12:00", "12:00", ["00:00", "12:00"], []),
    ],
)
def test_it_is_open_from_its_start_to_before_its_end(
    start: str | None, end: str | None, opened: list[str], closed: list[str]
) -> None:
    window = Window.parse(start, end)
    assert [text for text in (*opened, *closed) if window.is_open(at(text))] == opened


def test_another_time_zone_is_the_same_time() -> None:
    east = timezone(timedelta(hours=5))
    assert Window.parse("09:00", "10:00").is_open(datetime(2026, 11, 16, 14, 30, tzinfo=east))


def test_it_opens_today_or_tomorrow() -> None:
    window = Window.parse("22:00", "23:00")
    assert window.opens(at("12:00")) == at("22:00")
    assert window.opens(at("23:30")) == at("22:00", day=17)
    assert window.opens(at("22:00")) == at("22:00", day=17)


@pytest.mark.parametrize(("start", "end"), [("9", "x"), ("25:00", "04:00"), ("22:00", None), (None, "04:00")])
def test_what_is_no_window_is_refused(start: str | None, end: str | None) -> None:
    with pytest.raises(TerminalError) as raised:
        Window.parse(start, end)
    assert raised.value.hint


def test_a_time_with_a_zone_is_refused() -> None:
    with pytest.raises(TerminalError, match="not a time of day in UTC"):
        Window.parse("22:00+02:00", "04:30")
