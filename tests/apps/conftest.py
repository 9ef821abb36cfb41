"""One Spark session for all in-process scenarios; stacks of catalog and warehouse per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_mzshare.compute.jars import spark_jars
from airflow_provider_mzshare.compute.session import DELTA_CONF, open_session
from airflow_provider_mzshare.connectors.registry import kinds
from airflow_provider_mzshare.control.catalog.database.engine import Catalog
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.storage.writing.shipping import pack_writer
from tests.support.catalog import new_sqlite
from tests.support.stack import Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with open_session(
        "tests",
        master="local[2]",
        jars=spark_jars(jars),
        scratch=folder,
        conf=DELTA_CONF | {name: value for kind in kinds() for name, value in kind.spark_settings.items()},
        py_files=[pack_writer(folder)],
    ) as session:
        yield session


@pytest.fixture
def driver_reads() -> bool:
    """Whether an app may read without Spark; see ``BOTH_WAYS``."""
    return False


@pytest.fixture
def stack(kafka: EmbeddedKafka, spark: SparkSession, tmp_path: Path, driver_reads: bool) -> Iterator[Stack]:
    made = Stack(tmp_path, kafka, Catalog(new_sqlite(tmp_path / "catalog.db")), spark, driver_reads=driver_reads)
    yield made
    made.catalog.close()
