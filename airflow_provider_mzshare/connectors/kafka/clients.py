"""librdkafka's clients behind time limits and errors of ours; knows nothing of positions or sources."""

from __future__ import annotations

import logging
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.errors import (
    BadConnection,
    MzShareError,
    NotAuthorized,
    ReferenceMissing,
    UpstreamUnreachable,
)

T = TypeVar("T")

# Without a logger, librdkafka writes to stderr.
_logger = logging.getLogger("airflow_provider_mzshare.librdkafka")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False

_SLICE = 0.05
_GRACE = 1.5
"""How long a call goes on after every broker was seen down: one restart of a connection is no outage."""

_DENIED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION)
_NOT_READY = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.REQUEST_TIMED_OUT,
)
_SILENT = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
_NOISE = re.compile(r"^\S+/(?:bootstrap|\d+): | \(after \d+ms in state \w+.*?\)")


class NotReady(UpstreamUnreachable):
    """The cluster answers, but a partition has no leader just now; worth another try within the same call."""


class Deadline:
    """One limit for all the steps of a call."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(self._end - time.monotonic(), 0.0)

    @property
    def request(self) -> float:
        """The time left for librdkafka, which refuses a limit of 0."""
        return max(self.left, 0.01)


class _Troubles:
    """What librdkafka said of brokers since one last answered; a request itself only ever says "timed out".

    It says so once and then keeps silent for a while, so what came before a call counts for the call too.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, str]] = deque(maxlen=64)

    def note(self, error: KafkaError) -> None:
        self._seen.append((time.monotonic(), error.code(), error.str()))

    def forget(self) -> None:
        self._seen.clear()

    def are_final(self, begun: float) -> bool:
        """Every broker is down, or one refused us, and the call that began at ``begun`` had some time to recover."""
        fatal = (*_DENIED, KafkaError._ALL_BROKERS_DOWN)
        first = next((at for at, code, _ in list(self._seen) if code in fatal), None)
        return first is not None and time.monotonic() - max(first, begun) > _GRACE

    def refusal(self) -> str:
        return next((text for _, code, text in list(self._seen) if code in _DENIED), "")

    def last(self) -> str:
        told = [text for _, code, text in list(self._seen) if code != KafkaError._ALL_BROKERS_DOWN]
        return told[-1] if told else ""


