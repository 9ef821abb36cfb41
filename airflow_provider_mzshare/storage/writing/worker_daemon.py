"""The parent of Spark's Python workers on a single machine: what the writer needs is imported before it forks.

Spark ends Python workers that were idle for a minute. A new one that has to import Arrow and numpy first makes one tick
a minute several times as long as the others.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow.parquet as pq

from airflow_provider_mzshare.connectors.load_generator import generators
from airflow_provider_mzshare.errors import FormatNotLoaded
from airflow_provider_mzshare.formats.registry import FORMATS, format_named
from airflow_provider_mzshare.storage.fanout import writer

PRELOADED = (np, pq, writer, generators)
for name in FORMATS:
    with contextlib.suppress(FormatNotLoaded):  # its own tables fail, and say why
        format_named(name)

if __name__ == "__main__":
    from pyspark import daemon

    daemon.manager()  # type: ignore[no-untyped-call]
