"""Which ranges are read by one client in the driver."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.base import is_thin


@pytest.mark.parametrize(
    ("partitions", "records", "thin"),
    [
        (1, 0, True),
        (1, 20_000, True),
        (4, 20_001, False),
        (15, 20_001, False),
        (300, 30_000, True),
        (300, 30_001, False),
    ],
)
def test_a_few_records_or_few_in_each_of_many_partitions(partitions: int, records: int, thin: bool) -> None:
    assert is_thin(partitions, records) is thin
