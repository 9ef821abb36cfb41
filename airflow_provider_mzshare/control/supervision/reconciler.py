"""Makes what runs agree with what should run. What to do is decided in ``decisions``; doing it twice does no harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mzshare.compute.jobs import LOG_FILE
from airflow_provider_mzshare.compute.launchers.registry import Launchers
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.control import hints
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog import jobs as job_rows
from airflow_provider_mzshare.control.catalog.database.models import JobState
from airflow_provider_mzshare.control.catalog.jobs import ACTIVE, Job
from airflow_provider_mzshare.control.catalog.log import arrivals
from airflow_provider_mzshare.control.catalog.log.backfills import find_backfill
from airflow_provider_mzshare.control.catalog.log.leases import give_up_lease
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.journal_rows import forget_journal
from airflow_provider_mzshare.control.supervision.actions import (
    Abandon,
    Action,
    Arm,
    GiveUp,
    Isolate,
    Merge,
    Queue,
    RemoveJournal,
    RemoveTable,
    Start,
    Stop,
    Tidy,
)
from airflow_provider_mzshare.control.supervision.decisions import plan, plan_queued, tidy
from airflow_provider_mzshare.control.supervision.observation import MAX_LAG, Observer
from airflow_provider_mzshare.control.supervision.runs import Run, run_of
from airflow_provider_mzshare.control.supervision.starter import Starter
from airflow_provider_mzshare.control.supervision.unwatched import Unwatched
from airflow_provider_mzshare.control.supervision.warehouse import (
    remove_collection,
    remove_folder,
    remove_journal,
)
from airflow_provider_mzshare.control.upstreams import release
from airflow_provider_mzshare.core.ids import BackfillId, ItemId, JobId
from airflow_provider_mzshare.errors import MzShareError, UnknownConnection
from airflow_provider_mzshare.settings import Settings

STOP_SECONDS = 60.0
"""An app that is stopped ends after its current tick. After this time it gets a TERM, TERM_SECONDS later a KILL."""
TERM_SECONDS = 20.0
_POLL_SECONDS = 0.2
_HISTORY = 1_000
"""More jobs than a backfill ever has."""


@dataclass(frozen=True)
class Outcome:
    """The result of one action. ``ok`` is False when it failed; the other actions were still tried."""

    subject: str
    action: str
    detail: str
    ok: bool = True
    hint: str = ""


class Reconciler:
    """:param stop_seconds: how long an app may take to end its tick, before it is made to end."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        connections: ConnectionStore,
        launchers: Launchers,
        *,
        stop_seconds: float = STOP_SECONDS,
        term_seconds: float = TERM_SECONDS,
    ) -> None:
        self._catalog, self._settings, self._launchers = catalog, settings, launchers
        self._connections = connections
        self._stop_seconds, self._term_seconds = stop_seconds, term_seconds
        self._observer = Observer(catalog, settings, launchers)
        self._starter = Starter(catalog, settings, connections, launchers)
        self._unwatched = Unwatched(catalog, connections)

    def plan(self, *, only: ItemId | None = None, at_once: bool = False) -> list[Action]:
        return plan(self._observer.look(only), at_once=at_once)

    def run(self, *, only: ItemId | None = None, at_once: bool = False) -> list[Outcome]:
        """One look, and all actions that follow from it. Backfills that were split off are started too."""
        actions = self.plan(only=only, at_once=at_once)
        outcomes = self._carry_out(actions)
        if any(isinstance(action, Isolate) for action in actions):
            outcomes += self._carry_out(self.plan(only=only, at_once=at_once))
        if only is not None and any(isinstance(action, Queue) for action in actions):
            # There may be room for backfills that have waited longer, and perhaps nobody else starts them.
            outcomes += [started for started in self.start_queued() if started.ok]
        if only is None:
            stalled = self._unwatched.look()
            outcomes += [Outcome(f"table {table_id}", "stall", reason) for table_id, reason in stalled.items()]
        return outcomes

    def start_queued(self) -> list[Outcome]:
        """Start queued backfills of any source while there is room, and do nothing else.

        Called by waits, since perhaps no reconciler runs, and after a backfill was retired.
        """
        return self._carry_out(plan_queued(self._observer.look()))

    def _carry_out(self, actions: Sequence[Action]) -> list[Outcome]:
        """All apps are stopped at the same time, because each may take a while."""
        stops = [action for action in actions if isinstance(action, Stop)]
        outcomes = [self._outcome(action, self._do) for action in actions if not isinstance(action, Stop)]
        return outcomes + self._stop_all(stops)

    def run_patiently(self) -> list[Outcome]:
        """As ``run``, where no reconciler runs all the time: waits until each lease gets a heartbeat or runs out.

        That is the only sign that a process hangs, or that one on another machine is lost.
        """
        outcomes = self.run()
        deadline = time.monotonic() + self._settings.lease_seconds + _POLL_SECONDS
        while self._observer.is_in_doubt and time.monotonic() < deadline:
            time.sleep(self._settings.heartbeat_seconds / 2)
            self._observer.look()
        return outcomes + self.run() if self._observer.is_in_doubt else outcomes

    def retire(self, backfill_id: BackfillId, only: Collection[ItemId] | None = None) -> list[Outcome]:
        """End a backfill for good, wherever its app runs. If it is over already, only its leftovers are removed.

        :param only: after a merge, the backfill goes on for tables that were not asked for together with one of these.
        """
        with self._catalog.write() as session:
            retired = arrivals.retire_backfill(session, backfill_id, only)
            names = ", ".join(items.get_table_item(session, one).display for one in retired)
            others = [table.display for table in find_backfill(session, backfill_id).tables]
        subject, detail = f"backfill {backfill_id}", f"not live yet: {names}" if names else "it has ended"
        if others:
            rest = f"it goes on for {', '.join(others)}"
            return [Outcome(subject, "retire", f"{detail}; {rest}" if names else rest)]
        # From here on nobody starts it again, because it has no tables.
        jobs = self._jobs_of(backfill_id)
        alive = tuple(job.id for job in jobs if job.is_active)
        outcomes = [Outcome(subject, "retire", detail), *self._stop_all([Stop(subject, "it was retired", alive)])]
        self._await_gone(jobs)
        left = tidy(subject, self._observer.look_at_jobs(self._jobs_of(backfill_id)))
        return [*outcomes, *(self._outcome(action, self._do) for action in left)]

    def _jobs_of(self, backfill_id: BackfillId) -> Sequence[Job]:
        with self._catalog.read() as session:
            return job_rows.last_jobs(session, None, _HISTORY, backfill_id=backfill_id)

    def _await_gone(self, jobs: Sequence[Job]) -> None:
        """A process records its end a moment before it ends: wait for that moment."""
        runs = [run for job in jobs if (run := run_of(job, self._launchers)) is not None]
        deadline = time.monotonic() + self._term_seconds
        while alive := [run for run in runs if run.status() == "alive"]:
            if time.monotonic() >= deadline:
                for run in alive:
                    run.kill()
                return
            time.sleep(_POLL_SECONDS)

    def _outcome(self, action: Action, do: Callable[[Action], str]) -> Outcome:
        try:
            return Outcome(action.subject, action.verb, do(action))
        except MzShareError as error:
            return Outcome(action.subject, action.verb, " ".join(error.message.split()), ok=False, hint=error.hint)
        except OSError as error:
            return Outcome(action.subject, action.verb, str(error), ok=False)

    def _do(self, action: Action) -> str:
        if isinstance(action, Start):
            return self._starter.start(ItemId(action.source_id), BackfillId(action.backfill_id) or None)
        if isinstance(action, Merge):
            return self._starter.merge(ItemId(action.source_id), [BackfillId(one) for one in action.backfill_ids])
        if isinstance(action, Queue):
            return self._starter.queue(ItemId(action.source_id), BackfillId(action.backfill_id), action.why)
        if isinstance(action, Arm):
            return self._arm(ItemId(action.source_id))
        if isinstance(action, Isolate | Abandon):
            return self._let_go(action)
        if isinstance(action, GiveUp):
            return self._give_up(JobId(action.job_id), action.why)
        if isinstance(action, Tidy):
            return self._tidy(JobId(action.job_id), action.whole)
        if isinstance(action, RemoveTable | RemoveJournal):
            return self._remove(action)
        return action.why

    def _arm(self, source_id: ItemId) -> str:
        with self._catalog.write() as session:
            armed = arrivals.arming(session, source_id, max_lag=MAX_LAG)
            names = [items.get_table_item(session, table_id).display for table_id in armed]
        return f"{', '.join(names)}: converging" if names else "nothing is ready any more"

    def _let_go(self, action: Isolate | Abandon) -> str:
        """In one transaction, and only if nobody has started the app again since the look."""
        backfill_id, died = BackfillId(action.backfill_id), JobId(action.job_id)
        with self._catalog.write() as session:
            if isinstance(action, Isolate):
                tables = arrivals.isolate_tables(session, backfill_id, died)
                became = "backfills of their own"
            else:
                words = hints.reason_of(job_rows.get_job(session, died).error or "it left no message")
                reason = f"the app of its backfill died {action.deaths} times in a row: {words}"
                tables = arrivals.abandon_tables(session, backfill_id, died, reason)
                became = f"stalled: {reason}"
            names = ", ".join(items.get_table_item(session, table_id).display for table_id in tables)
        return f"{names}: {became}" if names else "it has ended, or was started again"

    def _remove(self, action: RemoveTable | RemoveJournal) -> str:
        warehouse = self._settings.warehouse
        if isinstance(action, RemoveTable):
            for path in action.table.paths:
                remove_collection(warehouse, path)
            return f"{len(action.table.paths)} folders"
        released = self._release(ItemId(action.journal.source_id))
        # Rows first: a writer that is still alive is fenced. What it writes meanwhile, the next look finds.
        with self._catalog.write() as session:
            forget_journal(session, action.journal.journal)
        remove_journal(warehouse, action.journal.journal)
        return ", ".join(filter(None, ("its journal", released)))

    def _release(self, source_id: ItemId) -> str:
        """While what the upstream keeps cannot be taken away, the journal stays: the next look tries it again."""
        with self._catalog.read() as session:
            source = items.get_source_item(session, source_id)
        try:
            return release(self._connections, source.spec, source.incarnation)
        except UnknownConnection as error:
            return f"but not {kind_of(source.spec).left(source.incarnation)}: {error.message}"

    # ── stop ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _stop_all(self, stops: Sequence[Stop]) -> list[Outcome]:
        """Ask the apps to stop through the catalog. Those that do not end get a TERM, and then a KILL."""
        waiting = {JobId(job_id): stop for stop in stops for job_id in stop.job_ids}
        if not waiting:
            return []
        with self._catalog.write() as session:
            for job_id, stop in waiting.items():
                if not stop.by_itself:
                    job_rows.request_stop(session, job_id)
        outcomes = self._ended(waiting, self._stop_seconds, "ended after its tick")
        self._signal(waiting, Run.request_stop)
        outcomes += self._ended(waiting, self._term_seconds, "ended after a second request")
        self._signal(waiting, Run.kill)
        return outcomes + [self._after_kill(job_id, stop) for job_id, stop in waiting.items()]

    def _after_kill(self, job_id: JobId, stop: Stop) -> Outcome:
        run = self._run(job_id)
        if run is not None and run.status() == "unknown":
            detail = f"job {job_id} on {run.host} was asked to stop and still runs"
            return Outcome(stop.subject, stop.verb, detail, ok=False, hint="mzshare status")
        how = "it did not stop on request and was killed" if run is not None else "its process never started"
        self._end(job_id, "stopped", how, run)
        return Outcome(stop.subject, stop.verb, f"job {job_id}: {how}")

    def _ended(self, waiting: dict[JobId, Stop], seconds: float, how: str) -> list[Outcome]:
        """Remove the jobs from ``waiting`` that end within the time."""
        outcomes: list[Outcome] = []
        deadline = time.monotonic() + seconds
        while waiting:
            for job_id in [job_id for job_id in waiting if self._is_over(job_id)]:
                stop = waiting.pop(job_id)
                outcomes.append(Outcome(stop.subject, stop.verb, f"job {job_id} {how}: {stop.why}"))
            if not waiting or time.monotonic() >= deadline:
                break
            time.sleep(_POLL_SECONDS)
        return outcomes

    def _is_over(self, job_id: JobId) -> bool:
        job = self._job(job_id)
        if not job.is_active:
            return True
        run = run_of(job, self._launchers)
        if run is None or run.status() != "gone":
            return False
        # The app may have recorded its end after the job was read; then this changes nothing.
        self._end(job_id, "lost", "its process is gone", run)
        return True

    def _signal(self, waiting: dict[JobId, Stop], send: Callable[[Run], object]) -> None:
        for job_id in waiting:
            if (run := self._run(job_id)) is not None:
                send(run)

    # ── ends ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _give_up(self, job_id: JobId, why: str) -> str:
        """All processes of the run on this machine are killed first, so that two runs never work at once."""
        run = self._run(job_id)
        killed, words = (run.kill(), run.last_words()) if run is not None else (0, "")
        self._end(job_id, "lost", f"{why}{f'; its last message: {words}' if words else ''}", run)
        return f"job {job_id}: {why}{f', {killed} processes killed' if killed else ''}"

    def _tidy(self, job_id: JobId, whole: bool) -> str:
        folder = Path(self._job(job_id).folder)
        if whole:
            remove_folder(folder)
            with suppress(OSError):  # others of the source are still in it
                folder.parent.rmdir()
            return f"folder of job {job_id}"
        with suppress(FileNotFoundError):  # another reconciler was faster
            for path in folder.iterdir():
                if path.name != LOG_FILE:
                    remove_folder(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        return f"scratch of job {job_id}"

    def _end(self, job_id: JobId, state: JobState, error: str, run: Run | None) -> None:
        """If the process is known to be gone, its lease is released at once: nobody has to wait until it runs out."""
        is_gone = run is not None and run.status() == "gone"
        with self._catalog.write() as session:
            if is_gone:
                give_up_lease(session, job_rows.get_job(session, job_id))
            job_rows.set_state(session, job_id, state, expect=ACTIVE, error=error)

    def _job(self, job_id: JobId) -> Job:
        with self._catalog.read() as session:
            return job_rows.get_job(session, job_id)

    def _run(self, job_id: JobId) -> Run | None:
        return run_of(self._job(job_id), self._launchers)
