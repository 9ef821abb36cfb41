"""Connections to a Postgres server behind time limits and errors of ours; knows nothing of slots or positions.

Only listed keys of a connection's extra pass, so no option can carry code or point elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import errors as pg

from airflow_provider_mzshare.connectors.base import REQUEST_SECONDS
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres.text_form import as_options
from airflow_provider_mzshare.errors import BadConnection, MzShareError, NotAuthorized, UpstreamUnreachable

CONN_TYPES = ("postgres",)
OPTIONS = (
    "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "connect_timeout", "target_session_attrs",
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "channel_binding", "gssencmode",
)  # fmt: skip
"""Keys of a connection's extra that are given to libpq."""
IGNORED = ("cursor", "client_encoding", "sqlalchemy_scheme", "application_name")
"""Airflow's own Postgres connections carry them. They mean nothing here."""
APPLICATION = "mzshare"
"""What ``pg_stat_activity`` calls us, with what we do behind it."""
DEFAULT_PORT = 5432
DEFAULT_DATABASE = "postgres"

_ALIVE = {"keepalives": "1", "keepalives_idle": "20", "keepalives_interval": "5", "keepalives_count": "3"}
"""A server that is gone without a word is noticed within 35 seconds, also by who only waits for messages."""

_CREDENTIALS = (pg.InvalidPassword, pg.InvalidAuthorizationSpecification)
_REFUSALS = ("password authentication failed", "no pg_hba.conf entry", "authentication failed", "no password supplied")
"""What a server says before there is a connection has no code in libpq, only words."""


@dataclass(frozen=True, repr=False)
class PostgresConfig:
    """:param name: the connection's. :param values: by libpq's names, checked."""

    name: str
    values: Mapping[str, str]
    ignored: tuple[str, ...] = field(default=())

    @classmethod
    def from_connection(cls, connection: Connection) -> PostgresConfig:
        if connection.conn_type not in CONN_TYPES:
            raise BadConnection(
                f"connection {connection.name!r} is of type {connection.conn_type!r}, not 'postgres'",
                hint=f"airflow connections add {connection.name} --conn-type postgres --conn-host … --conn-login …",
            )
        if not connection.host:
            raise BadConnection(f"connection {connection.name!r} names no host", hint="give it the server's host")
        values = {
            "host": connection.host,
            "port": str(connection.port or DEFAULT_PORT),
            "dbname": connection.schema or DEFAULT_DATABASE,
            **_ALIVE,
        }
        if connection.login:
            values["user"] = connection.login
        if connection.password:
            values["password"] = connection.password
        extra, ignored = _read_extra(connection)
        return cls(connection.name, {**values, **extra}, ignored)

    @property
    def where(self) -> str:
        return f"{self.values['host']}:{self.values['port']}"

    @property
    def database(self) -> str:
        return self.values["dbname"]

    @property
    def user(self) -> str:
        return self.values.get("user", "")

    def redact(self, text: str) -> str:
        """Remove our secret from a text that a library wrote."""
        password = self.values.get("password")
        return text.replace(password, "***") if password else text

    def __repr__(self) -> str:
        return f"PostgresConfig(name={self.name!r}, where={self.where!r}, database={self.database!r})"


def _read_extra(connection: Connection) -> tuple[dict[str, str], tuple[str, ...]]:
    values: dict[str, str] = {}
    ignored = []
    for key, value in connection.extra.items():
        if key in IGNORED:
            ignored.append(key)
        elif key not in OPTIONS:
            raise BadConnection(
                f"connection {connection.name!r}: {key!r} is not an option that mzshare passes on to Postgres",
                hint="remove it; docs/reference/connections.md lists the options",
            )
        elif isinstance(value, bool) or not isinstance(value, str | int) or "\0" in str(value) or not str(value):
            raise BadConnection(f"connection {connection.name!r}: the value of {key!r} must be text or a whole number")
        else:
            values[key] = str(value)
    return values, tuple(ignored)


def connect(
    config: PostgresConfig,
    purpose: str = "",
    *,
    timeout: float = REQUEST_SECONDS,
    replication: bool = False,
    settings: Mapping[str, str] = {},
) -> psycopg.Connection[Any]:
    """A connection in autocommit.

    :param purpose: what it is for, as ``pg_stat_activity`` shows it.
    :param timeout: seconds that connecting and each statement may take; 0: a statement may take as long as it wants.
    :param replication: for replication commands; its statements have no time limit.
    :param settings: of the session.
    """
    seconds = max(2, round(timeout)) if timeout else round(REQUEST_SECONDS)
    values: dict[str, Any] = {"connect_timeout": str(seconds), **config.values}
    values["application_name"] = f"{APPLICATION} {purpose}".strip()
    values["client_encoding"] = "UTF8"
    if replication:
        values["replication"] = "database"
    elif timeout:
        settings = {**settings, "statement_timeout": str(round(timeout * 1000))}
    if settings:
        values["options"] = as_options(settings)
    with explained(config):
        return psycopg.connect(autocommit=True, **values)


@contextmanager
def explained(config: PostgresConfig) -> Iterator[None]:
    """What the driver raises in here becomes an error of ours."""
    try:
        yield
    except psycopg.Error as error:
        raise explain(config, error) from None


def explain(config: PostgresConfig, error: psycopg.Error) -> MzShareError:
    """An error of ours for one of the driver's."""
    text = config.redact(" ".join(str(error).split()))
    who = f"user {config.user!r}" if config.user else f"connection {config.name!r}"
    no_role = error.sqlstate is None and f'role "{config.user}" does not exist' in text
    if no_role or isinstance(error, _CREDENTIALS) or any(words in text for words in _REFUSALS):
        return NotAuthorized(
            f"Postgres at {config.where} refused the credentials of connection {config.name!r}: {text}",
            hint="correct its login and password, and pg_hba.conf on the server",
        )
    if isinstance(error, pg.InsufficientPrivilege):
        return NotAuthorized(
            f"Postgres at {config.where} refused {who}: {text}",
            hint="give it the rights that docs/reference/postgres.md lists",
        )
    if isinstance(error, pg.InvalidCatalogName) or (
        error.sqlstate is None and f'database "{config.database}" does not exist' in text
    ):
        return BadConnection(
            f"Postgres at {config.where} has no database {config.database!r}",
            hint=f"correct the schema of connection {config.name!r}: it names the database",
        )
    if isinstance(error, pg.QueryCanceled):
        text = "no answer in time"
    return UpstreamUnreachable(
        f"Postgres at {config.where} cannot be reached: {text}",
        hint=f"check host and port of connection {config.name!r}, and the server",
    )
