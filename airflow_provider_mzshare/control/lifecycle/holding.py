"""Holds a table's history while somebody reads it: a context with a heartbeat, and what a hold looks like to people."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from uuid import uuid4

from sqlalchemy.orm import Session

from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.database.clock import database_ms
from airflow_provider_mzshare.control.catalog.log.holds import HoldStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.objects.hold_rows import list_holds
from airflow_provider_mzshare.control.lifecycle.typed_names import find_table
from airflow_provider_mzshare.core import arguments
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.ticklog.holds import Hold, HoldEnded, HoldRefused, Wanted
from airflow_provider_mzshare.errors import MzShareError, TransientError

LIMIT_SECONDS = 3_600.0
_BEATS = 4
"""Heartbeats within a limit, so that one that fails loses nothing."""
_LONGEST_PAUSE = 60.0


class ReadHold:
    """A hold that is being kept. The table can be read from ``at`` on while this context is open.

    :param keep: leave the hold where it is when the context ends; it is dropped after its limit.
    """

    def __init__(self, store: HoldStore, hold: Hold, table: str, *, keep: bool) -> None:
        self.table, self.keep = table, keep
        self._store, self._hold = store, hold
        self._lost: Exception | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"hold {hold.name}", daemon=True)

    @property
    def name(self) -> str:
        return self._hold.name

    @property
    def at(self) -> int:
        return self._hold.at

    def move(self, at: int | datetime) -> None:
        """What is before ``at`` may go, and who comes back to this hold goes on there. Counts as a heartbeat."""
        self.check()
        self._hold = self._store.move(self.name, self._hold.claim, arguments.moment("at", at))

    def check(self) -> None:
        """Raise HoldLost if a heartbeat has found that the hold was dropped, or that somebody else has it.

        After the end of the context nobody looks any more: then it is HoldEnded.
        """
        self._check_had()
        if self._done.is_set():
            raise HoldEnded(self._hold, self.table, kept=self.keep)

    def _check_had(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _beat(self) -> None:
        pause = min(self._hold.limit_ms / 1000 / _BEATS, _LONGEST_PAUSE)
        while not self._done.wait(pause):
            try:
                self._store.refresh(self.name, self._hold.claim)
            except TransientError:
                continue  # The limit is for this, too: the catalog may be away for a while.
            except Exception as error:  # noqa: BLE001  Whatever it is, the holder is to know that nobody beats.
                self._lost = error
                return

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop the heartbeat, and release the hold or leave it. Raises HoldLost if it was not had all the time."""
        self._stop()
        self._check_had()
        if self.keep:
            self._store.refresh(self.name, self._hold.claim)
        else:
            self._store.release(self.name, self._hold.claim)

    def end_quietly(self) -> None:
        """The same after an error, which is what counts."""
        with suppress(MzShareError):
            self.end()

    def _stop(self) -> None:
        self._done.set()
        self._thread.join()


@contextmanager
def hold_table(
    catalog: Catalog,
    table: str,
    *,
    at: int | None = None,
    name: str | None = None,
    limit: float = LIMIT_SECONDS,
    keep: bool = False,
    holder: str | None = None,
) -> Iterator[ReadHold]:
    """Hold ``since`` of a table back: what is at or after ``at`` stays readable while the context is open.

    :param at: None: where the hold of this name stands, or else the table's newest time.
    :param name: by which the hold is found again after a restart; None: a new one.
    :param limit: seconds without a heartbeat after which the hold is dropped.
    :param keep: do not release it at the end. It needs a name then.
    :param holder: who holds, as people should see it; by default this process.
    """
    store, item = HoldStore(catalog), find_table(catalog, table)
    if keep and name is None:
        raise HoldRefused("a hold that is kept needs a name, by which its holder finds it again")
    wanted = Wanted(
        name=f"hold-{uuid4().hex[:12]}" if name is None else name,
        at=at,
        holder=holder or f"process {os.getpid()} on {socket.gethostname()}",
        claim=uuid4().hex,
        limit_ms=round(limit * 1000),
        named=name is not None,
    )
    hold = ReadHold(store, store.take(item.id, wanted), item.display, keep=keep)
    hold.begin()
    try:
        yield hold
    except BaseException:
        hold.end_quietly()
        raise
    hold.end()


# ── for people ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ShownHold:
    """A hold as status and ``mzshare holds`` show it."""

    name: str
    table: str
    at: int
    holder: str
    taken_at: str
    heard_seconds: float
    """How long ago its holder was last heard of."""
    limit_seconds: float
    dropped_at: str | None
    why: str | None

    @property
    def line(self) -> str:
        if self.dropped_at is not None:
            return f"the read hold {self.name!r} at {self.at} was dropped at {self.dropped_at}: {self.why}"
        return (
            f"since cannot pass {self.at}, which the read hold {self.name!r} of {self.holder} has held since "
            f"{self.taken_at} (last heard of {self.heard_seconds:g} s ago, limit {self.limit_seconds:g} s)"
        )


def shown_holds(session: Session, table_ids: list[ItemId] | None = None) -> list[tuple[ItemId, ShownHold]]:
    """With the id of each hold's table."""
    found, now = list_holds(session, table_ids), database_ms(session)
    names = {table_id: items.get_table_item(session, table_id).display for table_id in {h.table_id for h in found}}
    return [(hold.table_id, _shown(hold, names[hold.table_id], now)) for hold in found]


def _shown(hold: Hold, table: str, now: int) -> ShownHold:
    return ShownHold(
        name=hold.name,
        table=table,
        at=hold.at,
        holder=hold.holder,
        taken_at=_time(hold.taken_at),
        heard_seconds=round((now - hold.heartbeat) / 1000, 1),
        limit_seconds=hold.limit_ms / 1000,
        dropped_at=None if hold.dropped_at is None else _time(hold.dropped_at),
        why=hold.why,
    )


def _time(milliseconds: int) -> str:
    """As the relations have it."""
    text = datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
