"""Assets have one spelling; links and the status page are there only when they are switched on."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from airflow.sdk import Asset
from fastapi.testclient import TestClient

from airflow_provider_mzshare.assets.mzshare import create_asset, sanitize_uri, table_asset
from airflow_provider_mzshare.control.catalog import jobs
from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.links import JobLogLink, SparkUILink, StatusLink
from airflow_provider_mzshare.operators.base import as_list
from airflow_provider_mzshare.operators.ingestion import StartIngestionOperator
from airflow_provider_mzshare.plugins import mzshare as plugin
from airflow_provider_mzshare.plugins.status_page import make_app
from tests.support.catalog import add_source, add_tables


@pytest.mark.parametrize(
    ("table", "uri"),
    [
        ("orders", "mzshare://mzshare_default/public/orders"),
        ("Sales.Orders", "mzshare://mzshare_default/sales/orders"),
        ('"Sa/les"."Or ders%"', "mzshare://mzshare_default/Sa%2Fles/Or%20ders%25"),
    ],
)
def test_a_table_has_one_asset(table: str, uri: str) -> None:
    assert table_asset(table).uri == uri
    assert create_asset(table=table).uri == uri
    assert sanitize_uri(urlsplit(uri)).geturl() == uri
    assert Asset(uri) == table_asset(table)


def test_other_spellings_are_made_the_one() -> None:
    assert sanitize_uri(urlsplit("mzshare://c/orders")).geturl() == "mzshare://c/public/orders"
    assert sanitize_uri(urlsplit("mzshare://c/p%75blic/orders/")).geturl() == "mzshare://c/public/orders"
    assert table_asset("orders", "a") != table_asset("orders", "b")


@pytest.mark.parametrize(
    "uri", ["mzshare://", "mzshare:///a/b", "mzshare://c", "mzshare://c/a/b/c", "mzshare://c/a//b"]
)
def test_what_is_no_table_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="mzshare://connection/schema/table"):
        sanitize_uri(urlsplit(uri))
    with pytest.raises(ValueError, match="not a table's name"):
        table_asset("a.b.c")


def test_names_as_a_template_leaves_them() -> None:
    assert as_list("orders") == ["orders"]
    assert as_list("['a', 'b.c']") == ["a", "b.c"]
    assert as_list(["a"]) == ["a"]
    with pytest.raises(Exception, match="not a list"):
        as_list("[a, b")


def test_links_lead_to_the_status_page_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = StartIngestionOperator(task_id="t", source="or ders")
    operator.job_id = "ingest-1"
    assert JobLogLink().get_link(operator, ti_key=None) == ""  # type: ignore[arg-type]
    monkeypatch.setenv("AIRFLOW__MZSHARE__STATUS_PAGE", "True")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow:8080/")
    assert JobLogLink().get_link(operator, ti_key=None) == "http://airflow:8080/mzshare/jobs/ingest-1/log"  # type: ignore[arg-type]
    assert StatusLink().get_link(operator, ti_key=None) == "http://airflow:8080/mzshare/status?name=or%20ders"  # type: ignore[arg-type]
    operator.job_id = None
    assert JobLogLink().get_link(operator, ti_key=None) == ""  # type: ignore[arg-type]


def test_the_page_is_served_only_when_it_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plugin._apps() == []
    monkeypatch.setenv("AIRFLOW__MZSHARE__STATUS_PAGE", "True")
    (app,) = plugin._apps()
    assert (app["url_prefix"], app["name"]) == ("/mzshare", "mzshare")


def test_the_page_shows_status_and_logs_and_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MZSHARE_HOME", str(tmp_path))
    hook = MzShareHook()
    source_id = add_source(hook.ensure_catalog(), "s")
    add_tables(hook.catalog, source_id, "<b>t")
    with hook.catalog.write() as session:
        folder = tmp_path / "jobs" / "j"
        folder.mkdir(parents=True)
        (folder / "log").write_text("one\ntwo\n")
        job = jobs.create_job(session, kind="ingest", source_id=source_id, launcher="process", folder=str(folder))
    hook.close()
    client = TestClient(make_app())
    page = client.get("/status", params={"name": "s"}).text
    assert "&lt;b&gt;t" in page
    assert "<b>t" not in page
    answer = client.get("/status", params={"name": "s", "output": "json"}).json()
    assert [table["rows"] for table in answer["tables"]] == [0]
    assert client.get(f"/jobs/{job}/log", params={"tail": 1}).text == "two"
    assert client.get("/jobs/nope/log").status_code == 404
    assert client.get("/status", params={"name": "nope"}).status_code == 404
    assert client.post("/status").status_code == 405
    monkeypatch.setenv("AIRFLOW_CONN_MZSHARE_DEFAULT", "mzshare://u:p@127.0.0.1:1/db")
    assert client.get("/status").status_code == 503


def test_a_job_whose_spark_shows_no_pages_has_no_link_to_them() -> None:
    operator = StartIngestionOperator(task_id="start", source="s")
    assert SparkUILink().get_link(operator, ti_key=None) == ""  # type: ignore[arg-type]
    operator.spark_ui = "http://127.0.0.1:4040"
    assert SparkUILink().get_link(operator, ti_key=None) == "http://127.0.0.1:4040"  # type: ignore[arg-type]
