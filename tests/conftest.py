"""Fixtures of all tests. Servers are real, shared by the session, and gone with it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_mzshare.compute import jars as jar_list
from airflow_provider_mzshare.control import composition  # noqa: F401  Whoever opens a catalog in a test has it kept up.
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from tests.support.catalog import new_sqlite
from tests.support.kafka import USERS
from tests.support.postgres import Postgres
from tests.support.processes import left_behind
from tests.support.s3 import S3Server
from tests.support.selection import choose
from tests.support.small_disk import may_mount, run_in_namespace
from tests.support.upstream_postgres import Database, upstream_database, upstream_server

ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """Start from a clean environment: what the developer has set for mzshare or Airflow must not leak in."""
    for name in [name for name in os.environ if name.startswith(("MZSHARE_", "AIRFLOW_")) and name != "MZSHARE_JARS"]:
        del os.environ[name]
    os.environ.setdefault("MZSHARE_JARS", str(ROOT / ".cache" / "jars"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", metavar="K/N", help="of the long tests, the K-th of N parts")


@pytest.hookimpl(tryfirst=True)  # Before tests are chosen by their marks.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See tests/support/selection.py."""
    items[:], left_out = choose(items, config.getoption("--part"))
    config.hook.pytest_deselected(items=left_out)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that mounts where it may; True says that it was run."""
    if pyfuncitem.get_closest_marker("mounts") is None or may_mount():
        return None
    run_in_namespace(f"{pyfuncitem.path}::{pyfuncitem.name}", pyfuncitem.config.rootpath)
    return True


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail when a process outlives the session. Set up first, hence torn down last."""
    yield
    assert not (left := left_behind(tmp_path_factory.getbasetemp())), "processes were left running:\n" + "\n".join(left)


@pytest.fixture
def airflow_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give Airflow a home of its own: without one, its import makes ~/airflow."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    return tmp_path / "airflow"


@pytest.fixture(scope="session")
def airflow_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an Airflow's database that is up to date, to be copied. Made once for all workers."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "airflow-template"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            env = {**os.environ, "AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
            assert ran.returncode == 0, ran.stderr[-2000:]
            (folder / "made").touch()
    return folder / "airflow.db"


@pytest.fixture
def airflow_database(airflow_home: Path, airflow_template: Path) -> Path:
    """Return the database of the Airflow in ``airflow_home``, up to date and empty."""
    airflow_home.mkdir(exist_ok=True)
    return Path(shutil.copy(airflow_template, airflow_home / "airflow.db"))


@pytest.fixture(scope="session")
def jars() -> Path:
    """Return the folder with all pinned jars."""
    folder = jar_list.default_folder()
    jar_list.fetch(jar_list.GROUPS, folder)
    return folder


@pytest.fixture(scope="session")
def kafka(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """Return a broker with JMX and the SASL users alice and bob. Shared: use topics of your own."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), jars=jars, sasl_users=USERS, jmx=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return a Postgres server. Shared: use a database of your own."""
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(scope="session")
def upstream_postgres() -> Iterator[Postgres]:
    """Return a Postgres server to be read from. Shared: use a database of your own."""
    with upstream_server() as server:
        yield server


@pytest.fixture
def upstream(upstream_postgres: Postgres) -> Iterator[Database]:
    """Return a new, empty database to be read from."""
    with upstream_database(upstream_postgres) as database:
        yield database


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Return an S3 server. Shared: use a folder of your own."""
    server = S3Server(tmp_path_factory.mktemp("s3"), jar_list.default_folder())
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """Return the S3 server that this test's environment names, as users name theirs."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> str:
    """Return the name of a new catalog's database, to be copied."""
    name = postgres.create_database()
    with Catalog(postgres.url(name)) as catalog:
        catalog.upgrade()
    return name


@pytest.fixture(params=["sqlite", "postgres"])
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a new catalog; the test runs once on each kind of database."""
    if request.param == "sqlite":
        yield new_sqlite(tmp_path / "catalog.db")
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database(template=request.getfixturevalue("postgres_template")) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of an empty database; the test runs once on each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url
