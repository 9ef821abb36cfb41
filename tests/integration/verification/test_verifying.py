"""Tables proved against a real topic: exact ones are, and whatever is spoilt is found at its first offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from airflow_provider_mzshare.connectors.kafka import records
from airflow_provider_mzshare.control.catalog.database.models import CertificateRow
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.control.lifecycle import record_check
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.verified import VerificationFailed
from airflow_provider_mzshare.core.specs import Include, TableSpec
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import NotReadable, UnknownHashVersion
from airflow_provider_mzshare.storage.fanout.hashing import VERSIONS, column_lanes, row_hash
from tests.support.kafka import (
    Record,
    admin,
    create_topic,
    delete_records,
    delete_topic,
    groups,
    produce,
    produce_in_transaction,
)
from tests.support.verifying import JSON_SPEC, Pipeline, Spoil, changed, invented, twice, without

Open = Callable[..., Pipeline]


@pytest.fixture
def open_pipeline(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Open]:
    made: list[Pipeline] = []

    def make(partitions: int = 2, **config: str) -> Pipeline:
        topic = create_topic(kafka, partitions, config={key.replace("_", "."): value for key, value in config.items()})
        made.append(Pipeline(kafka, tmp_path, topic))
        return made[-1]

    yield make
    for pipeline in made:
        pipeline.close()


def send(kafka: EmbeddedKafka, topic: str, count: int, *, first: int = 0, partitions: int = 2) -> None:
    """Good records in turns to the partitions, every tenth one bad."""
    produce(
        kafka,
        topic,
        [
            Record(b"{broken" if n % 10 == 9 else b'{"n": %d, "name": "row %d"}' % (n, n), b"k", n % partitions)
            for n in range(first, first + count)
        ],
    )


def backfilled(kafka: EmbeddedKafka, pipeline: Pipeline, spoil: Spoil | None = None) -> str:
    """A table that missed two ticks, was brought up by a backfill, and cut over at the third; then one more."""
    pipeline.add_table("first")
    for first in (0, 40):
        send(kafka, pipeline.topic, 40, first=first)
        pipeline.tick()
    table_id = pipeline.add_table("t")
    pipeline.spoil = spoil
    pipeline.backfill(table_id)
    for first in (80, 120):
        send(kafka, pipeline.topic, 40, first=first)
        pipeline.tick()
    return table_id


def test_a_table_is_exact_from_its_backfill_to_the_tick_of_its_cutover(
    kafka: EmbeddedKafka, open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline()
    table_id = backfilled(kafka, pipeline)
    before, seen = groups(kafka), list[Progress]()
    monkeypatch.setattr(records, "MESSAGES", 4)
    monkeypatch.setattr(record_check, "cut", partial(record_check.cut, offsets=7))

    verified = pipeline.verify(table_id, report=seen.append)

    assert (verified.verdict, verified.reason, verified.table, verified.tick) == ("exact", None, "t", 3)
    assert (verified.rows, verified.errors) == (108, 12)
    assert [(p.partition, p.lower, p.upper) for p in verified.partitions] == [(0, 0, 60), (1, 0, 60)]
    assert sum(p.rows for p in verified.partitions) == 108
    assert (seen[-1].done, seen[-1].total) == (120, 120)
    assert len(seen) > 2 * 60 / 8
    assert groups(kafka) == before
    everything = pipeline.verify(table_id, everything=True)
    assert (everything.tick, everything.rows, everything.errors) == (4, 144, 16)
    with pipeline.catalog.read() as session:
        certificate = last_certificate(session, table_id)
    assert certificate is not None
    assert (certificate.rows, certificate.errors, certificate.tick) == (72, 8, 3)


@pytest.mark.parametrize(
    ("spoil", "offset", "what"),
    [
        (without(1, 7), 7, "missing"),
        (twice(0, 12), 12, "double"),
        (changed(0, 3, b'{"n": 6, "name": "row 7"}'), 3, "differs"),
        (changed(1, 4, b'{"n": 9, "name": "repaired"}'), 4, "differs"),
        (changed(1, 9, b"{broken differently"), 9, "differs"),
        (without(1, 19), 19, "missing"),
        (twice(1, 4), 4, "double"),
    ],
)
def test_what_a_backfill_did_wrong_is_found_though_its_own_sums_agree(
    kafka: EmbeddedKafka, open_pipeline: Open, spoil: Spoil, offset: int, what: str
) -> None:
    pipeline = open_pipeline()
    with pytest.raises(VerificationFailed) as failed:
        pipeline.verify(backfilled(kafka, pipeline, spoil))
    assert (failed.value.table, failed.value.offset, failed.value.what) == ("t", offset, what)
    assert f"offset {offset} is" in failed.value.line


@pytest.mark.parametrize("place", [(0, 75), (5, 0)])
def test_a_row_past_what_the_ticks_cover_is_found(
    kafka: EmbeddedKafka, open_pipeline: Open, place: tuple[int, int]
) -> None:
    pipeline = open_pipeline()
    pipeline.spoil = invented(*place)
    table_id = pipeline.add_table("t")
    send(kafka, pipeline.topic, 40)
    pipeline.tick()
    with pytest.raises(VerificationFailed) as failed:
        pipeline.verify(table_id)
    assert (failed.value.partition, failed.value.offset, failed.value.what) == (*place, "not upstream")


def test_a_certificate_that_tells_something_else_is_found(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    table_id = backfilled(kafka, pipeline)
    with pipeline.catalog.write() as session:
        session.query(CertificateRow).update({"data_hash": "0" * 31 + "1"})
    with pytest.raises(
        VerificationFailed, match="72 rows and 8 errors, but the range holds 72 and 8, with different hashes"
    ):
        pipeline.verify(table_id)


def test_a_certificate_is_compared_by_its_own_version(
    kafka: EmbeddedKafka, open_pipeline: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = open_pipeline()
    table_id = backfilled(kafka, pipeline)
    before = pipeline.verify(table_id)
    assert before.hash_version == 1

    later = replace(row_hash(1), version=2, column_lanes=lambda name, column: column_lanes(f"2:{name}", column))
    monkeypatch.setitem(VERSIONS, 2, later)  # type: ignore[arg-type]
    with pipeline.catalog.write() as session:
        session.query(CertificateRow).update({"hash_version": 2})
    with pytest.raises(VerificationFailed, match="with different hashes"):
        pipeline.verify(table_id)

    with pipeline.catalog.write() as session:
        session.query(CertificateRow).update({"hash_version": 7})
    with pytest.raises(UnknownHashVersion, match="version 7"):
        pipeline.verify(table_id)


def test_control_records_and_aborted_transactions_are_no_gaps(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline(1)
    table_id = pipeline.add_table("t", TableSpec(reference="topic", format="text"))
    for round_ in range(3):
        produce_in_transaction(kafka, pipeline.topic, [b"kept %d" % n for n in range(5)])
        produce_in_transaction(kafka, pipeline.topic, [b"aborted"] * (round_ + 1), commit=False)
        pipeline.tick()
    verified = pipeline.verify(table_id)
    assert (verified.verdict, verified.rows, verified.errors) == ("exact", 15, 0)
    assert verified.partitions[0].upper == 15 + 6 + 6

    # What was aborted must not be in the table.
    pipeline.spoil = invented(0, 29)
    produce_in_transaction(kafka, pipeline.topic, [b"kept", b"kept"])
    produce_in_transaction(kafka, pipeline.topic, [b"aborted"] * 3, commit=False)
    pipeline.tick()
    with pytest.raises(VerificationFailed) as failed:
        pipeline.verify(table_id)
    assert (failed.value.offset, failed.value.what) == (29, "not upstream")


def test_every_format_and_metadata_column_compares(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    include = tuple(Include(what=what, name=f"its {what}") for what in ("partition", "offset", "timestamp", "key"))
    specs = {
        "j": JSON_SPEC.model_copy(update={"include": include}),
        "u": TableSpec(reference="topic", format="json", include=include),
        "x": TableSpec(reference="topic", format="text", include=include),
        "b": TableSpec(reference="topic", format="bytes", include=include),
    }
    tables = [pipeline.add_table(name, spec) for name, spec in specs.items()]
    send(kafka, pipeline.topic, 30)
    odd = [None, b"", b"\xff\xfe", b"[1]", b'{"n": "x"}', b'{"n": 1e400}', b'{"n": 7}']
    produce(kafka, pipeline.topic, [Record(value, b"\xff" if value else None, 1) for value in odd])
    pipeline.tick()
    for table_id in tables:
        verified = pipeline.verify(table_id)
        assert (verified.verdict, verified.rows + verified.errors) == ("exact", 37), verified.table


def test_what_retention_removed_is_unverifiable_and_no_failure(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    table_id = backfilled(kafka, pipeline)
    delete_records(kafka, pipeline.topic, {1: 10})
    verified = pipeline.verify(table_id)
    assert (verified.verdict, verified.partitions) == ("unverifiable", ())
    assert verified.reason == "partition 1 now begins at offset 10 upstream, but the range begins at 0"


def test_a_topic_made_anew_is_unverifiable(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    table_id = pipeline.add_table("t")
    send(kafka, pipeline.topic, 20)
    pipeline.tick()
    delete_topic(kafka, pipeline.topic)
    create_topic(kafka, 2, name=pipeline.topic)
    send(kafka, pipeline.topic, 20)
    verified = pipeline.verify(table_id)
    assert verified.verdict == "unverifiable"
    assert "deleted and created again" in (verified.reason or "")


def test_rows_that_a_compacted_topic_lost_are_unverifiable(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    """A row that is not upstream is a failure, unless the topic may have lost it by compaction."""
    pipeline = open_pipeline(1)
    table_id = pipeline.add_table("t", TableSpec(reference="topic", format="text"))
    produce_in_transaction(kafka, pipeline.topic, [b"kept"] * 3)
    produce_in_transaction(kafka, pipeline.topic, [b"gone"], commit=False)
    pipeline.spoil = invented(0, 4)
    pipeline.tick()
    with pytest.raises(VerificationFailed, match="offset 4 is in the table and not upstream"):
        pipeline.verify(table_id)
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    client = admin(kafka)
    resource = ConfigResource(ResourceType.TOPIC, pipeline.topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)
    verified = pipeline.verify(table_id)
    assert (verified.verdict, verified.rows) == ("unverifiable", 4)
    assert verified.reason == "the table has rows that are not upstream (1), because the topic is compacted"


def test_a_table_without_a_tick_cannot_be_verified_yet(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    with pytest.raises(NotReadable, match="no committed tick yet"):
        pipeline.verify(pipeline.add_table("t"))


def test_a_table_that_never_had_rows_is_exact(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    table_id = pipeline.add_table("t")
    pipeline.tick()
    verified = pipeline.verify(table_id)
    assert (verified.verdict, verified.rows, verified.partitions) == ("exact", 0, ())


@pytest.mark.full
def test_200_000_json_rows_are_verified_in_seconds(kafka: EmbeddedKafka, open_pipeline: Open) -> None:
    pipeline = open_pipeline()
    table_id = pipeline.add_table("t")
    rows = (Record(b'{"n": %d, "name": "customer %d"}' % (n, n), None, n % 2) for n in range(200_000))
    produce(kafka, pipeline.topic, rows, **{"linger.ms": 50})
    pipeline.tick()
    verified = pipeline.verify(table_id)
    print(f"{verified.rows / verified.seconds:,.0f} rows/s")
    assert (verified.verdict, verified.rows) == ("exact", 200_000)
    assert verified.rows / verified.seconds > 5_000
