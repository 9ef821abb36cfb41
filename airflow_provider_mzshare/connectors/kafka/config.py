"""A Kafka connection as both clients need it; only listed keys pass, so no option can carry code or be misread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.kafka import java_settings
from airflow_provider_mzshare.errors import BadConnection

JAVA_NAMES: Mapping[str, str] = {
    "bootstrap.servers": "bootstrap.servers",
    "client.id": "client.id",
    "security.protocol": "security.protocol",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "fetch.min.bytes": "fetch.min.bytes",
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
}
"""Keys whose value means the same to librdkafka and to the Java client."""

SASL_KEYS = ("sasl.mechanism", "sasl.username", "sasl.password")
TLS_KEYS = (
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
    "ssl.key.pem", "ssl.key.password", "ssl.endpoint.identification.algorithm",
)  # fmt: skip
ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}
IGNORED = ("group.id", "auto.offset.reset", "enable.auto.commit")
"""Airflow's own Kafka connections carry them. Positions and groups are ours, so they mean nothing here."""

SECRETS = ("sasl.password", "ssl.key.password", "ssl.key.pem")
CONN_TYPES = ("kafka", "generic")
"""Airflow stores ``generic`` for a type that no installed provider knows."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_PORT = 9092

MAX_PORT = 65_535

_SERVER_KEYS = ("bootstrap.servers", "metadata.broker.list")
_SERVER_EXAMPLE = '"bootstrap.servers": "host:9092" in its extra'
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_ONLY_FOR_READING = frozenset({"fetch.min.bytes", "fetch.max.bytes", "fetch.wait.max.ms", "max.partition.fetch.bytes"})


@dataclass(frozen=True, repr=False)
class KafkaConfig:
    """:param name: the connection's. :param values: by librdkafka's names, checked, aliases resolved."""

    name: str
    values: Mapping[str, str]
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_connection(cls, connection: Connection) -> KafkaConfig:
        if connection.conn_type not in CONN_TYPES:
            raise BadConnection(
                f"connection {connection.name!r} is of type {connection.conn_type!r}, not 'kafka'",
                hint=f"airflow connections add {connection.name} --conn-type kafka --conn-extra '{{…}}'",
            )
        values, ignored = _read_extra(connection)
        _fill_from_fields(connection, values)
        _check_servers(connection.name, values)
        _check_security(connection.name, values)
        return cls(connection.name, values, ignored)

    @property
    def bootstrap(self) -> str:
        return self.values["bootstrap.servers"]

    def client(self) -> dict[str, str]:
        """For librdkafka. Sizes of fetches are left out: our own client reads no records."""
        return {key: value for key, value in self.values.items() if key not in _ONLY_FOR_READING}

    def spark(self) -> dict[str, str]:
        """For Spark's Kafka source. Reads the PEM files named, so that they need not exist on executors."""
        options = {JAVA_NAMES[key]: value for key, value in self.values.items() if key in JAVA_NAMES}
        options |= java_settings.sasl(self.values) | java_settings.tls(self.name, self.values)
        return {f"kafka.{key}": value for key, value in options.items()}

    def redact(self, text: str) -> str:
        """Remove our secrets from a text that a library wrote."""
        for key in SECRETS:
            if secret := self.values.get(key):
                text = text.replace(secret, "***")
        return text

    def __repr__(self) -> str:
        return f"KafkaConfig(name={self.name!r}, bootstrap={self.bootstrap!r})"


def _read_extra(connection: Connection) -> tuple[dict[str, str], tuple[str, ...]]:
    known = {*JAVA_NAMES, *SASL_KEYS, *TLS_KEYS}
    values: dict[str, str] = {}
    ignored = []
    for given, value in connection.extra.items():
        key = ALIASES.get(given, given)
        if key in IGNORED:
            ignored.append(key)
        elif key not in known:
            raise BadConnection(
                f"connection {connection.name!r}: {given!r} is not an option that mzshare passes on to Kafka",
                hint="remove it; docs/reference/connections.md lists the options",
            )
        else:
            text = _text(connection.name, given, value)
            if values.setdefault(key, text) != text:
                raise BadConnection(f"connection {connection.name!r}: {key!r} is given twice, with two values")
    return values, tuple(ignored)


