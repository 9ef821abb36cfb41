"""Small ranges of a topic that follow each other, read by one client: exactly, and with everything sent once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.records import RecordReader
from airflow_provider_mzshare.connectors.kafka.tail import Tail
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import UpstreamChanged
from tests.support import extremes
from tests.support.kafka import (
    Record,
    add_partitions,
    consume,
    create_topic,
    delete_records,
    groups,
    open_transaction,
    positions,
    produce,
    produce_in_transaction,
)
from tests.support.raw_records import send_raw

ALL = 1 << 30


@pytest.fixture
def config(kafka: EmbeddedKafka) -> KafkaConfig:
    return KafkaConfig.from_connection(Connection("bus", "kafka", extra={"bootstrap.servers": kafka.bootstrap}))


def end(kafka: EmbeddedKafka, topic: str) -> Position:
    return Position(positions(kafka, topic))


def rows(batches: Iterable[pa.RecordBatch] | None) -> list[tuple[int, int, bytes]]:
    assert batches is not None
    return [(row["partition"], row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


def in_steps(tail: Tail, cuts: Sequence[Position]) -> Iterator[tuple[int, int, bytes]]:
    for lower, upper in pairwise(cuts):
        found = rows(tail.read_small(lower, upper, ALL))
        assert all(lower[p] <= offset < upper[p] for p, offset, _ in found)
        for partition in {p for p, _, _ in found}:
            offsets = [offset for p, offset, _ in found if p == partition]
            assert offsets == sorted(offsets), "those of a partition in order"
        yield from found


def some(first: int, count: int, partitions: int) -> list[Record]:
    return [Record(b"%d" % n, partition=n % partitions) for n in range(first, first + count)]


def mixed(kafka: EmbeddedKafka, topic: str, partitions: int) -> None:
    """Plain records between transactions, half of which are aborted."""
    for first in range(0, 600, 60):
        produce(kafka, topic, some(first, 20, partitions))
        for begin, commit in ((20, True), (40, False)):
            produce_in_transaction(kafka, topic, some(first + begin, 20, partitions), commit=commit)


@pytest.mark.parametrize("seed", range(4))
def test_any_cuts_of_a_topic_with_transactions_give_its_committed_records(
    kafka: EmbeddedKafka, config: KafkaConfig, seed: int
) -> None:
    """Also cuts at markers and within what was aborted, and cuts after which a reader goes back."""
    topic, chosen = create_topic(kafka, 3), random.Random(seed)
    mixed(kafka, topic, 3)
    whole = end(kafka, topic)
    with RecordReader(config, topic) as plain:
        wanted = sorted(rows(plain.read_range(Position(), whole)))
    assert len(wanted) == 400
    with Tail(config, topic) as tail:
        for _ in range(3):
            cuts = [Position()]
            while cuts[-1] != whole:
                steps = {p: min(whole[p], cuts[-1][p] + chosen.choice((0, 0, 1, 2, 30))) for p in whole}
                cuts.append(Position(steps))
            assert sorted(in_steps(tail, cuts)) == wanted
            back = chosen.randrange(len(cuts) - 1)
            again = rows(tail.read_small(cuts[back], cuts[back + 1], ALL))
            assert set(again) <= set(wanted)
    assert not [group for group in groups(kafka) if group.startswith("mzshare")]


def test_what_is_written_meanwhile_is_read_as_far_as_it_is_committed(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    topic = create_topic(kafka, 2)
    with Tail(config, topic) as tail:
        assert rows(tail.read_small(Position(), Position(), ALL)) == []
        produce(kafka, topic, some(0, 10, 2))
        first = end(kafka, topic)
        assert len(rows(tail.read_small(Position(), first, ALL))) == 10
        with open_transaction(kafka, topic, some(10, 2, 2)) as (transaction, _):
            produce(kafka, topic, some(20, 4, 1))
            assert end(kafka, topic) == first, "the transaction holds the end back"
            assert rows(tail.read_small(first, first, ALL)) == []
            transaction.abort_transaction(30)
        second = end(kafka, topic)
        assert sorted(value for _, _, value in rows(tail.read_small(first, second, ALL))) == [
            b"20",
            b"21",
            b"22",
            b"23",
        ]
        add_partitions(kafka, topic, 3)
        produce(kafka, topic, [Record(b"new", partition=2)])
        assert rows(tail.read_small(second, end(kafka, topic), ALL)) == [(2, 0, b"new")]


def test_ranges_in_a_row_make_the_broker_send_everything_once(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    """Although far more is there than each range asks for."""
    topic = create_topic(kafka, 4)
    produce(kafka, topic, (Record(b"%d" % n + b"x" * 500, partition=n % 4) for n in range(20_000)))
    whole, before = end(kafka, topic), kafka.bytes_out(topic)
    consume(kafka, topic)
    plain = kafka.bytes_out(topic) - before
    cuts = [Position()]
    while cuts[-1] != whole:
        cuts.append(cuts[-1].toward(whole, 500))
    with Tail(config, topic) as tail:
        assert len(list(in_steps(tail, cuts))) == 20_000
    ratio = (kafka.bytes_out(topic) - before - plain) / plain
    print(f"{len(cuts) - 1} ranges in a row: {ratio:.3f} of one read")
    assert ratio <= 1.05


def test_a_reader_that_let_go_fetches_nothing_that_others_read(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    topic = create_topic(kafka, 4)
    produce(kafka, topic, some(0, 100, 4))
    first = end(kafka, topic)
    with Tail(config, topic) as tail:
        assert len(rows(tail.read_small(Position(), first, ALL))) == 100
        tail.let_go()
        before = kafka.bytes_out(topic)
        produce(kafka, topic, (Record(b"x" * 500, partition=n % 4) for n in range(10_000)))
        both = []
        for _ in range(2):
            consume(kafka, topic)
            both.append(kafka.bytes_out(topic) - before)
        assert both[0] <= 1.05 * (both[1] - both[0]), "only the other reader was sent anything"
        assert len(rows(tail.read_small(first, end(kafka, topic), ALL))) == 10_000


def test_a_range_that_is_too_large_is_not_read_and_the_next_one_is(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    """By its own bytes: what lies behind it is no reason."""
    topic = create_topic(kafka, 1)
    produce(kafka, topic, (Record(b"x" * 1_000, partition=0) for _ in range(2_000)))
    with Tail(config, topic) as tail:
        assert tail.read_small(Position(), Position({0: 1_500}), 1_000_000) is None
        assert len(rows(tail.read_small(Position(), Position({0: 900}), 1_000_000))) == 900
        assert len(rows(tail.read_small(Position({0: 900}), Position({0: 2_000}), ALL))) == 1_100


def test_history_that_is_gone_is_told_where_it_is_asked_for(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, some(0, 20, 2))
    with Tail(config, topic) as tail:
        assert len(rows(tail.read_small(Position(), Position({0: 2, 1: 2}), ALL))) == 4
        tail.let_go()
        delete_records(kafka, topic, {0: 5})
        assert len(rows(tail.read_small(Position({0: 2, 1: 2}), Position({0: 2, 1: 9}), ALL))) == 7
        with pytest.raises(UpstreamChanged) as told:
            tail.read_small(Position({0: 2, 1: 9}), Position({0: 9, 1: 10}), ALL)
        assert told.value.reason == "history_gone"
        assert len(rows(tail.read_small(Position({0: 5, 1: 9}), Position({0: 10, 1: 10}), ALL))) == 6


def test_every_field_at_its_extremes_is_read_as_it_was_sent(kafka: EmbeddedKafka, config: KafkaConfig) -> None:
    topic, sent = create_topic(kafka, config=extremes.TOPIC_CONFIG), extremes.records()
    assert send_raw(kafka, topic, sent) == 0
    with Tail(config, topic) as tail:
        batches = tail.read_small(Position(), Position({0: len(sent)}), ALL)
        assert batches is not None
        found = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["offset"], row["key"], row["value"], row["timestamp"]) for row in found] == [
        (offset, record.key, record.value, extremes.moment(record.timestamp)) for offset, record in enumerate(sent)
    ]
