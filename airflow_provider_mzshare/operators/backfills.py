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

    Tables that are live need none, and one that runs already is left alone. Tables that are stalled, or whose new
    generation is, are resumed first, all of them in one backfill: clearing a run whose teardown has retired its
    backfill goes on where that one ended. A task that is killed undoes nothing.

    Where as many backfills run as may at once (``max_backfills`` of the connection), one is queued, and that is
    success too: a worker is not kept waiting. It is started in its turn by whoever is there: a reconciler, ``mzshare
    wait``, or the task that retires another backfill. The sensor after this task waits for the table all the same.

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

    Meant as a teardown. Tables that are not live yet become stalled, keep their rows, and can be resumed; a new
    generation that is not live yet is given up, also one that has stalled. Tables that were created together share a
    backfill, and so its end; one that others were merged into goes on for those. The next of the queue is started.

    :param tables: one name or several. (templated)
    """

    def perform(self, context: Context) -> list[dict[str, Any]]:
        return [asdict(outcome) for outcome in self.hook.retire_backfill(as_list(self.tables))]


class VerifyCutoverOperator(MzShareOperator):
    """Prove that a table has no gap and no overlap: its range is read upstream once more and compared row by row.

    Fails, without a retry, with the first offset that differs.

    :param table: the table's name, ``[schema.]name``. (templated)
    :param strict: fail as well when the upstream no longer has what is to be compared.
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
