"""What must hold of a server, a publication, and a slot: each failure says what to do about it."""

from __future__ import annotations

import difflib
from typing import Any

import psycopg

from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig
from airflow_provider_mzshare.connectors.postgres.identity import Identity
from airflow_provider_mzshare.connectors.postgres.slot import Slot
from airflow_provider_mzshare.errors import NotAuthorized, ReferenceMissing, TerminalError, UpstreamChanged

OLDEST = 14
"""The first major version that is supported: older ones get no corrections any more."""
ACTIONS = ("insert", "update", "delete", "truncate")


class UpstreamUnfit(TerminalError):
    """A server that can be reached, but not read as it is set up."""


_SERVER = """
SELECT pg_is_in_recovery(), current_setting('wal_level'), current_user::text,
       EXISTS (SELECT FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolreplication))
       OR EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(oid, 'USAGE'))
"""
"""``rds_replication`` is how Amazon RDS gives the right."""

_ROOM = """
SELECT (SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots')::int,
       (SELECT count(*) FROM pg_stat_replication), current_setting('max_wal_senders')::int
"""

_PUBLICATION = "SELECT pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication WHERE pubname = %s"


def check_server(session: psycopg.Connection[Any], config: PostgresConfig) -> None:
    version = session.info.server_version
    if version < OLDEST * 10000:
        raise UpstreamUnfit(
            f"Postgres at {config.where} is of version {version // 10000}, but at least {OLDEST} is needed",
            hint="upgrade the server",
        )
    row = session.execute(_SERVER.encode()).fetchone()
    assert row is not None  # a SELECT without FROM
    standby, wal_level, user, may_replicate = row
    if standby:
        raise UpstreamUnfit(
            f"Postgres at {config.where} is a standby, and only a primary can be read",
            hint="a connection to its primary",
        )
    if wal_level != "logical":
        raise UpstreamUnfit(
            f"Postgres at {config.where} has wal_level {wal_level}, which says too little of changes",
            hint="ALTER SYSTEM SET wal_level = logical, then restart the server",
        )
    if not may_replicate:
        raise NotAuthorized(
            f"user {user!r} of Postgres at {config.where} has no right to replicate",
            hint=f"ALTER ROLE {user} REPLICATION; on Amazon RDS, GRANT rds_replication TO {user}",
        )


def check_publication(session: psycopg.Connection[Any], name: str) -> None:
    row = session.execute(_PUBLICATION.encode(), [name]).fetchone()
    if row is None:
        names = [str(found) for (found,) in session.execute("SELECT pubname FROM pg_publication ORDER BY pubname")]
        similar = difflib.get_close_matches(name, names) or names[:3]
        raise ReferenceMissing(
            f"publication {name!r} does not exist in database {session.info.dbname!r}",
            hint=f"perhaps {' or '.join(map(repr, similar))}" if similar else f"CREATE PUBLICATION {name} FOR TABLE …",
        )
    if missing := [action for action, given in zip(ACTIONS, row, strict=True) if not given]:
        raise UpstreamUnfit(
            f"publication {name!r} leaves out {', '.join(missing)}: tables would not be what they are upstream",
            hint=f"ALTER PUBLICATION {name} SET (publish = '{', '.join(ACTIONS)}')",
        )


def check_room(session: psycopg.Connection[Any]) -> None:
    """For one slot more, and who reads it."""
    row = session.execute(_ROOM.encode()).fetchone()
    assert row is not None  # a SELECT without FROM
    slots, max_slots, senders, max_senders = row
    for what, used, most, setting in (
        ("replication slots", slots, max_slots, "max_replication_slots"),
        ("senders of its log", senders, max_senders, "max_wal_senders"),
    ):
        if used >= most:
            raise UpstreamUnfit(
                f"the server has no room for another source: {used} of {most} {what} are in use",
                hint=f"ALTER SYSTEM SET {setting} = {most + 10}, then restart the server, or drop an unused slot",
            )


def check_same(read: Identity, found: Identity) -> None:
    """Raise ``UpstreamChanged`` unless it is the database that a source has read until now."""
    for reason, what, then, now in (
        ("server_changed", "the server is another one: its system identifier", read.system, found.system),
        (
            "timeline_changed",
            "the server was restored, or a standby took over: its timeline",
            read.timeline,
            found.timeline,
        ),
        ("database_recreated", "the database was dropped and created again: its oid", read.database, found.database),
    ):
        if then != now:
            raise UpstreamChanged(reason, f"{what} is now {now}, but this source read {then}")


def check_slot(slot: Slot | None, name: str) -> None:
    """Of a source that has read before: without its slot, nobody knows what it has missed."""
    if slot is None:
        raise UpstreamChanged("slot_missing", f"replication slot {name!r} does not exist any more: changes may be lost")
    if slot.lost:
        raise UpstreamChanged(
            "slot_lost",
            f"replication slot {name!r} is lost: the server has removed changes that were not read yet "
            "(max_slot_wal_keep_size)",
        )
