"""Connections: Airflow's two text forms, the stores, and that no secret shows."""

from __future__ import annotations

import json

import pytest

from airflow_provider_mzshare.connectors.connections import (
    Connection,
    EnvConnections,
    FixedConnections,
    parse_connection,
)
from airflow_provider_mzshare.errors import BadConnection, UnknownConnection


def test_json_of_the_environment_is_read_with_extra_as_object_or_as_text():
    extra = {"bootstrap.servers": "b:9092", "socket.timeout.ms": 10}
    for given in (extra, json.dumps(extra)):
        text = json.dumps({"conn_type": "kafka", "port": "9092", "extra": given, "description": "the bus"})
        found = EnvConnections({"AIRFLOW_CONN_MY_BUS": text}).get("my_bus")
        assert found == Connection("my_bus", "kafka", port=9092, extra=extra)


@pytest.mark.parametrize(
    ("uri", "wanted"),
    [
        ("kafka://b:9092", Connection("c", "kafka", "b", 9092)),
        ("KAFKA://Big.Host", Connection("c", "kafka", "Big.Host")),
        ("kafka://b1%3A9092%2Cb2%3A9093", Connection("c", "kafka", "b1:9092,b2:9093")),
        ("kafka://[::1]:9092", Connection("c", "kafka", "::1", 9092)),
        ("kafka://a%40b:p%2Fw%3A%25@h:1/s%2Fx", Connection("c", "kafka", "h", 1, "a@b", "p/w:%", "s/x")),
        ("kafka:///?client.id=a%26b&socket.timeout.ms=1e3", Connection("c", "kafka", extra={
            "client.id": "a&b", "socket.timeout.ms": "1e3"})),
        ("kafka://h/?__extra__=%7B%22sasl.password%22%3A+%22x%3Fy%22%7D", Connection("c", "kafka", "h", extra={
            "sasl.password": "x?y"})),
        ("my-type://https://h:443/p", Connection("c", "my_type", "https://h", 443, schema="p")),
        ("postgresql://h", Connection("c", "postgres", "h")),
        ("http://h/?url=https://other/", Connection("c", "http", "h", extra={"url": "https://other/"})),
    ],
)  # fmt: skip
def test_uri_of_the_environment_is_read(uri, wanted):
    assert EnvConnections({"AIRFLOW_CONN_C": uri}).get("c") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "{hunter2",
        "[1]",
        "hunter2",
        "kafka://h:hunter2x/",
        "kafka://[hunter2/",
        '{"conn_type": "kafka", "extra": "hunter2"}',
        '{"conn_type": "kafka", "extra": [1]}',
        '{"conn_type": "kafka", "port": "hunter2"}',
        '{"conn_type": 1}',
        '{"hunter3": "hunter2"}',
        "kafka://h/?__extra__=hunter2",
    ],
)
def test_a_text_that_is_no_connection_is_refused_by_name_and_not_quoted(text):
    with pytest.raises(BadConnection) as caught:
        parse_connection("bus", text)
    assert "'bus'" in caught.value.message
    assert "hunter2" not in caught.value.line


def test_broken_json_is_told_with_its_variable_its_place_and_an_example():
    with pytest.raises(BadConnection) as caught:
        EnvConnections({"AIRFLOW_CONN_BUS": '{"conn_type": "kafka",\n "password": "hunter2'}).get("bus")
    assert caught.value.message == "connection 'bus': AIRFLOW_CONN_BUS is not valid JSON at line 2, column 14"
    assert json.loads(caught.value.hint)["conn_type"] == "kafka"
    assert "hunter2" not in caught.value.line


def test_json_too_deep_to_read_is_refused_and_not_a_crash():
    with pytest.raises(BadConnection, match="not valid JSON"):
        parse_connection("bus", '{"extra": ' + "[" * 200_000)


@pytest.mark.parametrize(
    "store", [EnvConnections({}), EnvConnections({"AIRFLOW_CONN_NOPE": " "}), FixedConnections({})]
)
def test_unknown_connection_says_how_to_define_it(store):
    with pytest.raises(UnknownConnection) as caught:
        store.get("nope")
    assert "AIRFLOW_CONN_NOPE" in caught.value.hint


def test_a_connection_survives_its_json():
    connection = Connection("c", "kafka", "h", 1, "me", 'p"\\w', "s", {"a": 1, "b": "ü"})
    assert Connection.from_json(connection.to_json()) == connection
    assert FixedConnections({"c": connection}).get("c") is connection


@pytest.mark.parametrize("text", ["{", "{}", '{"name": ""}', '{"name": "c", "pass": "x"}'])
def test_a_stored_connection_that_is_not_one_is_refused(text):
    with pytest.raises(BadConnection):
        Connection.from_json(text)


def test_no_secret_is_shown():
    connection = Connection("c", "kafka", "h", 1, "me", "hunter2", extra={"sasl.password": "hunter2"})
    assert "hunter2" not in f"{connection} {connection!r} {[connection]}"
    assert "'h'" in repr(connection)
