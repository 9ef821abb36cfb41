"""How much of a machine a backfill takes."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.compute.masters import backfill_master


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("local[8]", "local[4]"),
        ("local[3]", "local[1]"),
        ("local[1]", "local[1]"),
        ("local[*]", "local[3]"),
        ("local[4,2]", "local[2,2]"),
        ("local[*,1]", "local[3,1]"),
        ("local", "local"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_half_of_a_machine_and_a_cluster_as_it_is(given: str, wanted: str) -> None:
    assert backfill_master(given, cores=6) == wanted


def test_it_counts_the_cores_of_this_machine() -> None:
    assert backfill_master("local[*]").startswith("local[")
    assert "*" not in backfill_master("local[*]")
