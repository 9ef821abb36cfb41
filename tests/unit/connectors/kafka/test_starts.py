"""Where a source begins."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.kafka.starts import absolute, from_offsets, from_times
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import BadStart

BEGIN, END = {0: 10, 1: 0}, {0: 20, 1: 5}


def test_offsets_within_the_log_and_its_very_end_are_taken():
    assert from_offsets("t", {"0": 10, "1": 5}, BEGIN, END) == Position({0: 10, 1: 5})
    assert from_offsets("t", {"1": 3}, BEGIN, END) == Position({0: 10, 1: 3})
    assert from_offsets("t", {}, BEGIN, END) == Position({0: 10})


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"0": 9}, "from 10 to 20"),
        ({"0": 0}, "from 10 to 20"),
        ({"0": 10, "1": 6}, "partition 1, which can be read from 0 to 5"),
        ({"0": 10, "1": 0, "2": 0}, "partition 2 of topic 't', which has 2"),
        ({"x": 1}, "partition x"),
    ],
)
def test_offsets_outside_the_log_are_refused(asked, says):
    with pytest.raises(BadStart) as caught:
        from_offsets("t", asked, BEGIN, END)
    assert says in caught.value.message


def test_times_count_from_1970_or_back_from_now():
    assert absolute(500, 1_000) == 500
    assert absolute(1_000, 1_000) == 1_000
    assert absolute(-1, 1_000) == 999
    assert absolute(-5_000, 1_000) == 0
    with pytest.raises(BadStart, match="2 s in the future"):
        absolute(3_000, 1_000)


def test_a_partition_without_a_later_record_starts_at_the_end_that_was_fetched_first():
    assert from_times({0: None, 1: 3}, END) == Position({0: 20, 1: 3})
    assert from_times({0: 21, 1: None}, END) == Position({0: 21, 1: 5})
