"""What of a log says why its run ended."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control.supervision.runs import last_complaint

WARNING = "2026-01-02 03:04:05,678 WARNING airflow_provider_mzshare.storage.apps.ingestion j will try again: away"
ERROR = "2026-01-02 03:04:05,678 ERROR mzshare.ingest it broke"
INFO = "2026-01-02 03:04:05,678 INFO mzshare.ingest tick 5"
SPARK = "26/01/02 03:04:05 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform"
OTHERS = "2026-01-02 03:04:05,678 ERROR py4j.java_gateway An error occurred"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ""),
        ([INFO, SPARK, OTHERS, "\t... 41 more", "running"], ""),
        ([WARNING, INFO, SPARK, "\t... 41 more"], "j will try again: away"),
        ([WARNING, ERROR, SPARK], "it broke"),
        ([ERROR, "Traceback (most recent call last):", "RuntimeError: no import", ""], "RuntimeError: no import"),
        (["java.lang.OutOfMemoryError: Java heap space"], "java.lang.OutOfMemoryError: Java heap space"),
        (["error: the job file is gone."], "the job file is gone."),
        (["ValueError: " + "x" * 500], "ValueError: " + "x" * 288),
    ],
)
def test_the_last_complaint_of_ours_counts_and_nothing_of_sparks(lines: list[str], words: str) -> None:
    assert last_complaint(lines) == words
