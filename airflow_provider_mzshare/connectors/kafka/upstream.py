"""One Kafka topic as an upstream: what it is, how far it reaches, where to start. Of records it only takes samples."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigEntry, ConfigResource, ListOffsetsResultInfo, OffsetSpec, TopicDescription

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS, Compaction, Inspection, ReferenceInfo
from airflow_provider_mzshare.connectors.kafka import sampling, starts
from airflow_provider_mzshare.connectors.kafka.clients import Clients, Deadline, NotReady
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import NotAuthorized, ReferenceMissing, UpstreamChanged, UpstreamUnreachable

_EARLIEST: OffsetSpec = OffsetSpec.earliest()
_LATEST: OffsetSpec = OffsetSpec.latest()

NO_SUCH_TIME = -1
"""The offset that Kafka gives for a time after the last record."""

INSPECT_SECONDS = 14.0
"""The time limit of all checks of a CREATE SOURCE together."""

_LOOKS, _PAUSE = 4, 0.2
"""A broker that has just started may not know a topic yet: a topic is missing only if it is so after so many looks."""

T = TypeVar("T")


@dataclass(frozen=True)
class TopicInfo:
    topic_id: str
    partitions: tuple[int, ...]

    @property
    def incarnation(self) -> str:
        return self.topic_id


class KafkaUpstream:
    """:param config: how to connect. :param topic: what to read. :param timeout: seconds that one call may take."""

    def __init__(self, config: KafkaConfig, topic: str, *, timeout: float = REQUEST_SECONDS) -> None:
        self._config, self._topic, self._timeout = config, topic, timeout
        self._clients = Clients(config, topic)
        self._consumer_lock = threading.Lock()

    def inspect(self, start: Start) -> Inspection:
        """Everything that must hold before a source is created, in one time limit: reachable, there, readable."""
        deadline = Deadline(INSPECT_SECONDS)
        self._config.spark()  # what Spark would be given is part of what is checked
        info = self._describe(deadline)
        end = self._list_offsets(info.partitions, _LATEST, deadline)
        self._check_read(info.partitions[0], end, deadline)
        return Inspection(info, self._resolve(start, info.partitions, deadline))

    def describe(self) -> TopicInfo:
        return self._describe(Deadline(self._timeout))

    def references(self) -> tuple[ReferenceInfo, ...]:
        """The topic: that is all a Kafka source exports, and what is in its records a table's format says."""
        self.describe()
        return (ReferenceInfo(None, self._topic),)

    def check_readable(self) -> None:
        """Raise ``NotAuthorized`` where the topic may be described but not read."""
        deadline = Deadline(self._timeout)
        partitions = self._describe(deadline).partitions
        self._check_read(partitions[0], self._list_offsets(partitions[:1], _LATEST, deadline), deadline)

    def begin_offsets(self) -> Position:
        deadline = Deadline(self._timeout)
        return Position(self._list_offsets(self._describe(deadline).partitions, _EARLIEST, deadline))

    def end_offsets(self) -> Position:
        """Last stable offsets: what lies behind them belongs to open transactions."""
        deadline = Deadline(self._timeout)
        return Position(self._list_offsets(self._describe(deadline).partitions, _LATEST, deadline))

    def resolve_start(self, start: Start) -> Position:
        deadline = Deadline(self._timeout)
        return self._resolve(start, self._describe(deadline).partitions, deadline)

    def check_identity(self, topic_id: str) -> None:
        try:
            found = self.describe().topic_id
        except ReferenceMissing as missing:
            raise UpstreamChanged("topic_missing", f"{missing.message} any more") from None
        if found != topic_id:
            raise UpstreamChanged(
                "topic_recreated",
                f"topic {self._topic!r} was deleted and created again: its id is now {found}, "
                f"but this source read {topic_id}",
            )

    def check_history(self, lower: Position) -> None:
        for partition, begin in self.begin_offsets().entries:
            ours = lower[partition]
            if begin > ours:
                raise UpstreamChanged(
                    "history_gone",
                    f"topic {self._topic!r}, partition {partition}: the next offset to read is {ours}, "
                    f"but the log now begins at {begin}: {begin - ours} offsets are gone",
                )

    def compaction(self) -> Compaction | None:
        """As the topic's settings are now, its own or the broker's."""

        def request() -> Sequence[Future[Mapping[str, ConfigEntry]]]:
            topic = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
            return list(self._clients.admin.describe_configs([topic], request_timeout=deadline.request).values())

        deadline = Deadline(self._timeout)
        try:
            (found,) = self._ask(request, deadline)
        except NotAuthorized:
            raise self._clients.denied("DESCRIBE_CONFIGS") from None
        if "compact" not in str(found["cleanup.policy"].value).split(","):
            return None
        kept, lag = (int(str(found[name].value)) for name in ("delete.retention.ms", "min.compaction.lag.ms"))
        return Compaction(kept, lag)

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        """Mean bytes of a record of ``[lower, upper)``, by partition, from a look at a few; not all have one."""
        consumer = self._clients.open_consumer(sampling.LIMITS)
        try:
            return sampling.mean_sizes(consumer, self._topic, lower, upper)
        finally:
            consumer.close()

    def close(self) -> None:
        with self._consumer_lock:
            self._clients.close()

    def __enter__(self) -> KafkaUpstream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: Callable[[], Sequence[Future[T]]], deadline: Deadline) -> list[T]:
        looks = 0
        while True:
            looks += 1
            try:
                return self._clients.settle(request(), deadline)
            except (NotReady, ReferenceMissing) as problem:
                final = isinstance(problem, ReferenceMissing) and looks == _LOOKS
                if final or deadline.left < _PAUSE:
                    raise
            time.sleep(_PAUSE)

    def _describe(self, deadline: Deadline) -> TopicInfo:
        def request() -> Sequence[Future[TopicDescription]]:
            topics = TopicCollection([self._topic])
            return list(self._clients.admin.describe_topics(topics, request_timeout=deadline.request).values())

        try:
            found = self._ask(request, deadline)[0]
        except ReferenceMissing as missing:
            raise self._with_similar(missing, deadline) from None
        # Spelt as Kafka's own tools spell it.
        topic_id = str(found.topic_id).replace("+", "-").replace("/", "_")
        return TopicInfo(topic_id, tuple(sorted(partition.id for partition in found.partitions)))

    def _with_similar(self, missing: ReferenceMissing, deadline: Deadline) -> ReferenceMissing:
        """Name what the user may have meant, out of what the user may see."""
        try:
            names = self._clients.admin.list_topics(timeout=min(deadline.request, 2.0)).topics
        except KafkaException:
            names = {}
        similar = difflib.get_close_matches(self._topic, [name for name in names if not name.startswith("__")])
        hint = f"perhaps {' or '.join(repr(name) for name in similar)}" if similar else "create the topic first"
        return ReferenceMissing(missing.message, hint=hint)

    def _list_offsets(self, partitions: Sequence[int], spec: OffsetSpec, deadline: Deadline) -> Mapping[int, int]:
        def request() -> Sequence[Future[ListOffsetsResultInfo]]:
            asked = {TopicPartition(self._topic, partition): spec for partition in partitions}
            level = IsolationLevel.READ_COMMITTED
            answers = self._clients.admin.list_offsets(asked, isolation_level=level, request_timeout=deadline.request)
            by_partition = {place.partition: answer for place, answer in answers.items()}
            return [by_partition[partition] for partition in partitions]

        answers = self._ask(request, deadline)
        offsets = {partition: int(answer.offset) for partition, answer in zip(partitions, answers, strict=True)}
        # A request that runs out of time half-way "succeeds" with -1001 where there was no answer; -1 is an answer.
        unanswered = [partition for partition, offset in offsets.items() if offset < NO_SUCH_TIME]
        if unanswered:
            raise UpstreamUnreachable(f"topic {self._topic!r}, partition {unanswered[0]}: Kafka gave no offset in time")
        return offsets

    def _check_read(self, partition: int, end: Mapping[int, int], deadline: Deadline) -> None:
        with self._consumer_lock:
            self._clients.check_read(partition, end[partition], deadline)

    def _resolve(self, start: Start, partitions: Sequence[int], deadline: Deadline) -> Position:
        if start.mode == "earliest":
            return Position(self._list_offsets(partitions, _EARLIEST, deadline))
        end = self._list_offsets(partitions, _LATEST, deadline)
        if start.mode == "offset":
            begin = self._list_offsets(partitions, _EARLIEST, deadline)
            return starts.from_offsets(self._topic, start.asked, begin, end)
        timestamp = starts.absolute(start.timestamp or 0, time.time_ns() // 1_000_000)
        found = self._list_offsets(partitions, OffsetSpec.for_timestamp(timestamp), deadline)
        return starts.from_times({p: None if at == NO_SUCH_TIME else at for p, at in found.items()}, end)
