"""The operator that reads what has changed in a table during a data interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from airflow.sdk import Context

from airflow_provider_mzshare.errors import TerminalError, TransientError, WaitTimeout
from airflow_provider_mzshare.hooks.failures import no_retry_when_terminal
from airflow_provider_mzshare.links import StatusLink
from airflow_provider_mzshare.operators.base import MzShareOperator

if TYPE_CHECKING:
    from airflow_provider_mzshare.control.lifecycle.live_decision import Question
    from airflow_provider_mzshare.hooks.changes import Slice

HOLD_SECONDS = 7 * 86_400.0
INTERVALS = 'schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"), or give start and end'


class ReadChangesOperator(MzShareOperator):
    """Read what has changed in a table during the run's data interval: ``start <= mz_timestamp < end``.

    The slices of intervals that meet are disjoint and leave nothing out, and a slice is the same whenever it is read:
    by a retry, by a cleared run, by a backfill of the DAG. First the task waits, deferred, until all that is before the
    interval's end is final in the table.

    The DAG needs a schedule with data intervals: ``CronDataIntervalTimetable`` or ``DeltaDataIntervalTimetable``. The
    intervals of other schedules are empty, and that is refused. So is what the table cannot give in full (its history
    begins later, or the interval cuts what was written together), with the nearest times, and without retries.

    Rows: ``mz_timestamp``, ``mz_diff`` (how often the row comes, or with a minus goes), then the table's columns. Give
    ``file`` or ``process`` for them, or override ``take``; else they are only counted.

    :param table: its name, ``[schema.]name``. (templated)
    :param start: the first time, instead of the interval's: with a zone, or in milliseconds. (templated)
    :param end: the time up to which, without it. (templated)
    :param columns: only these. (templated)
    :param system_columns: with tick, partition and offset of each row.
    :param snapshot: True: the rows as of the last moment before the interval's end, instead of the changes.
        ``"first"``: that, where there is nothing to go on from: an earlier run of this task has to have returned the
        slice before, of the same table. So it is a pipeline's first run, and one after runs that were left out. Such a
        slice takes the place of all before. Let a DAG with it do one run at a time (``max_active_runs=1``).
    :param file: write the rows here, as ``.parquet``, ``.csv`` or ``.json`` (one object a line); a path, or a URI of an
        object store. The file appears only when it is complete, and a retry writes it anew. (templated)
    :param file_format: needed if the file's name does not show it. (templated)
    :param process: called with the slice and the context; ``with slice.open() as batches`` gives Arrow batches. It may
        be called again for the same slice. Its answer is returned, so XCom has to take it.
    :param hold: keep the table's history for the next run, whatever ``RETAIN HISTORY`` says: by a read hold, which each
        run that succeeds moves to its interval's end. ``mzshare holds`` shows it.
    :param hold_limit: how many seconds may pass between two runs. After that the hold is dropped.
    :param deferrable: wait in the triggerer, where all waits on a catalog share one query. Else on the worker.
    :param wait_timeout: how many seconds to wait for the interval's end; the task is retried after that. None: without
        a limit.
    """

    template_fields: Sequence[str] = (
        "table", "start", "end", "columns", "file", "file_format", *MzShareOperator.template_fields,
    )  # fmt: skip
    operator_extra_links = (StatusLink(),)

    def __init__(
        self,
        *,
        table: str,
        start: datetime | int | str | None = None,
        end: datetime | int | str | None = None,
        columns: Sequence[str] | None = None,
        system_columns: bool = False,
        snapshot: bool | Literal["first"] = False,
        file: str | None = None,
        file_format: str | None = None,
        process: Callable[[Slice, Context], Any] | None = None,
        hold: bool = False,
        hold_limit: float = HOLD_SECONDS,
        deferrable: bool = True,
        wait_timeout: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.table, self.start, self.end = table, start, end
        self.columns, self.system_columns, self.snapshot = columns, system_columns, snapshot
        self.file, self.file_format, self.process = file, file_format, process
        self.hold, self.hold_limit = hold, hold_limit
        self.deferrable, self.wait_timeout = deferrable, wait_timeout

    def perform(self, context: Context) -> dict[str, Any]:
        """Returns the slice (``table``, ``table_id``, ``start`` and ``end`` in milliseconds, ``snapshot``), how many
        rows it has (``changes``) and how many rows of the table came and went by them (``inserts``, ``deletes``);
        ``file``, or the ``result`` of ``process``.
        """
        if self.file and self.process:
            raise TerminalError("give file or process, not both")
        part = self._slice(context)
        self.log.info("%s", self._told(part))
        self._wait(part)
        more = self._take_held(part, context) if self.hold else self.take(part, context)
        self.log.info("%d rows: %d came, %d went", part.changes, part.inserts, part.deletes)
        return {**part.to_json(), **more}

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """The end of the wait in the triggerer. The name may be another table's by now, so it looks again."""
        from airflow_provider_mzshare.events import ConvergedEvent

        with no_retry_when_terminal(), closing(self.hook):
            ConvergedEvent.from_payload(event).result_or_raise()
            return self.perform(context)

    def take(self, part: Slice, context: Context) -> dict[str, Any]:
        """What becomes of the rows; the answer is returned beside the slice. May be called again for the same slice."""
        from airflow_provider_mzshare.hooks.exports import export, file_format

        if self.process:
            return {"result": self.process(part, context)}
        if self.file:
            chosen = file_format(self.file, self.file_format)
            with part.open() as batches:
                export(batches, self.file, chosen)
            return {"file": self.file}
        with part.open() as batches:
            for _ in batches:
                pass
        return {}

    def _take_held(self, part: Slice, context: Context) -> dict[str, Any]:
        """A hold that is lost meanwhile is the next run's affair: this slice was read."""
        from airflow_provider_mzshare.core.ticklog.holds import HoldLost

        ti, more = context["ti"], None
        mapped = f"[{ti.map_index}]" if (ti.map_index or -1) >= 0 else ""
        task = f"{ti.dag_id}.{ti.task_id}{mapped}"
        name, holder = f"airflow {task} {part.table_id}", f"Airflow task {task}"
        try:
            with part.hold(name, limit=self.hold_limit, holder=holder):
                more = self.take(part, context)
        except HoldLost as error:
            if more is None:
                raise
            self.log.warning("%s", error.line)
        return more

    # ── which slice ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _slice(self, context: Context) -> Slice:
        from airflow_provider_mzshare.hooks.changes import Slice

        start, end = self._bound("start", context), self._bound("end", context)
        if start >= end:
            raise TerminalError(f"the data interval is empty: it begins at {start} and ends at {end}", hint=INTERVALS)
        table = self.hook.table(self.table)
        part = Slice(self.hook, self.table, table.id, start, end, columns=self.columns or None)
        part.system_columns = self.system_columns
        part.snapshot = self.snapshot is True or (self.snapshot == "first" and not self._goes_on(part, context))
        return part

    def _bound(self, which: Literal["start", "end"], context: Context) -> int:
        from airflow_provider_mzshare.hooks.changes import milliseconds

        given: Any = getattr(self, which)
        if given is None or given in ("", "None"):
            given = context.get(f"data_interval_{which}")
        if given is None:
            raise TerminalError("the run has no data interval", hint=INTERVALS)
        return milliseconds(which, given)

    def _goes_on(self, part: Slice, context: Context) -> bool:
        """Has an earlier run returned the slice that ends where this one begins?"""
        ti = context["ti"]
        before = ti.xcom_pull(task_ids=self.task_id, map_indexes=ti.map_index, include_prior_dates=True)
        if not isinstance(before, Mapping):
            return False
        return (before.get("table_id"), before.get("end")) == (part.table_id, part.start)

    def _told(self, part: Slice) -> str:
        from airflow_provider_mzshare.hooks.changes import told

        if part.snapshot:
            return f"the rows of {part.table} as of {told(part.end - 1)}, in place of its changes"
        return f"the changes of {part.table} from {told(part.start)} up to {told(part.end)}"

    # ── waiting ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wait(self, part: Slice) -> None:
        from airflow_provider_mzshare.control.lifecycle.live_decision import Question

        question = Question(self.table, table_id=part.table_id, upper=part.end)
        if self._is_reached(question):
            return
        if self.deferrable:
            self._defer(question)
        deadline = None if self.wait_timeout is None else time.monotonic() + self.wait_timeout
        while not self._is_reached(question):
            if deadline is not None and time.monotonic() > deadline:
                raise WaitTimeout(
                    f"table {self.table} has not got all before {part.end} after {self.wait_timeout:g} s",
                    hint="mzshare status",
                )
            time.sleep(self.poll_interval)

    def _defer(self, question: Question) -> NoReturn:
        from airflow_provider_mzshare.triggers.offsets import OffsetsConvergedTrigger

        self.defer(
            trigger=OffsetsConvergedTrigger.asking(question, self.mzshare_conn_id, self.poll_interval),
            method_name="execute_complete",
            timeout=None if self.wait_timeout is None else timedelta(seconds=self.wait_timeout),
        )

    def _is_reached(self, question: Question) -> bool:
        """A catalog that does not answer is asked again."""
        from airflow_provider_mzshare.control.lifecycle.converged_wait import look

        try:
            answer = look(self.hook.catalog, [question])[question]
        except TransientError as error:
            self.log.warning("%s", error.line)
            return False
        if answer.error is not None:
            raise answer.error
        return answer.result is not None
