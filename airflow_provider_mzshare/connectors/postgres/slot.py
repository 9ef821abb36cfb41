"""The replication slot of a source: its name, and what is asked of it. The stream itself is the feed's.

A slot is only made by ``pg_create_logical_replication_slot``: the replication command of the same name also exports a
snapshot, and readers of that have destroyed committed rows on servers without a later correction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors as pg

from airflow_provider_mzshare.connectors.postgres.identity import PREFIX, journal_of_slot
from airflow_provider_mzshare.connectors.postgres.lsn import read_lsn

PLUGIN = "pgoutput"
_LOOKS, _PAUSE = 20, 0.1
"""A reader that is told to end has its slot for a moment longer."""


@dataclass(frozen=True)
class Slot:
    """:param confirmed: below this, the server sends nothing any more. :param restart: from here on it keeps its log.

    :param status: ``reserved``, ``extended``, ``unreserved`` or ``lost``: whether that log is still there.
    :param room: bytes that may be written until the slot is in danger of being lost; None without a limit.
    :param pid: who reads it now.
    """

    name: str
    database: str
    plugin: str
    confirmed: int
    restart: int
    status: str
    room: int | None = None
    pid: int | None = None
    retained: int = 0
    """Bytes of the server's log that it keeps."""

    @property
    def lost(self) -> bool:
        return self.status == "lost"


_LOOK = """
SELECT slot_name, database, plugin, confirmed_flush_lsn, restart_lsn, wal_status, safe_wal_size, active_pid,
       pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn)
FROM pg_replication_slots WHERE slot_type = 'logical' AND {}
"""


def look(session: psycopg.Connection[Any], name: str) -> Slot | None:
    """None if there is no such slot."""
    row = session.execute(_LOOK.format("slot_name = %s").encode(), [name]).fetchone()
    return None if row is None else _slot(row)


def ours(session: psycopg.Connection[Any]) -> Sequence[Slot]:
    """All slots of the connection's database that are called as ours are, whatever catalog they are of."""
    where = "database = current_database() AND left(slot_name, %s) = %s ORDER BY slot_name"
    rows = session.execute(_LOOK.format(where).encode(), [len(PREFIX), PREFIX]).fetchall()
    return [slot for slot in map(_slot, rows) if journal_of_slot(slot.name) is not None]


def make(session: psycopg.Connection[Any], name: str) -> int:
    """Make it, and say from where on it sends: transactions that end later. Waits for the running transactions."""
    row = session.execute("SELECT lsn FROM pg_create_logical_replication_slot(%s, %s)", [name, PLUGIN]).fetchone()
    assert row is not None  # a function that returns one row
    return read_lsn(str(row[0]))


def drop(session: psycopg.Connection[Any], name: str) -> bool:
    """Drop it, and end who reads it; False if there was none. Raises ``ObjectInUse`` if the reader does not end."""
    for left in reversed(range(_LOOKS)):
        session.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active", [name]
        )
        try:
            session.execute("SELECT pg_drop_replication_slot(%s)", [name])
        except pg.UndefinedObject:
            return False
        except pg.ObjectInUse:
            if not left:
                raise
            time.sleep(_PAUSE)
        else:
            return True
    raise AssertionError("the last look returns or raises")


def _slot(row: Sequence[Any]) -> Slot:
    name, database, plugin, confirmed, restart, status, room, pid, retained = row
    return Slot(
        name=str(name),
        database=str(database),
        plugin=str(plugin),
        confirmed=read_lsn(str(confirmed)) if confirmed is not None else 0,
        restart=read_lsn(str(restart)) if restart is not None else 0,
        status=str(status or "lost"),
        room=None if room is None else int(room),
        pid=None if pid is None else int(pid),
        retained=int(retained or 0),
    )
