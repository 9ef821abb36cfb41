"""Topics, records, transactions and rights on a real broker, each in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, IsolationLevel, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.waiting import wait_until

USERS = {"alice": "alice-secret", "bob": "bob-secret"}


class Record(NamedTuple):
    """What is produced; partition None lets the producer choose, timestamp 0 is now."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int = 0


class Place(NamedTuple):
    """Where a record landed."""

    partition: int
    offset: int


def admin(kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})


def create_topic(
    kafka: EmbeddedKafka, partitions: int = 1, *, name: str = "", config: Mapping[str, str] | None = None
) -> str:
    """Return the name of a new topic that is ready for use; unique unless a name is given."""
    name = name or f"topic-{uuid4().hex[:12]}"
    client = admin(kafka)
    client.create_topics([NewTopic(name, partitions, 1, config=dict(config or {}))])[name].result(30)
    wait_until(lambda: _leaders(client, name) == partitions, 30, f"leaders of {name}")
    return name


def delete_topic(kafka: EmbeddedKafka, name: str) -> None:
    """Delete it, and return when the broker no longer lists it."""
    client = admin(kafka)
    client.delete_topics([name])[name].result(30)
    wait_until(lambda: name not in client.list_topics(timeout=10).topics, 30, f"deletion of {name}")


def add_partitions(kafka: EmbeddedKafka, topic: str, total: int) -> None:
    client = admin(kafka)
    client.create_partitions([NewPartitions(topic, total)])[topic].result(30)
    wait_until(lambda: _leaders(client, topic) == total, 30, f"leaders of {topic}")


def topic_id(kafka: EmbeddedKafka, topic: str) -> str:
    client = admin(kafka)  # Kept in a name: a client that is collected gives up its calls.
    described = client.describe_topics(TopicCollection([topic]))[topic].result(30)
    return str(described.topic_id)


def delete_records(kafka: EmbeddedKafka, topic: str, before: Mapping[int, int]) -> None:
    """Move the beginning of partitions, as retention would."""
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    client = admin(kafka)
    for answer in client.delete_records(wanted).values():
        answer.result(30)


def positions(
    kafka: EmbeddedKafka, topic: str, spec: OffsetSpec | None = None, *, committed: bool = True
) -> dict[int, int]:
    """Return the end (or another spec) of each partition; committed means the last stable offset."""
    client = admin(kafka)
    partitions = client.list_topics(topic, timeout=10).topics[topic].partitions
    wanted = {TopicPartition(topic, partition): spec or OffsetSpec.latest() for partition in partitions}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    answers = client.list_offsets(wanted, isolation_level=level)
    return {place.partition: answer.result(30).offset for place, answer in sorted(answers.items(), key=_by_partition)}


def produce(kafka: EmbeddedKafka, topic: str, records: Iterable[Record | bytes | None], **config: Any) -> list[Place]:
    """Produce, wait for the broker, and return where each record landed, in the order given."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 5, "log_level": 0, **config})
    return _send(producer, topic, records)


def produce_in_transaction(
    kafka: EmbeddedKafka, topic: str, records: Iterable[Record | bytes | None], *, commit: bool = True
) -> list[Place]:
    """Produce in one transaction that is committed, or aborted."""
    with open_transaction(kafka, topic, records) as (producer, places):
        if commit:
            producer.commit_transaction(30)
    return places


@contextmanager
def open_transaction(
    kafka: EmbeddedKafka, topic: str, records: Iterable[Record | bytes | None]
) -> Iterator[tuple[Producer, list[Place]]]:
    """Hold a transaction open with its records flushed; the caller may commit it, else it is aborted at the end."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"tx-{uuid4().hex}", "linger.ms": 5, "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    finished = _Finished(producer)
    try:
        yield finished, _send(producer, topic, records)  # type: ignore[misc]
    finally:
        if not finished.done:
            producer.abort_transaction(30)


def consume(kafka: EmbeddedKafka, topic: str, *, isolation: str = "read_committed") -> list[Message]:
    """Read the topic once from its beginning to its present end with a plain consumer."""
    ends = positions(kafka, topic, committed=isolation == "read_committed")
    starts = positions(kafka, topic, OffsetSpec.earliest())
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": f"plain-{uuid4().hex}",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
        return _read_to(consumer, topic, ends)
    finally:
        consumer.close()


def sasl_config(kafka: EmbeddedKafka, user: str, password: str | None = None) -> dict[str, str]:
    """Return librdkafka's configuration for a SASL user."""
    return {
        "bootstrap.servers": kafka.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user] if password is None else password,
    }


def allow(
    kafka: EmbeddedKafka,
    user: str,
    topic: str,
    operations: Sequence[AclOperation] = (AclOperation.READ, AclOperation.DESCRIBE),
    *,
    resource: ResourceType = ResourceType.TOPIC,
) -> None:
    """Grant a SASL user operations on a topic (or, with ``resource``, on a group; ``*`` is all)."""
    bindings = [
        AclBinding(
            resource, topic, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW
        )
        for operation in operations
    ]
    client = admin(kafka)
    for answer in client.create_acls(bindings).values():
        answer.result(30)


class _Finished:
    """A producer that knows whether its transaction was ended by the caller."""

    def __init__(self, producer: Producer) -> None:
        self._producer, self.done = producer, False

    def commit_transaction(self, timeout: float) -> None:
        self._producer.commit_transaction(timeout)
        self.done = True

    def abort_transaction(self, timeout: float) -> None:
        self._producer.abort_transaction(timeout)
        self.done = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


def _send(producer: Producer, topic: str, records: Iterable[Record | bytes | None]) -> list[Place]:
    places: list[Place | None] = []
    failures: list[str] = []

    def landed(index: int, error: Any, message: Message) -> None:
        if error:
            failures.append(str(error))
        else:
            places[index] = Place(message.partition(), message.offset())

    for index, given in enumerate(records):
        record = given if isinstance(given, Record) else Record(given)
        places.append(None)
        chosen = {} if record.partition is None else {"partition": record.partition}
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    timestamp=record.timestamp,
                    on_delivery=lambda error, message, index=index: landed(index, error, message),
                    **chosen,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0, "the broker did not take all records"
    assert not failures, failures[0]
    return [place for place in places if place is not None]


def _read_to(consumer: Consumer, topic: str, ends: Mapping[int, int]) -> list[Message]:
    taken: list[Message] = []

    def at_the_end() -> bool:
        for message in consumer.consume(10_000, 0.2):
            assert message.error() is None, message.error()
            if message.offset() < ends[message.partition()]:
                taken.append(message)
        now = consumer.position([TopicPartition(topic, partition) for partition in ends])
        # A partition without records keeps the position "not yet read" (negative).
        return all(place.offset >= ends[place.partition] for place in now if place.offset >= 0 or ends[place.partition])

    wait_until(at_the_end, 120, f"one read of {topic}", every=0)
    return taken


def _leaders(client: AdminClient, topic: str) -> int:
    found = client.list_topics(timeout=10).topics.get(topic)
    return sum(1 for partition in found.partitions.values() if partition.leader >= 0) if found else 0


def _by_partition(item: tuple[TopicPartition, Any]) -> int:
    return int(item[0].partition)


def groups(kafka: EmbeddedKafka) -> list[str]:
    """Return the ids of all consumer groups the broker knows."""
    client = admin(kafka)
    return [group.group_id for group in client.list_consumer_groups().result(30).valid]
