"""What is handed to Spark is understood by the very Java client that Spark uses."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import py4j
import pyspark
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from airflow_provider_mzshare.compute import jars as jar_list
from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.connectors.kafka.upstream import KafkaUpstream
from airflow_provider_mzshare.errors import UpstreamUnreachable
from tests.support.kafka import allow, create_topic, sasl_config

NAME = x509.NameOID.COMMON_NAME


@pytest.fixture(scope="module")
def java(jars: Path) -> Iterator[JavaGateway]:
    """Return a JVM with Spark's logging and the pinned Kafka client, and no Spark."""
    spark = Path(pyspark.__file__).parent / "jars"
    classpath = [*(str(jar) for jar in jar_list.spark_jars(jars)), *(str(jar) for jar in spark.glob("*4j*.jar"))]
    port, secret, process = launch_gateway(
        jarpath=str(next(spark.glob("py4j-*.jar"))),
        classpath=":".join(classpath),
        java_path=str(java_program()),
        die_on_exit=True,
        create_new_process_group=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret, auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.kill()
        process.wait(10)


def config(extra: dict[str, str]) -> KafkaConfig:
    return KafkaConfig.from_connection(Connection("bus", "kafka", extra=extra))


def java_options(given: KafkaConfig) -> dict[str, str]:
    return {key.removeprefix("kafka."): value for key, value in given.spark().items()}


def describe_in_java(java: JavaGateway, given: KafkaConfig, topic: str, seconds: int) -> int:
    """The number of partitions, as Spark's driver would ask for it."""
    seconds_unit = java.jvm.java.util.concurrent.TimeUnit.SECONDS
    admin = java.jvm.org.apache.kafka.clients.admin.Admin.create(java_options(given))
    try:
        asked = admin.describeTopics([topic])
        return len(asked.allTopicNames().get(seconds, seconds_unit)[topic].partitions())
    finally:
        admin.close(java.jvm.java.time.Duration.ZERO)


def test_sasl_as_translated_opens_the_broker(kafka, java):
    topic = create_topic(kafka, 3)
    allow(kafka, "alice", topic)
    assert describe_in_java(java, config(sasl_config(kafka, "alice")), topic, 20) == 3
    with pytest.raises(Py4JJavaError, match="Authentication failed"):
        describe_in_java(java, config(sasl_config(kafka, "alice", "wrong")), topic, 20)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(
    "password", ["p", 'a"b', "\\", 'x\\"; y="', "tab\tline\nend\r", "ünï € 漢", "'$%{};=, #//*", "\\101"]
)
def test_a_password_reaches_java_as_it_is(java, mechanism, password):
    options = java_options(config({
        "bootstrap.servers": "b:1", "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism,
        "sasl.username": password.strip(), "sasl.password": password,
    }))  # fmt: skip
    line = java.jvm.org.apache.kafka.common.config.types.Password(options["sasl.jaas.config"])
    entries = java.jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(
        {"sasl.jaas.config": line}
    ).configurationEntries()
    assert entries.size() == 1
    assert dict(entries[0].getOptions()) == {"username": password.strip(), "password": password}
    java.jvm.java.lang.Class.forName(entries[0].getLoginModuleName())


class Authority:
    """A certificate authority of our own, and what it signed."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self._key = folder, name, ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(name, self._key.public_key(), authority=True)
        self.file = self._write(f"{name}.pem", self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, password: str = "") -> tuple[str, str]:
        """Paths of a certificate and of its key, in PKCS#8 form."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(name, key.public_key()).public_bytes(serialization.Encoding.PEM)
        protection = (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        )
        text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        return self._write(f"{name}.crt", certificate), self._write(f"{name}.key", text)

    def _sign(self, name: str, public_key: ec.EllipticCurvePublicKey, authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NAME, self._name)]))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, name: str, content: bytes) -> str:
        path = self._folder / name
        path.write_bytes(content)
        return str(path)


@contextmanager
def tls_listener(authority: Authority) -> Iterator[tuple[str, set[str]]]:
    """An address that demands client certificates, and the names that it was shown in complete handshakes."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*authority.issue("server"))
    shown: set[str] = set()
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                plain, _ = server.accept()
                plain.settimeout(5)
                with context.wrap_socket(plain, server_side=True) as connection:
                    peer = connection.getpeercert() or {}
                    connection.recv(1)  # With TLS 1.3 the client's first byte comes after its own checks.
                    shown.add(dict(pair for entry in peer["subject"] for pair in entry)["commonName"])
            except OSError:
                continue

    with create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"localhost:{server.getsockname()[1]}", shown
        finally:
            stopped.set()
            thread.join(10)


@pytest.mark.parametrize(("password", "inline"), [("", False), ("key-secret", False), ("key-secret", True)])
def test_tls_with_a_client_certificate_is_spoken_by_both_clients(java, tmp_path, password, inline):
    authority = Authority(tmp_path, "ours")
    with tls_listener(authority) as (address, shown):
        for client, probe in {"rdkafka": probe_with_librdkafka, "java": probe_with_java}.items():
            certificate, key = authority.issue(client, password)
            files = {"ca": authority.file, "certificate": certificate, "key": key}
            extra = {"bootstrap.servers": address, "security.protocol": "SSL"}
            extra |= {f"ssl.{k}.pem": Path(v).read_text() for k, v in files.items()} if inline else {
                f"ssl.{k}.location": v for k, v in files.items()}  # fmt: skip
            extra |= {"ssl.key.password": password} if password else {}
            probe(java, config(extra))
        assert shown == {"rdkafka", "java"}


def test_neither_client_trusts_a_stranger(java, tmp_path):
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path, "ours"), Authority(tmp_path / "other", "theirs")
    certificate, key = authority.issue("client")
    with tls_listener(authority) as (address, shown):
        given = config({
            "bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.location": other.file,
            "ssl.certificate.location": certificate, "ssl.key.location": key,
        })  # fmt: skip
        assert "certificate verify failed" in probe_with_librdkafka(java, given)
        assert "SSL handshake failed" in probe_with_java(java, given)
        assert not shown


def probe_with_librdkafka(_: JavaGateway, given: KafkaConfig) -> str:
    with KafkaUpstream(given, "t") as upstream, pytest.raises(UpstreamUnreachable) as caught:
        upstream.describe()
    return caught.value.message


def probe_with_java(java: JavaGateway, given: KafkaConfig) -> str:
    with pytest.raises(py4j.protocol.Py4JJavaError) as caught:
        describe_in_java(java, given, "t", 2)
    return str(caught.value.java_exception)