def _text(name: str, key: str, value: Any) -> str:
    # A float has lost what was written: 1e5 as a password would arrive as 100000.0.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadConnection(f"connection {name!r}: the value of {key!r} must be text or a whole number")
    if key in _SERVER_KEYS and not isinstance(value, str):
        raise BadConnection(f"connection {name!r}: the value of {key!r} must be text", hint=_SERVER_EXAMPLE)
    text = str(value) if key in SECRETS else str(value).strip()
    if not text or "\0" in text:
        raise BadConnection(f"connection {name!r}: the value of {key!r} is empty or contains a NUL")
    if key.endswith((".ms", ".bytes")) and not text.isdecimal():
        raise BadConnection(f"connection {name!r}: the value of {key!r} must be a whole number")
    return text


def _fill_from_fields(connection: Connection, values: dict[str, str]) -> None:
    """The connection's own fields stand in where the extra says nothing."""
    if connection.host and "bootstrap.servers" not in values:
        host = connection.host if connection.host.count(":") < 2 or "," in connection.host else f"[{connection.host}]"
        port = f":{connection.port}" if connection.port and "," not in host else ""
        values["bootstrap.servers"] = f"{host}{port}"
    if values.get("security.protocol", "").upper().startswith("SASL"):
        if connection.login:
            values.setdefault("sasl.username", connection.login)
        if connection.password:
            values.setdefault("sasl.password", connection.password)


def _check_servers(name: str, values: dict[str, str]) -> None:
    servers = [server.strip() for server in values.get("bootstrap.servers", "").split(",") if server.strip()]
    if not servers:
        raise BadConnection(f"connection {name!r} names no broker", hint=_SERVER_EXAMPLE)
    matches = [_SERVER.fullmatch(server) for server in servers]
    for server, match in zip(servers, matches, strict=True):
        if match is None:
            raise BadConnection(f"connection {name!r}: bootstrap.servers must be host:port, …, not {server!r}")
        if match[2] and not 1 <= int(match[2][1:]) <= MAX_PORT:
            raise BadConnection(
                f"connection {name!r}: bootstrap.servers: a port must be 1 to {MAX_PORT}, not {server!r}"
            )
    # librdkafka would add the port by itself, Java would refuse the address.
    values["bootstrap.servers"] = ",".join(f"{m[1]}{m[2] or f':{DEFAULT_PORT}'}" for m in matches if m)


def _check_security(name: str, values: dict[str, str]) -> None:
    protocol = _choice(name, values, "security.protocol", PROTOCOLS, "PLAINTEXT")
    for keys, part in ((SASL_KEYS, "SASL"), (TLS_KEYS, "SSL")):
        useless = [key for key in keys if key in values and part not in protocol]
        if useless:
            raise BadConnection(f"connection {name!r}: {useless[0]!r} has no effect with security.protocol {protocol}")
    if "SASL" in protocol:
        for key in SASL_KEYS:
            if key not in values:
                raise BadConnection(f"connection {name!r}: security.protocol {protocol} needs {key!r}")
        _choice(name, values, "sasl.mechanism", MECHANISMS)
    if "SSL" in protocol:
        _check_tls(name, values)


def _check_tls(name: str, values: dict[str, str]) -> None:
    for what in ("ssl.ca", "ssl.certificate", "ssl.key"):
        if {f"{what}.location", f"{what}.pem"} <= values.keys():
            raise BadConnection(f"connection {name!r}: give either '{what}.location' or '{what}.pem'")
    has_certificate, has_key = (
        f"ssl.{w}.location" in values or f"ssl.{w}.pem" in values for w in ("certificate", "key")
    )
    if has_certificate != has_key:
        raise BadConnection(f"connection {name!r}: a client certificate needs its key, and a key needs its certificate")
    key = "ssl.endpoint.identification.algorithm"
    if key in values:
        values[key] = values[key].lower()
        if values[key] not in ("https", "none"):
            raise BadConnection(f"connection {name!r}: {key!r} must be 'https' or 'none'")


def _has(values: Mapping[str, str], what: str) -> bool:
    return f"{what}.location" in values or f"{what}.pem" in values


def _choice(name: str, values: dict[str, str], key: str, choices: tuple[str, ...], default: str = "") -> str:
    """Upper case, as Java wants it; librdkafka takes either."""
    value = values.get(key, default).upper()
    if value not in choices:
        raise BadConnection(f"connection {name!r}: {key!r} must be one of {', '.join(choices)}")
    values[key] = value
    return value
