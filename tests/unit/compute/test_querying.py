"""What is told of a query that Spark cannot answer, also when that Spark is gone."""

from __future__ import annotations

import pytest
from pyspark.errors.exceptions.captured import AnalysisException

from airflow_provider_mzshare.compute import querying
from airflow_provider_mzshare.errors import NotReadable


def ended_with(words: str) -> AnalysisException:
    """An error as it is once its Spark has ended: it cannot be printed. (Nor be made, so its maker is left out.)"""
    error = AnalysisException.__new__(AnalysisException)
    error._desc, error._stackTrace, error._cause, error._origin = words, "…", None, None
    with pytest.raises(AssertionError):
        str(error)
    return error


@pytest.mark.parametrize(
    ("words", "told"),
    [("[UNRESOLVED_COLUMN] There is no such column.\nat line 1", r"\[UNRESOLVED_COLUMN\] There is no such column\.$"),
     ("", "AnalysisException$")],
)  # fmt: skip
def test_an_error_of_a_spark_that_has_ended_is_told_by_its_reason(words: str, told: str) -> None:
    error = ended_with(words)
    with pytest.raises(NotReadable, match=f"^Spark cannot answer the query: {told}"), querying._told():
        raise error
