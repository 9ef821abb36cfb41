"""What is told of a query that Spark cannot answer, also when that Spark is gone."""

from __future__ import annotations

import pytest
from pyspark.errors.exceptions.captured import AnalysisException

from airflow_provider_mzshare.compute import querying
from airflow_provider_mzshare.errors import NotReadable


class Ended(AnalysisException):
    """As an error is once its Spark has ended: it has a description and cannot be printed."""

    def __init__(self, words: str) -> None:
        self._desc = words

    def __str__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("words", "told"),
    [("[UNRESOLVED_COLUMN] There is no such column.\nat line 1", r"\[UNRESOLVED_COLUMN\] There is no such column\.$"),
     ("", "Ended$")],
)  # fmt: skip
def test_an_error_of_a_spark_that_has_ended_is_told_by_its_reason(words: str, told: str) -> None:
    with pytest.raises(NotReadable, match=f"^Spark cannot answer the query: {told}"), querying._told():
        raise Ended(words)
