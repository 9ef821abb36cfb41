"""A slice of a table's change stream: what a task of a data interval gets. Whoever asks again gets the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.control.catalog.objects.hold_rows import find_hold
from airflow_provider_mzshare.control.lifecycle.change_stream import Asked, open_changes
from airflow_provider_mzshare.control.lifecycle.holding import hold_table
from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.errors import NotReadable, StalePlan, TerminalError
from airflow_provider_mzshare.hooks.mzshare import MzShareHook
from airflow_provider_mzshare.storage.collections.summing import DIFF

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass
class Slice:
    """What happened in a table at the times ``start <= mz_timestamp < end``, in milliseconds. ``open`` it.

    The slices of intervals that meet are disjoint, and nothing is missing between them.

    :param table: its name. :param table_id: another table may have the name later; that has other changes.
    :param snapshot: give the rows as of the last moment before ``end`` instead. They take the place of all slices
        before, and the slice that begins at ``end`` goes on from them.
    :param changes: how many rows the slice has given. :param inserts: how many table rows came by them, and
        :param deletes: how many went.
    """

    hook: MzShareHook = field(repr=False)
    table: str
    table_id: ItemId
    start: int
    end: int
    snapshot: bool = False
    columns: Sequence[str] | None = None
    system_columns: bool = False
    changes: int = 0
    inserts: int = 0
    deletes: int = 0

    @contextmanager
    def open(self, *, snapshot: bool | None = None) -> Iterator[pa.RecordBatchReader]:
        """The changes, a batch at a time: ``mz_timestamp``, ``mz_diff`` (how often the row comes, or with a minus
        goes), then the table's columns. With a snapshot each ``mz_diff`` is positive.

        :param snapshot: instead of what the slice says.
        """
        if snapshot is not None:
            self.snapshot = snapshot
        self.changes = self.inserts = self.deletes = 0
        first = self.end - 1 if self.snapshot else self.start
        asked = Asked(first, self.end, self.snapshot, False, self.columns, self.system_columns)
        try:
            with open_changes(self.hook.catalog, self.hook.settings.warehouse, self.table, asked) as batches:
                self._check_table()
                yield pa.RecordBatchReader.from_batches(batches.schema, self._counted(batches))
        except NotReadable as error:
            raise self._placed(error) from error

    @contextmanager
    def hold(self, name: str, *, limit: float, holder: str) -> Iterator[None]:
        """Keep the table's history: until the end what the slice needs, and afterwards what the next one needs.

        A hold that stands further on, because a run was cleared, stays where it is.

        :param name: by which runs find it. :param limit: seconds that may pass between two of them.
        """
        with hold_table(
            self.hook.catalog, self.table, at=self._hold_at(name), name=name, limit=limit, keep=True, holder=holder
        ) as hold:
            yield
            if hold.at < self.end - 1:
                hold.move(self.end - 1)

    def _hold_at(self, name: str) -> int | None:
        """Where a new hold begins; None where one stands. Only what is there can be held."""
        with self.hook.catalog.read() as session:
            found = find_hold(session, name)
        if found is not None and found.dropped_at is None:
            return None
        before = self.start - 1
        return self.end - 1 if self.snapshot or before < self.hook.table(self.table).since else before

    def to_json(self) -> dict[str, Any]:
        names = ("table", "table_id", "start", "end", "snapshot", "changes", "inserts", "deletes")
        return {name: getattr(self, name) for name in names}

    def _check_table(self) -> None:
        """A retry gets the slice of whatever table has the name then."""
        if self.hook.table(self.table).id != self.table_id:
            raise StalePlan(
                f"a slice of {self.table}", ["another table has the name now"], hint="the next try reads it"
            )

    def _counted(self, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            diffs = batch.column(DIFF)
            came = pc.sum(pc.max_element_wise(diffs, 0), min_count=0).as_py()
            self.changes += batch.num_rows
            self.inserts += came
            self.deletes += came - pc.sum(diffs, min_count=0).as_py()
            yield batch

    def _placed(self, error: NotReadable) -> NotReadable:
        """With the slice as people name times, unless it was another table that could not be read."""
        self._check_table()
        since = self.hook.table(self.table).since
        message = f"{error.message}; the slice is from {told(self.start)} to {told(self.end)}"
        hints = [error.hint] if error.hint else []
        if since:
            message += f", and {self.table} can be read since {told(since)}"
        if not self.snapshot and self.start <= since:
            hints.append("with snapshot='first' or True an interval that ends later gives all rows, to go on from")
        return NotReadable(message, hint="; ".join(hints))


def told(milliseconds: int) -> str:
    """As Airflow shows times."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def milliseconds(what: str, value: datetime | int | str) -> int:
    """A time, a number of milliseconds, or either as text, because a template renders to text.

    Of a time between two milliseconds the one before counts: so intervals that meet go on meeting.
    """
    if isinstance(value, str):
        value = _parsed(what, value.strip())
    if isinstance(value, datetime) and value.tzinfo is None:
        raise _not_a_time(what, value)
    return arguments.moment(what, value)


def _parsed(what: str, text: str) -> datetime | int:
    if text.removeprefix("-").isdigit():
        return int(text)
    try:
        return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise _not_a_time(what, text) from None


def _not_a_time(what: str, value: object) -> TerminalError:
    return TerminalError(f"{what} is {str(value)!r}: it takes a time with a zone, or milliseconds since 1970")
