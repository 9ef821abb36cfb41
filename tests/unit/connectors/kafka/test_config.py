"""The allow-list between a connection and the two Kafka clients."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka import config as table
from airflow_provider_mzshare.connectors.kafka.config import KafkaConfig
from airflow_provider_mzshare.errors import BadConnection

SASL = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "plain", "sasl.username": "me", "sasl.password": "pw"}
DOCS = Path(__file__).parents[4] / "docs" / "reference" / "connections.md"


TLS = {"security.protocol": "SSL", "ssl.certificate.pem": "-----BEGIN CERTIFICATE-----\nmine\n"}
KEY = ec.derive_private_key(7, ec.SECP256R1())


def pem_key(form=serialization.PrivateFormat.PKCS8, password: str | None = None) -> str:
    protection = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return KEY.private_bytes(serialization.Encoding.PEM, form, protection).decode()


def config(fields: dict | None = None, /, **extra: object) -> KafkaConfig:
    given = {"bootstrap.servers": "b:9092", **{key: value for key, value in extra.items() if value is not None}}
    if "bootstrap.servers" in extra and extra["bootstrap.servers"] is None:
        del given["bootstrap.servers"]
    return KafkaConfig.from_connection(Connection("bus", "kafka", **(fields or {}), extra=given))


def refusal(fields: dict | None = None, /, **extra: object) -> str:
    with pytest.raises(BadConnection) as caught:
        config(fields, **extra).spark()
    return caught.value.line


def test_keys_get_their_java_names():
    made = config(**{
        "client.id": "x", "socket.timeout.ms": 7000, "fetch.wait.max.ms": "9", "fetch.message.max.bytes": 1,
        "reconnect.backoff.ms": 5,
    })  # fmt: skip
    assert made.spark() == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.client.id": "x",
        "kafka.request.timeout.ms": "7000",
        "kafka.fetch.max.wait.ms": "9",
        "kafka.max.partition.fetch.bytes": "1",
        "kafka.reconnect.backoff.ms": "5",
    }
    assert made.client() == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "PLAINTEXT",
        "client.id": "x",
        "socket.timeout.ms": "7000",
        "reconnect.backoff.ms": "5",
    }


def test_what_airflows_own_kafka_connections_carry_is_taken_and_ignored():
    made = config(**{"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    assert made.ignored == ("group.id", "auto.offset.reset", "enable.auto.commit")
    assert not {"group.id", "kafka.group.id"} & {*made.client(), *made.spark()}


@pytest.mark.parametrize(
    "key",
    [
        "interceptor.classes", "sasl.jaas.config", "sasl.client.callback.handler.class", "ssl.engine.factory.class",
        "plugin.library.paths", "error_cb", "isolation.level", "enable.ssl.certificate.verification", "debug",
        "sasl.oauthbearer.config", "ssl.truststore.location", "kafka.bootstrap.servers", "metric.reporters",
    ],
)  # fmt: skip
def test_anything_else_is_refused_by_name(key):
    assert f"'{key}'" in refusal(**{key: "hunter2"})
    assert "hunter2" not in refusal(**{key: "hunter2"})


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.Plain"), ("SCRAM-SHA-256", "scram.Scram"), ("scram-sha-512", "scram.Scram")],
)
def test_sasl_becomes_a_jaas_line(mechanism, module):
    made = config(**{**SASL, "sasl.mechanism": mechanism})
    assert made.spark()["kafka.sasl.mechanism"] == mechanism.upper()
    line = f'org.apache.kafka.common.security.{module}LoginModule required username="me" password="pw";'
    assert made.spark()["kafka.sasl.jaas.config"] == line
    assert "kafka.sasl.password" not in made.spark()
    assert made.client()["sasl.mechanism"] == mechanism.upper()


def test_a_jaas_value_cannot_be_left():
    made = config(**{**SASL, "sasl.password": 'a"; evil required x="\\\n'})
    assert r'password="a\"; evil required x=\"\\\n";' in made.spark()["kafka.sasl.jaas.config"]


def test_aliases_are_one_key():
    made = config(**{**SASL, "sasl.mechanism": None, "sasl.mechanisms": "PLAIN"})
    assert made.client()["sasl.mechanism"] == "PLAIN"
    assert "given twice" in refusal(**{**SASL, "sasl.mechanisms": "SCRAM-SHA-256"})


def test_fields_of_the_connection_stand_in_for_the_extra():
    nothing = {"bootstrap.servers": None}
    assert config({"host": "h"}, **nothing).bootstrap == "h:9092"
    assert config({"host": "h", "port": 19092}, **nothing).bootstrap == "h:19092"
    assert config({"host": "::1", "port": 1}, **nothing).bootstrap == "[::1]:1"
    assert config({"host": "a:1,b:2", "port": 3}, **nothing).bootstrap == "a:1,b:2"
    assert config({"host": "h", "port": 1}).bootstrap == "b:9092"
    made = config(
        {"login": "me", "password": "pw"}, **{k: v for k, v in SASL.items() if k[5:] not in ("username", "password")}
    )
    assert made.client()["sasl.password"] == "pw"
    assert "sasl.username" not in config({"login": "me", "password": "pw"}).client()


@pytest.mark.parametrize("servers", ["", " , ", "SSL://b:1", "b:port", "b:9092/x", "u@b:1", "b 1:2"])
def test_addresses_that_only_one_client_would_take_are_refused(servers):
    assert "bootstrap.servers" in refusal(**{"bootstrap.servers": servers})


@pytest.mark.parametrize("port", ["0", "65536", "99999", "655350"])
def test_a_port_that_does_not_exist_is_refused(port):
    assert "bootstrap.servers" in refusal(**{"bootstrap.servers": f"a:9092,b:{port}"})
    assert config(**{"bootstrap.servers": "a:65535"}).bootstrap == "a:65535"
    nothing = {"bootstrap.servers": None}
    if port != "0":
        assert "bootstrap.servers" in refusal({"host": "h", "port": int(port)}, **nothing)


@pytest.mark.parametrize("key", ["bootstrap.servers", "metadata.broker.list"])
@pytest.mark.parametrize("value", [9092, True, ["b:9092"], {"b": 9092}])
def test_brokers_are_text(key, value):
    assert f"the value of '{key}' must be text" in refusal(**{"bootstrap.servers": None} | {key: value})


def test_a_missing_port_is_filled_in():
    assert config(**{"bootstrap.servers": "a, b:1 ,[::1]"}).bootstrap == "a:9092,b:1,[::1]:9092"


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "SCRAM-SHA-512"),
        ({**SASL, "sasl.mechanism": None}, "sasl.mechanism"),
        ({**SASL, "sasl.password": None}, "sasl.password"),
        ({**SASL, "sasl.password": 1e5}, "sasl.password"),
        ({**SASL, "sasl.password": ["x"]}, "sasl.password"),
        ({**SASL, "sasl.password": "a\0b"}, "sasl.password"),
        ({**SASL, "security.protocol": "SSL"}, "sasl.mechanism"),
        ({"sasl.username": "me"}, "PLAINTEXT"),
        ({"ssl.ca.location": "ca.pem"}, "PLAINTEXT"),
        ({"security.protocol": "TLS"}, "SASL_SSL"),
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms"),
        ({"socket.timeout.ms": True}, "socket.timeout.ms"),
        ({"client.id": ""}, "client.id"),
        ({"security.protocol": "SSL", "ssl.key.pem": "x"}, "certificate"),
        ({"security.protocol": "SSL", "ssl.ca.pem": "x", "ssl.ca.location": "y"}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/such/ca.pem"}, "No such file"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "maybe"}, "https"),
    ],
)
def test_combinations_that_mean_nothing_are_refused(extra, says):
    assert says in refusal(**extra)


def test_a_connection_of_another_type_is_refused():
    assert KafkaConfig.from_connection(Connection("bus", "generic", "h")).bootstrap == "h:9092"
    with pytest.raises(BadConnection, match="'postgres'"):
        KafkaConfig.from_connection(Connection("bus", "postgres", "h"))


def test_pem_files_and_texts_reach_java_as_texts(tmp_path):
    (tmp_path / "ca").write_text("-----BEGIN CERTIFICATE-----\nca\n")
    (tmp_path / "cert").write_text("-----BEGIN CERTIFICATE-----\nmine\n")
    key = pem_key()
    made = config(**{
        "security.protocol": "ssl", "ssl.ca.location": str(tmp_path / "ca"), "ssl.key.pem": key,
        "ssl.certificate.location": str(tmp_path / "cert"), "ssl.key.password": "unused",
        "ssl.endpoint.identification.algorithm": "None",
    }).spark()  # fmt: skip
    assert made == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nca\n",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nmine\n",
        "kafka.ssl.keystore.key": key,
        "kafka.ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("form", "password"),
    [(serialization.PrivateFormat.PKCS8, "pw"), (serialization.PrivateFormat.TraditionalOpenSSL, "pw"),
     (serialization.PrivateFormat.TraditionalOpenSSL, None)],
)  # fmt: skip
def test_any_private_key_reaches_java_in_the_one_form_it_reads(form, password):
    made = config(**{**TLS, "ssl.key.pem": pem_key(form, password), "ssl.key.password": password}).spark()
    assert made["kafka.ssl.keystore.key"] == pem_key()
    assert "kafka.ssl.key.password" not in made


@pytest.mark.parametrize(
    ("password", "says"), [(None, "'ssl.key.password' is missing"), ("hunter2", "'ssl.key.password' does not open it")]
)
def test_an_encrypted_key_needs_its_password(password, says):
    key = pem_key(serialization.PrivateFormat.PKCS8, "right")
    line = refusal(**{**TLS, "ssl.key.pem": key, "ssl.key.password": password})
    assert says in line
    assert "hunter2" not in line


def test_a_key_that_is_none_is_refused_and_not_quoted():
    line = refusal(**{**TLS, "ssl.key.pem": "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"})
    assert "not a PEM private key" in line
    assert "hunter2" not in line


@pytest.mark.parametrize("content", [b"hunter2", b"\xff\xfe"])
def test_a_file_that_is_no_pem_is_refused_and_not_quoted(tmp_path, content):
    (tmp_path / "ca").write_bytes(content)
    line = refusal(**{"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca")})
    assert "ssl.ca.location" in line
    assert "hunter2" not in line


def test_no_secret_is_shown():
    made = config(**{**SASL, "sasl.password": "hunter2"})
    assert "hunter2" not in f"{made} {made!r} {[made]}"
    assert made.redact("it was hunter2!") == "it was ***!"


def test_the_documented_table_is_the_one_in_force():
    about_kafka = DOCS.read_text(encoding="utf-8").partition("\n## Kafka\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", about_kafka, re.MULTILINE)
    keys = [*table.JAVA_NAMES, *table.SASL_KEYS, *table.TLS_KEYS, *table.ALIASES, *table.IGNORED]
    assert sorted(rows) == sorted(keys)
