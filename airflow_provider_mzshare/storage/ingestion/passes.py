"""How far the pass over a group has come, from Spark's own books: for people, nothing is decided upon it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)


def records_read(context: SparkContext, job_group: str) -> int:
    """Records that the tasks of a job group have read, as executors told with their last heartbeat.

    It is asked from a thread beside the work, and starts no job. Whatever goes wrong, the work goes on: then 0.
    """
    try:
        tracker = context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(job_group)]
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        books = context._jsc.sc().statusStore()
        return sum(int(books.lastStageAttempt(stage).inputRecords()) for stage in stages)
    except Exception as error:  # noqa: BLE001  Spark may be on its way out, or the stage not begun
        log.debug("%s: nobody knows how far it is: %s", job_group, error)
        return 0
