"""Connectors: what control and the apps need of an upstream, whatever its kind. Reading rows is Spark's part.

Travels to Spark's executors with the connectors that read there, so nothing but the standard library is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from airflow_provider_mzshare.connectors.places import Place
    from airflow_provider_mzshare.core.ids import JournalId
    from airflow_provider_mzshare.core.journal.stores import JournalStore
    from airflow_provider_mzshare.core.positions import Position
    from airflow_provider_mzshare.core.specs import ColumnSpec, Start


REQUEST_SECONDS = 10.0
"""How long one question to an upstream may take, unless somebody says otherwise."""

THIN_RECORDS, THIN_BYTES = 20_000, 16 << 20
"""As much is read, decoded and written by the driver in less time than Spark needs for a job."""
WIDE_PARTITIONS, WIDE_RECORDS = 16, 100
"""Spark's reader of a partition takes 14 ms before its first record; one client gets 100 records in a tenth of that."""


def is_thin(partitions: int, records: int) -> bool:
    """Whether a range has few records, or few in each of many partitions."""
    return records <= THIN_RECORDS or (partitions >= WIDE_PARTITIONS and records <= WIDE_RECORDS * partitions)


@dataclass(frozen=True)
class ReferenceInfo:
    """Something that can be exported from an upstream, as it is there now.

    :param namespace: the schema it is in; None for upstreams that have none.
    :param columns: its own columns; None where the upstream does not know of any and a format must say.
    :param keys: the columns that tell its rows apart; empty where there are none.
    :param partitions: which of the upstream's partitions carry it; empty is all of them, also those still to come.
    :param database: what may stand in front of its schema; None where nothing may.
    :param text_only: columns that can only be read as text, each with its type upstream. Among ``columns`` too.
    :param unfit: why no table can be made from it, as a clause; empty if one can.
    :param remedy: what can be done about that.
    """

    namespace: str | None
    name: str
    columns: tuple[ColumnSpec, ...] | None = None
    keys: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    database: str | None = None
    text_only: tuple[tuple[str, str], ...] = ()
    unfit: str = ""
    remedy: str = ""


class Described(Protocol):
    """An upstream as it is now."""

    @property
    def incarnation(self) -> str:
        """Which upstream this is, beyond its name: it changes when the thing is made anew."""
        ...

    @property
    def partitions(self) -> tuple[int, ...]: ...


