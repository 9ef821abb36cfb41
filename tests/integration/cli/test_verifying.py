"""``mzshare verify``: one sentence or one record, and an exit code for each verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.integration.cli.conftest import Cli
from tests.support.kafka import Record, create_topic, delete_records, produce
from tests.support.verifying import Pipeline, without


@pytest.fixture
def pipeline(broker_cli: Cli, kafka: EmbeddedKafka) -> Iterator[Pipeline]:
    """Tables ``good`` and ``bad`` of ten records, one of which ``bad`` has lost."""
    made = Pipeline(kafka, broker_cli.home, create_topic(kafka))
    produce(kafka, made.topic, [Record(b'{"n": %d}' % n, None, 0) for n in range(9)] + [Record(b"{", None, 0)])
    made.add_table("good")
    made.tick()
    bad = made.add_table("bad")
    made.spoil = without(0, 4)
    made.backfill(bad)
    made.tick()
    yield made
    made.close()


def test_each_verdict_has_its_words_and_its_exit_code(
    broker_cli: Cli, pipeline: Pipeline, kafka: EmbeddedKafka
) -> None:
    exact = broker_cli.ok("verify", "good")
    assert exact.out.startswith(
        "good is exact at tick 2: 9 rows and 1 errors match the upstream, each exactly once (0:0-10;"
    )
    record = json.loads(broker_cli.ok("verify", "good", "--all", "--output", "json").out)
    assert (record["verdict"], record["reason"], record["rows"], record["errors"]) == ("exact", None, 9, 1)
    assert record["partitions"] == [{"partition": 0, "lower": 0, "upper": 10, "rows": 9, "errors": 1}]

    failed = broker_cli.error("verify", "bad")
    assert "table 'bad' is not exact: partition 0, offset 4 is upstream and not in the table" in failed
    assert "mzshare sql 'ALTER TABLE bad RESNAPSHOT'" in failed

    delete_records(kafka, pipeline.topic, {0: 3})
    gone = broker_cli("verify", "good")
    assert (gone.code, gone.out) == (
        3, "good is unverifiable: partition 0 now begins at offset 3 upstream, but the range begins at 0\n",
    )  # fmt: skip
    assert json.loads(broker_cli("verify", "good", "-o", "json").out)["verdict"] == "unverifiable"


def test_a_damaged_table_is_told_as_that(broker_cli: Cli, pipeline: Pipeline) -> None:
    file = min(Path(pipeline.root).glob("*-data-*/*.parquet"))
    file.unlink()
    line = broker_cli.error("verify", "good", "--all")
    assert f"table good is damaged: {file.parent.name}/{file.name} is missing" in line


def test_only_a_table_can_be_verified(broker_cli: Cli, pipeline: Pipeline) -> None:
    assert "'s' is a source, not a table" in broker_cli.error("verify", "s")
    assert "'nope' does not exist" in broker_cli.error("verify", "nope")
