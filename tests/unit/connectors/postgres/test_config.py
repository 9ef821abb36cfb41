"""A connection of Airflow's as libpq gets it: listed keys only, and no secret in any text."""

from __future__ import annotations

import pytest

from airflow_provider_mzshare.connectors.connections import Connection, parse_connection
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig
from airflow_provider_mzshare.errors import BadConnection


def config(**fields: object) -> PostgresConfig:
    return PostgresConfig.from_connection(Connection("shop", "postgres", **{"host": "db", **fields}))  # type: ignore[arg-type]


def test_the_fields_of_a_connection_are_those_of_libpq() -> None:
    found = config(port=5433, login="reader", password="geheim", schema="orders", extra={"sslmode": "require"})
    expected = {"host": "db", "port": "5433", "user": "reader", "password": "geheim", "dbname": "orders"}
    assert expected.items() <= found.values.items()
    assert found.values["sslmode"] == "require"
    assert (found.where, found.database, found.user) == ("db:5433", "orders", "reader")


def test_what_is_left_out_is_what_libpq_takes() -> None:
    found = config()
    assert (found.where, found.database, found.user) == ("db:5432", "postgres", "")


def test_a_uri_is_read_as_airflow_reads_it() -> None:
    found = PostgresConfig.from_connection(parse_connection("shop", "postgresql://me:p%40ss@db:5433/x?sslmode=require"))
    assert found.values["password"] == "p@ss"
    assert found.values["sslmode"] == "require"


def test_settings_of_airflows_own_hook_are_ignored() -> None:
    assert config(extra={"cursor": "dictcursor"}).ignored == ("cursor",)


@pytest.mark.parametrize("key", ["options", "host", "hostaddr", "service", "passfile", "sslpassword", "iam", "dbname"])
def test_other_keys_are_refused_by_their_name(key: str) -> None:
    with pytest.raises(BadConnection, match=repr(key)):
        config(extra={key: "x"})


@pytest.mark.parametrize("value", [True, 1.5, None, "", "a\0b", []])
def test_values_are_text_or_whole_numbers(value: object) -> None:
    with pytest.raises(BadConnection, match="'sslmode' must be text or a whole number"):
        config(extra={"sslmode": value})


def test_another_type_of_connection_is_refused() -> None:
    with pytest.raises(BadConnection, match="is of type 'kafka', not 'postgres'"):
        PostgresConfig.from_connection(Connection("shop", "kafka", host="db"))


def test_a_host_is_needed() -> None:
    with pytest.raises(BadConnection, match="names no host"):
        config(host=None)


def test_no_text_has_the_password() -> None:
    found = config(password="geheim")
    assert "geheim" not in repr(found)
    assert found.redact("FATAL: geheim was wrong") == "FATAL: *** was wrong"
