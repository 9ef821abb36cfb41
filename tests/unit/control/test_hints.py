"""Next steps: what a stalled table is told fits what has stalled it."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.core.ticklog import tombstones
from airflow_provider_mzshare.core.ticklog.table_states import TRUNCATED

RESUME, RESNAPSHOT = "mzshare sql 'ALTER TABLE t RESUME'", "mzshare sql 'ALTER TABLE t RESNAPSHOT'"


@pytest.mark.parametrize(
    ("reason", "begins"),
    [
        (None, RESUME),
        ("partition 0, offset 1 cannot be decoded", RESUME),
        (f"{tombstones.REASON}: it was behind for 25 h", RESNAPSHOT),
        # Neither helps: the record is still there, and so are the other partitions.
        (f"{TRUNCATED}: partition 0, offset 1 truncates the table", "this table from a new source: "),
    ],
)
def test_a_stalled_table_is_told_what_heals_it(reason: str | None, begins: str) -> None:
    assert hints.heal("t", reason).startswith(begins)
