"""What a transaction leaves to be done at its end, so that what is shown agrees with what was changed.

Printed statements and the history of statuses follow from other rows. Whoever changes those rows says so here, and the
transaction tells the listener before it commits: neither can be forgotten, and neither can be stale. The listener is in
a layer above the catalog; ``control.composition`` registers it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from airflow_provider_mzshare.core.ids import ItemId, JobId

_DEFINITIONS = "mzshare.definitions"
_ITEMS = "mzshare.touched_items"
_JOBS = "mzshare.touched_jobs"


class Listener(Protocol):
    """Keeps up what is shown of the catalog. All of it is called inside the transaction that makes the change."""

    def definitions_changed(self, session: Session) -> Collection[ItemId]:
        """:returns: the ids of all items whose definition has changed."""
        ...

    def statuses_changed(self, session: Session, items: Collection[ItemId], jobs: Collection[JobId]) -> None: ...

    def before_upgrade(self, connection: Connection) -> None:
        """The schema is about to change."""
        ...

    def after_upgrade(self, connection: Connection) -> None:
        """The schema has the version that this code needs."""
        ...


_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Register the listener for all catalogs of this process. It replaces the listener that was there before."""
    _listeners[:] = [listener]


def listener() -> Listener:
    if not _listeners:
        raise RuntimeError("nobody keeps up what this catalog shows: open it with control.composition.open_catalog")
    return _listeners[0]


def definitions_change(session: Session) -> None:
    """Names or specs may change in this transaction."""
    session.info[_DEFINITIONS] = True


def touch(session: Session, item_id: ItemId) -> None:
    """The status of this source or table may have changed."""
    session.info.setdefault(_ITEMS, set()).add(item_id)


def touch_job(session: Session, job_id: JobId) -> None:
    """The same for the source or the tables that this job works for."""
    session.info.setdefault(_JOBS, set()).add(job_id)


def settle(session: Session) -> None:
    touched: set[ItemId] = session.info.pop(_ITEMS, set())
    jobs: set[JobId] = session.info.pop(_JOBS, set())
    if session.info.pop(_DEFINITIONS, False):
        touched.update(listener().definitions_changed(session))
    if touched or jobs:
        listener().statuses_changed(session, touched, jobs)
