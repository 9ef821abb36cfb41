"""Settings from an Airflow connection: known fields by name, each checked as its variable would be."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from urllib.parse import quote

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.errors import BadConnection, BadSetting
from airflow_provider_mzshare.settings import Settings

CONN_TYPE = "mzshare"
PLACES = {"home": "MZSHARE_HOME", "warehouse": "MZSHARE_WAREHOUSE"}
RUNNING = {
    "master": "MZSHARE_MASTER",
    "backfill_master": "MZSHARE_BACKFILL_MASTER",
    "launcher": "MZSHARE_LAUNCHER",
    "jars": "MZSHARE_JARS",
    "lease_seconds": "MZSHARE_LEASE_SECONDS",
    "heartbeat_seconds": "MZSHARE_HEARTBEAT_SECONDS",
    "max_backfills": "MZSHARE_MAX_BACKFILLS",
    "key_index_mb": "MZSHARE_KEY_INDEX_MB",
    "spark_conf": "MZSHARE_SPARK_CONF",
}
_SSLMODE = "sslmode"
_FIELDS = {**PLACES, **RUNNING, _SSLMODE: ""}


def settings_of(connection: Connection, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from a connection. How apps run falls back on the environment.

    ``MZSHARE_CATALOG`` and ``MZSHARE_WAREHOUSE`` of the environment are ignored: nobody wants the environment's catalog
    together with the connection's home.
    """
    if connection.conn_type != CONN_TYPE:
        raise BadConnection(f"connection {connection.name!r} is of type {connection.conn_type!r}, not {CONN_TYPE!r}")
    env = dict(os.environ if environ is None else environ)
    given = {name: text for name, value in connection.extra.items() if (text := _text(name, value, connection.name))}
    for variable in ("MZSHARE_CATALOG", "MZSHARE_WAREHOUSE"):
        env.pop(variable, None)
    env.update({_FIELDS[name]: text for name, text in given.items() if name != _SSLMODE})
    if connection.host:
        env["MZSHARE_CATALOG"] = _catalog_url(connection, given.get(_SSLMODE))
    try:
        return Settings.from_environment(env)
    except BadSetting as error:
        raise _told(connection, error) from None


def _text(name: str, value: object, connection: str) -> str:
    """The value as text; empty if the field of the form was left empty."""
    if name not in _FIELDS:
        known = ", ".join(_FIELDS)
        raise BadConnection(f"connection {connection!r}: there is no field {name!r}", hint=f"one of {known}")
    if value is None or value == "":
        return ""
    return json.dumps(value) if isinstance(value, Mapping) else str(value)


def _catalog_url(connection: Connection, sslmode: str | None) -> str:
    host = connection.host or ""
    user = quote(connection.login or "", safe="")
    password = f":{quote(connection.password, safe='')}" if connection.password else ""
    place = f"[{host}]" if ":" in host else quote(host, safe="")
    port = f":{connection.port}" if connection.port else ""
    query = f"?sslmode={quote(sslmode, safe='')}" if sslmode else ""
    database = quote(connection.schema or "", safe="")
    if not user or not database:
        raise BadConnection(f"connection {connection.name!r}: a catalog on a host needs a login and a schema")
    return f"postgresql+psycopg://{user}{password}@{place}{port}/{database}{query}"


def _told(connection: Connection, error: BadSetting) -> Exception:
    """Report the field of the form: a user of a connection has set no variable."""
    field = next((name for name, variable in _FIELDS.items() if variable == error.name), None)
    if field is None or field not in connection.extra:
        return error
    return BadConnection(f"connection {connection.name!r}: {field} cannot be {error.value!r}: it takes {error.wanted}")
