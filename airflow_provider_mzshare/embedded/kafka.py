"""One real Kafka broker (KRaft) on loopback ports for demos and tests; it must never serve production data."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from airflow_provider_mzshare.compute.jars import classpath
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.embedded.process import LOOPBACK, ServerProcess, free_ports, last_words
from airflow_provider_mzshare.errors import ServerFailed

START_SECONDS = 120.0
PORT_ATTEMPTS = 3
HEAP = "512m"

SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Whoever comes without a name (plaintext listener, controller) may do all; SASL users get what ACLs give them.
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill the controller waits this long (9 s by default) before the broker may register again.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    # Retention, compaction and deletion are seen within a second or two instead of minutes.
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.segment.delete.delay.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}

LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c{1})%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
"""


class EmbeddedKafka:
    """A broker whose data live in ``folder`` and survive stop, kill and restart.

    :param folder: data, configuration and logs; created when missing.
    :param jars: folder that holds the pinned jars of the group ``kafka``.
    :param sasl_users: user to password; with any, there is a second listener (SASL PLAIN) on which ACLs apply.
    :param jmx: open JMX on loopback, for :meth:`bytes_out` and :meth:`bytes_in`.
    :param settings: further broker properties, for instance defaults of topics (``log.retention.ms``).
    """

    def __init__(
        self,
        folder: Path,
        *,
        jars: Path,
        sasl_users: Mapping[str, str] | None = None,
        jmx: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self._jars, self._users, self._jmx = jars, dict(sasl_users or {}), jmx
        self._settings = dict(settings or {})
        self._ports: tuple[int, ...] = ()
        self._process: ServerProcess | None = None

    @property
    def bootstrap(self) -> str:
        """Plaintext listener; its clients may do everything."""
        return f"{LOOPBACK}:{self._port(0)}"

    @property
    def sasl_bootstrap(self) -> str:
        """SASL_PLAINTEXT listener with mechanism PLAIN."""
        if not self._users:
            raise ServerFailed("this broker has no SASL listener", hint="give sasl_users")
        return f"{LOOPBACK}:{self._port(1)}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def start(self) -> EmbeddedKafka:
        """Start the broker and return when it answers; on the ports it had before, if any."""
        if self.running:
            raise ServerFailed(f"the broker in {self.folder} runs already")
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._ports:
            return self._start()
        for _ in range(PORT_ATTEMPTS):
            self._log.unlink(missing_ok=True)
            self._ports = tuple(free_ports(4))
            try:
                return self._start()
            except ServerFailed as error:
                self._ports, failed = (), error
                # Somebody else may have taken a port between our choice and the broker's bind; else it is final.
                if not self._port_was_taken():
                    break
        raise failed

    def stop(self) -> None:
        """Orderly end; nothing of the broker runs afterwards."""
        if self._process:
            self._process.stop()
        self._process = None

    def kill(self) -> None:
        """SIGKILL, as a crash would be; start() continues with the same data and ports."""
        if self._process:
            self._process.kill()
        self._process = None

    def restart(self) -> None:
        """Orderly end and start on the same ports."""
        self.stop()
        self.start()

    def bytes_out(self, topic: str) -> int:
        """Bytes of this topic that the broker has sent to consumers since it started."""
        return self._meter("BytesOutPerSec", topic)

    def bytes_in(self, topic: str) -> int:
        """Bytes of this topic that the broker has taken from producers since it started."""
        return self._meter("BytesInPerSec", topic)

    def __enter__(self) -> EmbeddedKafka:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _port(self, index: int) -> int:
        if not self._ports:
            raise ServerFailed("the broker has not been started")
        return self._ports[index]

    @property
    def _log(self) -> Path:
        return self.folder / "broker.log"

    def _start(self) -> EmbeddedKafka:
        self._write_configuration()
        java = [str(java_program()), f"-Xmx{HEAP}", "-cp", classpath("kafka", self._jars)]
        java.append(f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}")
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(java)
        properties = str(self.folder / "server.properties")
        self._process = ServerProcess("Kafka", [*java, *self._jmx_options(), "kafka.Kafka", properties], log=self._log)
        try:
            self._process.wait_until(self._answers, START_SECONDS)
        except BaseException:
            self.kill()
            raise
        return self

    def _answers(self) -> bool:
        try:
            # Asked first, because librdkafka complains on stderr about a port that is not open yet.
            socket.create_connection((LOOPBACK, self._port(0)), timeout=1.0).close()
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            return len(admin.list_topics(timeout=2.0).brokers) == 1
        except (OSError, KafkaException):
            return False

    def _port_was_taken(self) -> bool:
        return self._log.exists() and "Address already in use" in self._log.read_text(errors="replace")

    def _write_configuration(self) -> None:
        plain, sasl, controller, _ = self._ports
        listeners = {"PLAINTEXT": plain, "CONTROLLER": controller}
        properties = {**SINGLE_NODE, "log.dirs": str(self.folder / "data")}
        if self._users:
            listeners["SASL"] = sasl
            properties["sasl.enabled.mechanisms"] = "PLAIN"
            properties["listener.name.sasl.plain.sasl.jaas.config"] = _jaas(self._users)
        properties["listeners"] = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items())
        properties["controller.quorum.voters"] = f"1@{LOOPBACK}:{controller}"
        properties |= self._settings
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        (self.folder / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
        path = self.folder / "server.properties"
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    def _format(self, java: list[str]) -> None:
        # The zero byte keeps the id from beginning with a dash, which the tool would take for an option.
        cluster = urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster]
        command += ["-c", str(self.folder / "server.properties")]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if ran.returncode:
            raise ServerFailed(f"Kafka's storage could not be formatted: {last_words(ran.stdout + ran.stderr)}")

    def _jmx_options(self) -> list[str]:
        if not self._jmx:
            return []
        options = {"host": LOOPBACK, "port": self._port(3), "rmi.port": self._port(3), "authenticate": "false"}
        remote = [f"-Dcom.sun.management.jmxremote.{key}={value}" for key, value in {**options, "ssl": "false"}.items()]
        return [*remote, f"-Djava.rmi.server.hostname={LOOPBACK}"]

    def _meter(self, name: str, topic: str) -> int:
        if not self._jmx:
            raise ServerFailed("this broker has no JMX port", hint="give jmx=True")
        command = [str(java_program()), "-cp", classpath("kafka", self._jars), "org.apache.kafka.tools.JmxTool"]
        command += ["--jmx-url", f"service:jmx:rmi:///jndi/rmi://{LOOPBACK}:{self._port(3)}/jmxrmi"]
        command += ["--object-name", f"kafka.server:type=BrokerTopicMetrics,name={name},topic={topic}"]
        command += ["--attributes", "Count", "--one-time", "--report-format", "properties"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)
        if found := re.search(r":Count=(\d+)", ran.stdout):
            return int(found[1])
        said = ran.stdout + ran.stderr
        if "No matched attributes" in said:
            return 0  # The broker makes the meter with the topic's first byte.
        raise ServerFailed(f"{name} of {topic!r} could not be read: {last_words(said)}")


def _jaas(users: Mapping[str, str]) -> str:
    quoted = {user: password.replace("\\", "\\\\").replace('"', '\\"') for user, password in users.items()}
    entries = " ".join(f'user_{user}="{password}"' for user, password in quoted.items())
    # A properties file takes one backslash of every two.
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {entries};".replace("\\", "\\\\")
