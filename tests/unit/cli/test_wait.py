"""How a wait describes its progress."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.cli.wait import describe
from airflow_provider_mzshare.control.lifecycle.progress import Progress


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(0, 0, 1.0, "the source is starting"), "the source is starting"),
        (Progress(0, 100, 5.0, "the source is idle"), "the source is idle"),
        (Progress(50, 100, 5.0, "it runs"), "10/s, 5 s left, it runs"),
        (Progress(50, 100, 5.0, "t is backfilling", (800.0, 12.4)), "800/s, 12 s left, t is backfilling"),
        (Progress(50, 100, 5.0, "t falls behind", (800.0, None)), "800/s, ? left, t falls behind"),
        (Progress(50, 100, 5.0, "its app is lost", (0.0, None)), "its app is lost"),
        (Progress(100, 100, 5.0, "t is converging", (800.0, None)), "800/s, t is converging"),
    ],
)
def test_rate_and_time_left_are_shown_as_far_as_they_are_known(progress: Progress, text: str) -> None:
    assert describe(progress) == text
