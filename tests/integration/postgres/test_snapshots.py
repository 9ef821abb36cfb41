"""Snapshots are exact while others write: at every tick from the first readable one on, a table is a prefix of the
stream. That a snapshot and the rest of the stream give the end is no proof: nearly all wrong rules pass that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.base import Keeper
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig
from airflow_provider_mzshare.connectors.postgres.snapshot import PostgresSnapshots
from airflow_provider_mzshare.errors import SnapshotLost
from tests.support.postgres import OWNER, Postgres
from tests.support.postgres_writers import (
    PUBLICATION,
    TABLES,
    Row,
    Snapshot,
    Transaction,
    full_seen,
    late_standby,
    prepare,
    stream,
    writing,
    wrong_ticks,
)
from tests.support.waiting import wait_until


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    try:
        prepare(server)
        yield server
    finally:
        server.remove()


def config(postgres: Postgres) -> PostgresConfig:
    return PostgresConfig.from_connection(
        Connection("pg", "postgres", host="127.0.0.1", port=postgres.port, login=OWNER, schema="postgres")
    )


class Unsettled(PostgresSnapshots):
    """Leaves the barrier out."""

    def _wait_for_writers(self, waits: object, stop: object) -> bool:
        return True


@dataclass
class Taker:
    postgres: Postgres
    snapshots: PostgresSnapshots

    def oids(self) -> list[str]:
        return [str(self.ask("SELECT %s::regclass::oid::bigint", table)) for table in TABLES]

    def ask(self, query: str, *values: object) -> Any:
        with self.postgres.connect() as connection:
            return (connection.execute(query.encode(), values or None).fetchone() or (None,))[0]

    def position(self, which: str) -> int:
        return int(self.ask(f"SELECT {which}() - '0/0'::pg_lsn"))

    def keeper(self, oids: Sequence[str]) -> tuple[Keeper, int, int]:
        p = self.position("pg_current_wal_flush_lsn")
        before = self.position("pg_current_wal_insert_lsn")
        keeper = self.snapshots.take(oids, p, waits=lambda _: None, stop=lambda: False)
        assert keeper is not None
        return keeper, before, self.position("pg_current_wal_flush_lsn")

    def take(self) -> Snapshot | None:
        """None where it was lost, as it may be while tables are rewritten."""
        oids = self.oids()
        keeper, before, flushed = self.keeper(oids)
        try:
            read = self.snapshots.range_reader(keeper.taken)
            rows: dict[str, list[Row]] = {table: [] for table in TABLES}
            for part in keeper.taken.ranges:
                table = TABLES[oids.index(part.reference)]
                for batch in read(part.part):
                    rows[table] += rows_of(batch)
            wait_until(keeper.is_flushed, 20, "the log is flushed")
        except SnapshotLost:
            return None
        finally:
            keeper.close()
        taken = keeper.taken
        return Snapshot(taken.p, taken.h, full_seen(taken.seen), rows, before, flushed)


def rows_of(batch: Any) -> list[Row]:
    columns = [batch.column(name).to_pylist() for name in batch.schema.names if name != "index"]
    return list(zip(*columns, strict=True))


def take_many(taker: Taker, count: int, seed: int, **writers: Any) -> list[Snapshot]:
    with writing(taker.postgres, seed, **writers):
        return [shot for _ in range(count) if (shot := taker.take())]


Rule = Callable[[Snapshot, Transaction], bool]

WRONG: dict[str, tuple[Rule | None, Callable[[Snapshot], int] | None]] = {
    "by positions alone": (lambda shot, one: one.lsn < shot.h, None),
    "no filter": (lambda shot, one: False, None),
    "readable from P on": (None, lambda shot: shot.p),
    "readable from what was flushed": (None, lambda shot: shot.flushed),
}


def wrong_of(shots: Sequence[Snapshot], log: Sequence[Transaction], rule: str = "") -> int:
    skips, since = WRONG[rule] if rule else (None, None)
    return sum(
        bool(
            wrong_ticks(
                shot, log, since=since(shot) if since else None,
                skips=(lambda one, shot=shot: skips(shot, one)) if skips else None,
            )
        )
        for shot in shots
    )  # fmt: skip


def test_each_snapshot_is_a_prefix_of_the_stream_at_each_tick(postgres: Postgres) -> None:
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION, blocks=1))
    shots = take_many(taker, 30, seed=1)
    log = stream(postgres)
    assert len(shots) == 30
    assert any(one.lsn < shot.h and one.lsn >= shot.p and shot.sees(one.xid) for shot in shots for one in log)
    assert wrong_of(shots, log) == 0
    for rule in ("by positions alone", "no filter"):
        assert wrong_of(shots, log, rule), f"{rule}: not told of"


def test_what_is_streamed_before_it_is_seen(postgres: Postgres) -> None:
    """A synchronous standby confirms late: the rule of positions, and leaving the barrier out, are told of."""
    right = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION))
    hasty = Taker(postgres, Unsettled(config(postgres), PUBLICATION))
    with late_standby(postgres, 5):
        shots = take_many(right, 12, seed=2)
        unsettled = take_many(hasty, 40, seed=3)
    log = stream(postgres)
    assert wrong_of(shots, log) == 0
    assert wrong_of(unsettled, log) > 0
