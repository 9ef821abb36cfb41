"""What a reconciler can do, as values: ``decisions`` decides them, ``reconciler`` carries them out."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_mzshare.core.ids import JournalId


@dataclass(frozen=True)
class DroppedTable:
    """Folders in the warehouse that nobody needs any more: of a dropped table, or of an old generation of one."""

    table_id: str
    name: str
    paths: tuple[str, ...]
    why: str = "it was dropped"


@dataclass(frozen=True)
class DroppedJournal:
    """The journal of a dropped source: its rows, and its folder in the warehouse."""

    journal: JournalId
    name: str
    why: str = "its source was dropped"
    source_id: str = ""


@dataclass(frozen=True)
class Action:
    """``subject``: the source, table or backfill that it is about, as a user knows it."""

    subject: str
    why: str = ""
    verb = "?"


@dataclass(frozen=True)
class GiveUp(Action):
    """Mark a job as lost, after killing whatever is left of it.

    :param backfill_id: the backfill whose job it is; empty for a job of an ingestion app.
    """

    job_id: str = ""
    backfill_id: str = ""
    verb = "lost"


@dataclass(frozen=True)
class Stop(Action):
    """:param by_itself: the app is expected to end without being asked; it is killed only if it does not."""

    job_ids: tuple[str, ...] = ()
    by_itself: bool = False
    verb = "stop"


@dataclass(frozen=True)
class Start(Action):
    """:param backfill_id: the backfill whose app is started; empty for the source's ingestion app.
    :param since: its place among the backfills that wait for an app: the smallest is next.
    """

    source_id: str = ""
    backfill_id: str = ""
    since: int = 0
    verb = "start"


@dataclass(frozen=True)
class Queue(Action):
    """It should run, and waits until fewer backfills run."""

    source_id: str = ""
    backfill_id: str = ""
    verb = "queue"


@dataclass(frozen=True)
class Merge(Action):
    """Backfills of a source for which nothing was started yet become one, which reads once for all their tables.

    :param backfill_ids: oldest first; the last takes the others' tables.
    """

    source_id: str = ""
    backfill_ids: tuple[str, ...] = ()
    verb = "merge"


@dataclass(frozen=True)
class Isolate(Action):
    """The app of a backfill died several times in a row: each of its tables gets a backfill of its own.

    So the table that kills the app is found, and the others become live.

    :param job_id: the last that died.
    """

    backfill_id: str = ""
    job_id: str = ""
    verb = "isolate"


@dataclass(frozen=True)
class Abandon(Action):
    """The app of a backfill of one table died several times in a row: the table stalls, with the app's last error.

    :param deaths: how often in a row. :param job_id: the last that died.
    """

    backfill_id: str = ""
    job_id: str = ""
    deaths: int = 0
    verb = "abandon"


@dataclass(frozen=True)
class Arm(Action):
    """Let tables converge: they join at the first tick that begins where they stand."""

    source_id: str = ""
    verb = "arm"


@dataclass(frozen=True)
class Wait(Action):
    """It should run and is not started yet."""

    seconds: float = 0.0
    verb = "wait"


@dataclass(frozen=True)
class RemoveTable(Action):
    table: DroppedTable = field(default_factory=lambda: DroppedTable("", "", ()))
    verb = "remove"


@dataclass(frozen=True)
class RemoveJournal(Action):
    journal: DroppedJournal = field(default_factory=lambda: DroppedJournal(JournalId(""), ""))
    verb = "remove"


@dataclass(frozen=True)
class Tidy(Action):
    """Remove an ended job's scratch, or its whole folder once its log is an old one."""

    job_id: str = ""
    whole: bool = False
    verb = "tidy"
