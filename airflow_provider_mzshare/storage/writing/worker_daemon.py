"""The parent of Spark's Python workers on a single machine: what the writer needs is imported before it forks.

Spark ends Python workers that were idle for a minute. A new one that has to import Arrow and numpy first makes one tick
a minute several times as long as the others.

Before every task Spark tells Python to forget what is on its path, and Python reads the names in every archive there
anew: in pyspark's own and in a jar of Spark's, thousands. That took three quarters of what a small tick cost a worker.
"""

from __future__ import annotations

import contextlib
import os
import zipimport
from importlib import import_module

from airflow_provider_mzshare.errors import FormatNotLoaded
from airflow_provider_mzshare.formats.registry import FORMATS, format_named

VARIABLE = "MZSHARE_PRELOAD"
"""What the source's connector needs there besides, with commas between."""
PRELOADED = ("numpy", "pyarrow.parquet", "airflow_provider_mzshare.storage.fanout.writer")


def preload() -> None:
    for name in (*PRELOADED, *filter(None, os.environ.get(VARIABLE, "").split(","))):
        import_module(name)
    for name in FORMATS:
        with contextlib.suppress(FormatNotLoaded):  # its own tables will fail, and say why
            format_named(name)


def keep_archives() -> None:
    """Archives do not change while the app runs. An archive that is added later is read when it is added."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    from pyspark import daemon

    keep_archives()
    preload()
    daemon.manager()  # type: ignore[no-untyped-call]
