"""Connections by their Airflow names, and the stores they come from; this module never imports airflow."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from airflow_provider_mzshare.errors import BadConnection, UnknownConnection

ENV_PREFIX = "AIRFLOW_CONN_"
_FIELDS = frozenset({"conn_type", "host", "port", "login", "password", "schema", "extra", "description"})
_EXAMPLE = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "broker:9092"}}'


@dataclass(frozen=True, repr=False)
class Connection:
    """One Airflow connection. What it may keep secret is in neither ``repr`` nor ``str``."""

    name: str
    conn_type: str = ""
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = None
    schema: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Connection(name={self.name!r}, conn_type={self.conn_type!r}, host={self.host!r}, port={self.port!r})"

    def to_dict(self) -> dict[str, Any]:
        """All of it, secrets included: only for a file that nobody else can read."""
        return {
            "name": self.name,
            "conn_type": self.conn_type,
            "host": self.host,
            "port": self.port,
            "login": self.login,
            "password": self.password,
            "schema": self.schema,
            "extra": dict(self.extra),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Connection:
        rest = dict(value)
        name = rest.pop("name", None)
        if not isinstance(name, str) or not name:
            raise BadConnection("a stored connection has no name")
        return _from_fields(name, rest)

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Connection:
        return cls.from_dict(_json_object(text, "a stored connection"))


class ConnectionStore(Protocol):
    """Where connections come from."""

    def get(self, name: str) -> Connection:
        """The connection, or :class:`UnknownConnection`."""
        ...


class EnvConnections:
    """``AIRFLOW_CONN_<NAME>``, as JSON or as a URI, the way Airflow itself reads it."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> Connection:
        text = self._environ.get(ENV_PREFIX + name.upper(), "").strip()
        if not text:
            raise UnknownConnection(name)
        return parse_connection(name, text)


class FixedConnections:
    """Connections already resolved, as an app gets them in its job file."""

    def __init__(self, connections: Mapping[str, Connection]) -> None:
        self._connections = dict(connections)

    def get(self, name: str) -> Connection:
        try:
            return self._connections[name]
        except KeyError:
            raise UnknownConnection(name) from None


def parse_connection(name: str, text: str) -> Connection:
    """A connection in one of Airflow's two text forms. Errors never quote the text: it holds secrets."""
    if text.startswith("{"):
        return _from_fields(name, _json_object(text, f"connection {name!r}: {ENV_PREFIX}{name.upper()}"))
    return _from_uri(name, text)


def _json_object(text: str, what: str) -> dict[str, Any]:
    """Errors tell the place and nothing of the text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadConnection(f"{what} is not valid JSON at {place}", hint=_EXAMPLE) from None
    except (ValueError, RecursionError):
        raise BadConnection(f"{what} is not valid JSON", hint=_EXAMPLE) from None
    if not isinstance(value, dict):
        raise BadConnection(f"{what} is not a JSON object", hint=_EXAMPLE)
    return value


def _from_fields(name: str, fields: Mapping[str, Any]) -> Connection:
    for key, value in fields.items():
        if key not in _FIELDS:
            raise BadConnection(
                f"connection {name!r}: unknown field {key!r}", hint=f"one of {', '.join(sorted(_FIELDS))}"
            )
        if key not in ("port", "extra") and not isinstance(value, str | None):
            raise BadConnection(f"connection {name!r}: {key} must be text")
    return Connection(
        name=name,
        conn_type=_conn_type(fields.get("conn_type") or ""),
        host=fields.get("host"),
        port=_port(name, fields.get("port")),
        login=fields.get("login"),
        password=fields.get("password"),
        schema=fields.get("schema"),
        extra=_extra(name, fields.get("extra")),
    )


def _from_uri(name: str, uri: str) -> Connection:
    """Airflow's URI form. Query values stay text, as in Airflow's task SDK: a password may look like a number."""
    scheme, separator, rest = uri.partition("://")
    protocol, nested, behind = rest.partition("://")
    has_protocol = bool(nested) and not set("@:/?") & set(protocol)
    try:
        parts = urlsplit(f"//{behind if has_protocol else rest}")
        port = parts.port
    except ValueError:
        raise BadConnection(f"connection {name!r} is not a valid URI", hint="kafka://broker:9092") from None
    if not separator or not scheme:
        raise BadConnection(f"connection {name!r} is neither a JSON object nor a URI", hint=_EXAMPLE)
    host = _host(parts)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Connection(
        name=name,
        conn_type=_conn_type(scheme.lower()),
        host=f"{protocol}://{host}" if has_protocol and host else host,
        port=port,
        login=unquote(parts.username) if parts.username else parts.username,
        password=unquote(parts.password) if parts.password else parts.password,
        schema=unquote(parts.path[1:]) or None,
        extra=_extra(name, query["__extra__"]) if "__extra__" in query else query,
    )


def _host(parts: SplitResult) -> str | None:
    """As written: ``hostname`` would lower its case, and several brokers may be quoted into one."""
    place = parts.netloc.rpartition("@")[2]
    bracketed, bracket, _ = place.partition("]")
    host = bracketed.lstrip("[") if bracket else place.partition(":")[0]
    return unquote(host) or None


def _conn_type(text: str) -> str:
    return "postgres" if text == "postgresql" else text.replace("-", "_")


def _port(name: str, value: object) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdecimal():
        raise BadConnection(f"connection {name!r}: port must be a whole number")
    return int(value)


def _extra(name: str, value: object) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        return _json_object(value, f"connection {name!r}: extra")
    if not isinstance(value, dict):
        raise BadConnection(f"connection {name!r}: extra is not a JSON object")
    return value