@dataclass(frozen=True)
class Parts:
    """A range that tasks read by themselves: its records do not pass through Spark.

    :param texts: one for each task. :param read: what a task calls with its text. It travels to the task.
    """

    texts: tuple[str, ...]
    read: Callable[[str], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Inspection:
    """What CREATE SOURCE keeps of an upstream it has checked."""

    info: Described
    start: Position


@dataclass(frozen=True)
class Compaction:
    """An upstream that removes a record when a later one of its key replaces it, and a key's delete some time later.

    :param kept_ms: for how long it keeps a delete at least, from the moment at which it removes what was before it.
    :param lag_ms: how old a record is at least before any of that happens.
    """

    kept_ms: int
    lag_ms: int = 0


class Upstream(Protocol):
    """The questions one can ask. Each call is bounded in time and raises errors of ours only."""

    def inspect(self, start: Start) -> Inspection:
        """Everything that must hold before a source is created: reachable, there, readable."""
        ...

    def describe(self) -> Described: ...

    def references(self) -> tuple[ReferenceInfo, ...]:
        """All that can be exported now, always in the same order."""
        ...

    def check_readable(self) -> None:
        """Raise ``NotAuthorized`` where it may be described but not read."""
        ...

    def check_identity(self, incarnation: str) -> None:
        """Raise ``UpstreamChanged`` unless it is still the one the log was read from. Cheap: asked at every tick."""
        ...

    def check_history(self, lower: Position) -> None:
        """Raise ``UpstreamChanged`` if anything from ``lower`` on can no longer be read."""
        ...

    def compaction(self) -> Compaction | None:
        """How it compacts now; None where it does not. ``NotAuthorized`` where that may not be asked."""
        ...

    def begin_offsets(self) -> Position: ...

    def end_offsets(self) -> Position:
        """The end that a reader can reach now: only committed data counts."""
        ...

    def resolve_start(self, start: Start) -> Position: ...

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        """Mean bytes of a record of ``[lower, upper)``, by partition, from a look at a few; not all have one."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Upstream: ...

    def __exit__(self, *exc: Any) -> None: ...


class Reader(Protocol):
    """Reads an upstream with Spark, as rows with the columns of ``input_schema(place)``."""

    @property
    def place(self) -> Place:
        """The place of the upstream's records."""
        ...

    def stream(self, start: Position, partitions: Sequence[int], max_records: int) -> DataFrame:
        """A stream from ``start`` on, at most so many records per batch; ``partitions`` are all that exist now."""
        ...

    def bounded(self, lower: Position, upper: Position, *, tasks: int | None = None) -> DataFrame | None:
        """Exactly ``[lower, upper)``; None when there is nothing in it.

        :param tasks: how many readers share a long range, should there be fewer partitions.
        """
        ...

    def parts(self, lower: Position, upper: Position, tasks: int) -> Parts | None:
        """``[lower, upper)`` for tasks that read by themselves; None where Spark reads: as a stream, or ``bounded``."""
        ...

    def read_thin(self, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """``[lower, upper)`` without Spark, as batches of ``INPUT_SCHEMA``, where a Spark job would cost far more than
        these records are worth; None where it would not. None for an empty range says that it never would; of an
        upstream that is recorded, that no tick is begun so: where one may end, its stream knows.
        """
        ...

    def read_apart(self, error: Exception, lower: Position, upper: Position) -> Iterator[pa.RecordBatch] | None:
        """``[lower, upper)`` without Spark, as batches of the ``input_schema``, if a record stopped Spark's read.

        :param error: what the read failed with; None is the answer when that has another cause.
        """
        ...

    def batch_range(self, checkpoint: Path, batch_id: int, start: Position) -> tuple[Position, Position]:
        """The range that a batch reads, from the log that Spark wrote before it ran: rows do not show holes or markers.

        :param start: the start of the query, where its first batch begins.
        """
        ...

    def close(self) -> None: ...


class Records(Protocol):
    """Reads records again apart from Spark, for checks. Use it from one thread, as a context."""

    def read(self, lane: Any, lower: int, upper: int) -> Iterator[pa.RecordBatch]:
        """The records of ``[lower, upper)`` of a lane in order, as batches of the place's ``input_schema``."""
        ...

    def excuse(self) -> str | None:
        """Why a record that was once there may be gone; None if that cannot happen."""
        ...

    def __enter__(self) -> Records: ...

    def __exit__(self, *exc: Any) -> None: ...


@dataclass(frozen=True)
class Journals:
    """Where journals are: their state in a catalog, their files in a warehouse.

    :param warehouse: empty where nobody reads them.
    """

    open: Callable[[JournalId], JournalStore]
    warehouse: str = ""


@dataclass(frozen=True)
class SnapshotRange:
    """The part of a reference that one task reads.

    :param part: which part, in words of the connector. It travels to the executor.
    :param rows: how many there are, roughly.
    """

    reference: str
    part: str
    rows: int = 0


@dataclass(frozen=True)
class SnapshotTaken:
    """A snapshot of an upstream's tables, which can be read as long as its keeper lives.

    :param p: a place of the log: whatever was committed before is in the snapshot.
    :param h: another: whatever is in the snapshot was committed before. In between, ``seen`` tells.
    :param seen: which transactions it has, as text in words of the connector: ``xmin:xmax:xip``.
    :param ranges: each row of it is in exactly one of them.
    """

    p: int
    h: int
    seen: str
    ranges: tuple[SnapshotRange, ...]


class Keeper(Protocol):
    """Holds a snapshot open. What was read counts only if, after all was read, it says that the snapshot is durable."""

    @property
    def taken(self) -> SnapshotTaken: ...

    def check(self) -> None:
        """Raise ``SnapshotLost`` unless it is still there."""
        ...

    def is_flushed(self) -> bool:
        """Whether all that it has outlives a crash of the upstream. ``SnapshotLost`` if it is not there any more."""
        ...

    def close(self) -> None: ...


RangeReader = Callable[[str], "Iterator[pa.RecordBatch]"]
"""Reads a part, as batches of rows of its reference with the operation ``r``. Travels to executors. ``SnapshotLost``
where the snapshot is gone, or where the reference has another file than it had, since snapshots do not hide that."""


class Snapshots(Protocol):
    """An upstream whose tables hold what its log does not: all that was there before the log."""

    def take(
        self, references: Sequence[str], p: int, *, waits: Callable[[str], None], stop: Callable[[], bool]
    ) -> Keeper | None:
        """A snapshot that has all that was committed before ``p``; None if it was told to stop.

        :param waits: told now and then what it waits for. :param stop: asked now and then.
        """
        ...

    def range_reader(self, taken: SnapshotTaken) -> RangeReader: ...


class Connector(Protocol):
    """One source's way to its upstream."""

    def upstream(self, *, timeout: float = REQUEST_SECONDS) -> Upstream: ...

    def reader(self, spark: Any) -> Reader: ...

    def records(self) -> Records:
        """For a check that reads the source again, apart from Spark."""
        ...


@dataclass(frozen=True)
class Told:
    """What an upstream that cannot be read twice has told since it was read last, to be written into its journal.

    :param messages: with the schema of a journal's messages; their positions do not fall. May be none.
    :param boundary: the upstream tells nothing below it any more, and a tick may end there; None: as before.
    :param prologue: what these messages and all after them need to be decoded; None: what was told last. They begin a
        segment.
    """

    messages: pa.RecordBatch
    boundary: int | None = None
    prologue: bytes | None = None


class Feed(Protocol):
    """An upstream's changes from a boundary on, once each. All that is told after the last boundary belongs to one
    transaction, whose end is not told yet. For one thread, as a context."""

    def read(self, seconds: float) -> Told | None:
        """What came, as soon as there is some; None: nothing within so many seconds.

        Raises ``UpstreamChanged`` where it can never go on, and a TransientError where a new feed may.
        """
        ...

    def confirm(self, position: int) -> None:
        """Everything below it is read by nobody any more: the upstream may forget it."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Feed: ...

    def __exit__(self, *exc: Any) -> None: ...


@runtime_checkable
class RecordedConnector(Connector, Protocol):
    """Of an upstream that cannot be read twice: the app beside it writes down what it tells."""

    @property
    def journal(self) -> JournalStore:
        """Where it is written down."""
        ...

    def feed(self, after: int | None) -> Feed:
        """From the last boundary that was written down; None: nothing was, and the upstream is made ready for it.

        Raises ``UpstreamChanged`` where it cannot tell everything from there on.
        """
        ...


class LeavingConnector(Connector, Protocol):
    """Of a kind that is recorded: the upstream keeps something for the source until somebody takes that away."""

    def release(self) -> str:
        """Take away what is there for a source that was dropped, and say what that was; empty if there was nothing."""
        ...


class SnapshotConnector(Connector, Protocol):
    """Of a kind that is recorded: its log begins where somebody began to read it."""

    def snapshots(self) -> Snapshots: ...
