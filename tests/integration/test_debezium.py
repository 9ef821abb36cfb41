"""A real Debezium on a real Postgres: what it says, as the oracle of ENVELOPE DEBEZIUM reads it, is what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.fixtures.debezium.make import make
from tests.support.debezium.recorded import check_upstream
from tests.support.postgres import Postgres

pytestmark = pytest.mark.full(seconds=200)  # Fetches Debezium, where it is not there.


@pytest.mark.timeout(900)
def test_what_it_says_after_kills_and_snapshots_is_what_the_upstream_has(
    tmp_path: Path, postgres: Postgres, kafka: EmbeddedKafka
) -> None:
    for stream in make(tmp_path, postgres, kafka, seed=2):
        check_upstream(stream)
