"""Airflow's own pages in a real browser: the forms are filled in and sent as a user does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.demo.producer import Writer
from airflow_provider_mzshare.errors import UnknownItem
from tests.support.airflow_scene import QUICKSTART, TOPIC, Scene, scene
from tests.support.browser import ENTER, Browser, browser
from tests.support.stack import Table
from tests.support.waiting import wait_until

DIALOG = "//div[@role='dialog' and @data-state='open']"
EXPAND = "//*[@data-testid='expand-all-button']"
NEW = Table("big_orders", (("id", "bigint"), ("amount", "numeric(12,2)")))


@pytest.fixture
def airflow(jars: Path, tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path, jars) as made:
        yield made


class Pages:
    """The user's way through the UI. Pictures are kept in ``folder``, for eyes."""

    def __init__(self, page: Browser, airflow: Scene, folder: Path) -> None:
        self.page, self._airflow, self._folder = page, airflow.airflow, folder
        folder.mkdir(parents=True, exist_ok=True)

    def log_in(self) -> None:
        self.page.open(self._airflow.url)
        self.page.type("//input[@name='username']", self._airflow.user)
        self.page.type("//input[@name='password']", self._airflow.password)
        self.page.click("//button[@type='submit']")
        self.page.find("//*[@data-testid='nav-dags-link']")

    def picture(self, name: str) -> None:
        self.page.screenshot(self._folder / f"{name}.png")

    def add_connection(self, name: str, home: Path) -> None:
        """Of our type, whose fields the provider names."""
        page = self.page
        page.open(f"{self._airflow.url}/connections")
        page.click("//button[contains(., 'Add Connection')]")
        page.type(f"{DIALOG}//input[@name='connection_id']", name)
        page.keys(f"{DIALOG}//input[@role='combobox']", "mzshare")
        page.keys(f"{DIALOG}//input[@role='combobox']", ENTER)
        page.wait_for_text("Catalog host (Postgres)")
        self.picture("connection_catalog")
        # Airflow's Test button refuses a connection that has no port; ours counts only beside a host.
        page.type(f"{DIALOG}//input[@name='port']", "5432")
        page.click(f"{DIALOG}//button[contains(., 'Extra Fields') and not(contains(., 'JSON'))]")
        page.type(f"{DIALOG}//input[@name='element_home']", str(home))
        for label in ("Home folder", "Warehouse", "Spark master", "Jar folder", "Lease, seconds", "Spark settings"):
            assert label in page.text
        self.picture("connection_fields")
        page.click(f"{DIALOG}//button[contains(., 'Save')]")
        page.find(f"//td[contains(., '{name}')]")

    def test_connection(self) -> None:
        """The button is red when it failed."""
        button = "//button[@aria-label='Test Connection']"
        self.page.click(button)
        self.page.find(f"{button}//*[@color='red' or @color='green']", 60)
        self.picture("connection_tested")
        assert self.page.has(f"{button}//*[@color='green']")

    def read_docs(self, dag: str) -> str:
        self.page.open(f"{self._airflow.url}/dags/{dag}")
        self.page.click("//button[@aria-label='Dag Docs']")
        self.page.find(f"{DIALOG}[contains(., 'Dag Documentation')]")
        self.picture(f"docs_{dag}")
        return self.page.text

    def trigger(self, dag: str, **form: str) -> None:
        """Fill in the fields by their names; the others are left as they are."""
        self.page.open(f"{self._airflow.url}/dags/{dag}")
        self.page.click("//button[@data-testid='trigger-dag-button']")
        for name, value in form.items():
            self.page.type(f"{DIALOG}//*[@name='element_{name}']", value)
        self.picture("_".join(["form", dag, *form]))
        self.page.click(f"{DIALOG}//button[contains(., 'Trigger') and not(@role='combobox') and not(@data-part)]")
        wait_until(lambda: "/runs/" in self.page.url, 60, "the page of the new run")

    def wait_for_run(self, state: str, timeout: float) -> None:
        badge = f"//*[@data-testid='header-card']//*[@data-testid='state-badge' and contains(., '{state}')]"
        self.page.find(badge, timeout)
        self.page.open(self.page.url)  # The grid beside it follows some seconds later.
        self.page.find(badge)
        if self.page.has(EXPAND):
            self.page.click(EXPAND)
        self.picture(f"run_of_{self.page.url.split('/')[4]}_{state.lower()}")

    def open_task(self, task: str) -> None:
        self.page.open(f"{self.page.url}/tasks/{task}")


@pytest.mark.full(seconds=300)
@pytest.mark.timeout(1800)
def test_a_table_is_added_by_hand(airflow: Scene, tmp_path: Path) -> None:
    writer = Writer(airflow.kafka.bootstrap, TOPIC, partitions=2, per_second=50)
    writer.send(2_000)
    writer.start()
    try:
        airflow.quickstart()
        for dag in ("mzshare_add_table", "mzshare_drop"):
            airflow.airflow.wait_for_dag(dag)
        pictures = Path(os.environ.get("UI_PICTURES", tmp_path / "pictures"))
        with browser() as page:
            pages = Pages(page, airflow, pictures)
            pages.log_in()
            pages.add_connection("by_hand", tmp_path / "home")
            pages.test_connection()
            assert "a source whose app runs" in pages.read_docs("mzshare_add_table")

            pages.trigger("mzshare_add_table", table="wrong", columns="id bigint, amount")
            pages.wait_for_run("Failed", 120)
            pages.open_task("add_table.create")
            page.wait_for_text("columns 'id bigint, amount': line 1, column 18: expected a column type", 60)
            pages.picture("log_of_wrong_columns")

            columns = ",\n".join(f"{name} {kind}" for name, kind in NEW.columns)
            pages.trigger("mzshare_add_table", source="shop", table=NEW.name, columns=columns, include="")
            pages.wait_for_run("Success", 600)
            assert airflow.stack.table(NEW.name).status == "live"
            writer.stop()
            airflow.check(*QUICKSTART, NEW)

            pages.trigger("mzshare_drop", name=NEW.name)
            pages.wait_for_run("Success", 180)
            with pytest.raises(UnknownItem):
                airflow.stack.table(NEW.name)
    finally:
        writer.stop()
    airflow.check(*QUICKSTART)
