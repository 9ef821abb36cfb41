"""A Java for tests, which start many programs that end soon: it compiles lightly and has Spark's classes in an archive.

A session with five small jobs took 13 to 17 s of CPU with Java as it is, 4 s with this one. ``make test`` takes what
``python -m tests.support.java`` prints for its JAVA_HOME. Long tests measure: they take Java as users have it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from airflow_provider_mzshare.compute.java import java_program
from airflow_provider_mzshare.compute.session import open_session

if TYPE_CHECKING:
    import pyarrow as pa

CACHE = Path(__file__).parents[2] / ".cache" / "java"

WRAPPER = """#!/bin/sh
case " $* " in *" org.apache.spark.deploy.SparkSubmit "*) set -- "-XX:{option}={archive}" "$@" ;; esac
exec "{java}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off "$@"
"""


def make() -> Path:
    """Return its home. Made once: a session ends with its classes written down, then the same program reads them."""
    java = java_program().resolve()
    home = _home(java)
    if (home / "spark.jsa").exists():
        return home
    print("making a Java that starts quickly, for tests", file=sys.stderr)
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        archive = Path(scratch, "spark.jsa")
        _write_program(home, java, "ArchiveClassesAtExit", archive)
        os.environ["JAVA_HOME"] = str(home)
        _use_spark(Path(scratch))
        _write_program(home, java, "SharedArchiveFile", home / "spark.jsa")
        archive.rename(home / "spark.jsa")
    return home


def _home(java: Path) -> Path:
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    told = hashlib.sha256(f"{java}{version}{pyspark.__file__}{pyspark.__version__}{WRAPPER}".encode())
    return CACHE / told.hexdigest()[:12]


def _write_program(home: Path, java: Path, option: str, archive: Path) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(WRAPPER.format(java=java, option=option, archive=archive))
    program.chmod(0o755)


def _use_spark(scratch: Path) -> None:
    with open_session("classes", master="local[2]", jars=(), scratch=scratch) as spark:
        spark.range(1000).mapInArrow(_same, "id bigint").collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    print(make())
