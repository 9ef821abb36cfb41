"""How far the pass over a group has come: for people, nothing is decided upon it.

Executors of a cluster tell Spark with every heartbeat. On one machine Spark 4.0 says 0 until a task has ended, so there
the tasks tell us, by files.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_mzshare.storage.fanout.received import counted

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pass:
    """A pass that runs. Its tasks write their counts into the folder ``counts``; empty on a cluster."""

    context: SparkContext
    job_group: str
    counts: str

    def records_read(self) -> int:
        """Called from another thread; starts no Spark job. Returns 0 on any error, so that the work goes on."""
        try:
            return counted(self.counts) if self.counts else self._records_told()
        except Exception as error:  # noqa: BLE001  Spark may be on its way out, or the stage not begun
            log.debug("%s: its progress is not known: %s", self.job_group, error)
            return 0

    def _records_told(self) -> int:
        tracker = self.context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.job_group)]
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        books = self.context._jsc.sc().statusStore()
        return sum(int(books.lastStageAttempt(stage).inputRecords()) for stage in stages)


@contextmanager
def counted_pass(context: SparkContext, job_group: str, scratch: str | None) -> Iterator[Pass]:
    """:param scratch: where tasks on this machine may write their counts; None when nobody will ask."""
    folder = _folder(context, scratch)
    try:
        yield Pass(context, job_group, folder)
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(context: SparkContext, scratch: str | None) -> str:
    if scratch is None or not str(context.master).startswith("local"):
        return ""
    try:
        return tempfile.mkdtemp(prefix="mzshare-counts-", dir=scratch)
    except OSError:  # A full disk is reported elsewhere.
        return ""
