"""Settings from a connection: known fields only, each checked; nothing of the environment mixed into places."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.control.catalog.database.databases import parse_url
from airflow_provider_mzshare.errors import BadConnection, UnknownConnection
from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.hooks.settings import settings_of


def connection(**fields: object) -> Connection:
    return Connection(name="c", conn_type="mzshare", **fields)  # type: ignore[arg-type]


def test_a_home_is_all_it_takes() -> None:
    found = settings_of(connection(extra={"home": "/srv/mz"}), {})
    assert (found.home, found.catalog_url) == (Path("/srv/mz"), "sqlite:////srv/mz/catalog.db")
    assert found.warehouse == "/srv/mz/warehouse"


def test_places_are_the_connections_alone_and_the_rest_falls_back_on_the_environment() -> None:
    env = {
        "MZSHARE_HOME": "/e",
        "MZSHARE_CATALOG": "postgresql://u@elsewhere/db",
        "MZSHARE_WAREHOUSE": "s3://elsewhere",
        "MZSHARE_MASTER": "local[3]",
        "MZSHARE_JARS": "/jars",
    }
    found = settings_of(connection(extra={"home": "/srv/mz", "lease_seconds": 4, "warehouse": None}), env)
    assert found.catalog_url == "sqlite:////srv/mz/catalog.db"
    assert found.warehouse == "/srv/mz/warehouse"
    assert (found.master, found.jars, found.lease_seconds) == ("local[3]", Path("/jars"), 4)
    assert settings_of(connection(), env).home == Path("/e")


@pytest.mark.parametrize("host", ["db", "10.0.0.1", "::1"])
def test_a_host_is_a_catalog_in_postgres(host: str) -> None:
    given = connection(host=host, port=5433, login="a@b", password="p/w:%", schema="cat", extra={"sslmode": "require"})
    url = parse_url(settings_of(given, {}).catalog_url)
    assert (url.host, url.port, url.username, url.password, url.database) == (host, 5433, "a@b", "p/w:%", "cat")
    assert dict(url.query) == {"sslmode": "require"}


def test_spark_settings_as_an_object_or_as_text() -> None:
    for value in ({"spark.driver.memory": "2g"}, '{"spark.driver.memory": "2g"}'):
        assert settings_of(connection(extra={"spark_conf": value}), {}).spark_conf == {"spark.driver.memory": "2g"}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"extra": {"sql_alchemy_connect_args": "x"}}, "sql_alchemy_connect_args"),
        ({"extra": {"spark_conf": '{"spark.jars": "http://x/y.jar"}'}}, "spark.jars"),
        ({"extra": {"master": "yarn"}}, "master cannot be 'yarn'"),
        ({"extra": {"lease_seconds": "soon"}}, "lease_seconds"),
        ({"host": "db"}, "login and a schema"),
    ],
)
def test_what_is_not_known_is_refused_by_name(fields: dict[str, object], word: str) -> None:
    with pytest.raises(BadConnection, match=word):
        settings_of(connection(**fields), {})


def test_another_type_of_connection_is_refused() -> None:
    with pytest.raises(BadConnection, match="'kafka', not 'mzshare'"):
        settings_of(Connection(name="c", conn_type="kafka"), {})


def test_only_the_default_connection_may_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path))
    assert MzShareHook().settings.home == tmp_path
    with pytest.raises(UnknownConnection, match="other"):
        _ = MzShareHook("other").settings


def test_the_test_button_tells_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def test(extra: str) -> tuple[bool, str]:
        monkeypatch.setenv("AIRFLOW_CONN_C", f'{{"conn_type": "mzshare", "extra": {extra}}}')
        return MzShareHook("c").test_connection()

    well, told = test(f'{{"home": "{tmp_path / "home"}"}}')
    assert well, told
    assert "will be created on first use" in told
    assert not (tmp_path / "home").exists()
    MzShareHook("c").ensure_catalog()
    assert "has schema" in test(f'{{"home": "{tmp_path / "home"}"}}')[1]
    well, told = test(f'{{"home": "{tmp_path / "home"}", "jars": "{tmp_path}"}}')
    assert not well
    assert "mzshare jars" in told
    assert "has schema" not in told
    assert test('{"home": "/proc/nowhere"}')[0] is False
    assert test('{"wrong": 1}') == (False, test('{"wrong": 1}')[1])
    assert "wrong" in test('{"wrong": 1}')[1]