class Clients:
    """One admin client and, once asked for, one consumer. Safe from several threads but for the consumer."""

    def __init__(self, config: KafkaConfig, topic: str) -> None:
        self._config, self._topic = config, topic
        self._troubles = _Troubles()
        self._consumer: Consumer | None = None
        self._admins = [self._make(AdminClient, {})]
        self._dropped = weakref.finalize(self, _destroy_in_own_thread, self._admins)
        self._dropped.atexit = False

    @property
    def admin(self) -> AdminClient:
        try:
            return self._admins[0]
        except IndexError:
            raise UpstreamUnreachable(f"the clients of topic {self._topic!r} were closed") from None

    def _make(self, kind: Callable[[dict[str, Any]], T], more: dict[str, Any]) -> T:
        options = {**self._config.client(), **more, "logger": _logger, "error_cb": self._troubles.note}
        try:
            return kind(options)
        except (KafkaException, ValueError, TypeError) as problem:
            reason = problem.args[0].str() if isinstance(problem, KafkaException) else str(problem)
            raise BadConnection(
                f"connection {self._config.name!r} is refused by the Kafka client: {self._config.redact(reason)}"
            ) from None

    def settle(self, futures: Sequence[Future[T]], deadline: Deadline) -> list[T]:
        """The results, or the error that explains their absence."""
        begun = time.monotonic()
        pending: set[Future[T]] = set(futures)
        while pending:
            pending = wait(pending, min(_SLICE, deadline.request), FIRST_EXCEPTION).not_done
            self.admin.poll(0)
            failed = next((f.exception() for f in futures if f.done() and f.exception()), None)
            if failed is not None:
                raise self._explain(failed)
            if pending and (not deadline.left or self._troubles.are_final(begun)):
                raise self._unreachable()
        self._troubles.forget()
        return [future.result() for future in futures]

    def _explain(self, problem: object) -> MzShareError:
        """An error of ours for one of librdkafka's."""
        error = problem.args[0] if isinstance(problem, KafkaException) else problem
        if not isinstance(error, KafkaError) or error.code() in _SILENT:
            return self._unreachable()
        if error.code() in _MISSING:
            return ReferenceMissing(f"topic {self._topic!r} does not exist at {self._config.bootstrap}")
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return self.denied("DESCRIBE")
        if error.code() in _DENIED:
            return self._refused(error.str())
        if error.code() in _NOT_READY:
            return NotReady(f"Kafka cannot answer for topic {self._topic!r} at the moment: {self._clean(error.str())}")
        return self._unreachable(error.str())

    def denied(self, right: str) -> NotAuthorized:
        user = self._config.values.get("sasl.username")
        who = f"user {user!r}" if user else f"connection {self._config.name!r}"
        return NotAuthorized(
            f"{who} has no {right} right on topic {self._topic!r}",
            hint=f"ask the broker's administrator for an ACL that allows {right} on this topic",
        )

    def _refused(self, reason: str) -> NotAuthorized:
        return NotAuthorized(
            f"Kafka at {self._config.bootstrap} refused the credentials of connection {self._config.name!r}: "
            f"{self._clean(reason)}",
            hint="correct sasl.mechanism, sasl.username and sasl.password of the connection",
        )

    def _unreachable(self, reason: str = "") -> MzShareError:
        """If the request gives no reason, what librdkafka last said about a broker."""
        if not reason and (refusal := self._troubles.refusal()):
            return self._refused(refusal)
        reason = reason or self._troubles.last() or "no answer in time"
        return UpstreamUnreachable(
            f"Kafka at {self._config.bootstrap} cannot be reached: {self._clean(reason)}",
            hint=f"check bootstrap.servers and security.protocol of connection {self._config.name!r}, and the broker",
        )

    def _clean(self, reason: str) -> str:
        return self._config.redact(_NOISE.sub("", reason))

    def open_consumer(self, more: Mapping[str, Any]) -> Consumer:
        """One that joins no group and commits nothing. The caller closes it."""
        return self._make(
            Consumer,
            {
                "group.id": "mzshare",  # demanded by the constructor; nothing of it reaches the broker
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                **more,
            },
        )

    def check_read(self, partition: int, offset: int, deadline: Deadline) -> None:
        """Fetch at ``offset``, an end of the log: the only proof of the READ right. Joins no group, commits nothing."""
        if self._consumer is None:
            self._consumer = self.open_consumer({})
        self._consumer.assign([TopicPartition(self._topic, partition, offset)])
        try:
            self._await_fetch(self._consumer, deadline)
        finally:
            self._consumer.unassign()

    def _await_fetch(self, consumer: Consumer, deadline: Deadline) -> None:
        begun = time.monotonic()
        while deadline.left and not self._troubles.are_final(begun):
            message = consumer.poll(_SLICE)
            # Errors without a topic are of the group, which is not used and needs no right.
            if message is None or (message.error() is not None and message.topic() is None):
                continue
            error = message.error()
            # At the end, or retention has just passed the offset: the broker did answer the fetch.
            if error is None or error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                return
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise self.denied("READ")
            raise self._explain(error)
        raise self._unreachable()

    def close(self) -> None:
        self._dropped.detach()
        self._admins.clear()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


def _destroy_in_own_thread(admins: list[AdminClient]) -> None:
    """For clients nobody closed: librdkafka aborts the process when the garbage collector, which may run in one of
    librdkafka's own threads, destroys a client there."""
    threading.Thread(target=admins.clear, daemon=True).start()
