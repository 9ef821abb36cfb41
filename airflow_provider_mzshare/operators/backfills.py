"""Operators for tables that are added later: start their backfill, end it, and verify the table after the cutover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Context

from airflow_provider_mzshare.errors import TerminalError
from airflow_provider_mzshare.hooks.base import START_SECONDS
from airflow_provider_mzshare.links import JobLogLink, SparkUILink, StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator, as_list


class _TablesOperator(MzShareOperator):
    template_fields: Sequence[str] = ("tables", *MzShareOperator.template_fields)
    operator_extra_links = (StatusLink(), JobLogLink(), SparkUILink())

    def __init__(self, *, tables: str | Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tables = tables


class StartBackfillOperator(_TablesOperator):
    """Start the apps that bring tables up to their source. Done when each holds its backfill; it goes on by itself.

    Live tables need no backfill, and a backfill that runs already goes on unchanged. Tables that are stalled, or whose
    new generation is stalled, are resumed first, all in one backfill. So after a teardown has retired the backfill, a
    cleared run goes on where it ended. A killed task undoes nothing.

    If the limit of backfills is reached (``max_backfills`` of the connection), the backfill is queued. That is success
    too: the worker does not wait. A reconciler, ``mzshare wait``, or the task that retires another backfill starts it
    when its turn comes. The sensor after this task waits for the table as usual.

    :param tables: one name or several. (templated)
    :param start_timeout: how many seconds an app may take to come up.
    """

    def __init__(self, *, start_timeout: float = START_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_timeout = start_timeout

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns the job of each backfill, the tables that need none, and the places of queued backfills."""
        tables = as_list(self.tables)
        started = self.hook.start_backfill(tables, timeout=self.start_timeout, poll=self.poll_interval)
        self.note_job(next(iter(started.jobs.values()), None))
        for backfill, place in started.queued.items():
            self.log.info("backfill %s is %s; a reconciler starts it when its turn comes", backfill, place)
        queued = {"queued": dict(started.queued)} if started.queued else {}
        return {"jobs": dict(started.jobs), "live": list(started.live), **queued}


class RetireBackfillOperator(_TablesOperator):
    """End the backfills of tables for good and remove what is left of them; after a cutover there is little to do.

    Meant as a teardown. Tables that are not live yet become stalled, keep their rows, and can be resumed. A new
    generation that is not live yet is given up, even if it is stalled. Tables that were created together share a
    backfill, so it ends for all of them. A backfill that was merged with others goes on for their tables. Then the
    next backfill of the queue starts.

    :param tables: one name or several. (templated)
    """

    def perform(self, context: Context) -> list[dict[str, Any]]:
        return [asdict(outcome) for outcome in self.hook.retire_backfill(as_list(self.tables))]


class VerifyCutoverOperator(MzShareOperator):
    """Prove that a table has no gap and no overlap: its range is read upstream once more and compared row by row.

    If a row differs, the task fails without a retry and names the first such offset.

    :param table: the table's name, ``[schema.]name``. (templated)
    :param strict: also fail when the upstream no longer has the records to compare.
    """

    template_fields: Sequence[str] = ("table", *MzShareOperator.template_fields)
    operator_extra_links = (StatusLink(),)

    def __init__(self, *, table: str, strict: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table, self.strict = table, strict

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns what was compared, and the verdict."""
        verified = self.hook.verify(self.table)
        if verified.verdict != "exact":
            if self.strict:
                raise TerminalError(f"table {self.table} cannot be verified: {verified.reason}")
            self.log.warning("table %s cannot be verified: %s", self.table, verified.reason)
        self.publish(context, [self.table])
        return verified.to_json()
