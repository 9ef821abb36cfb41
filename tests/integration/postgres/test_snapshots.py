"""Snapshots are exact while others write: at every tick from the first readable one on, a table is a prefix of the
stream. That a snapshot and the rest of the stream give the end is no proof: nearly all wrong rules pass that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.base import Keeper
from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig
from airflow_provider_mzshare.connectors.postgres.snapshot import PostgresSnapshots
from airflow_provider_mzshare.connectors.records import ROW
from airflow_provider_mzshare.errors import SnapshotLost, UpstreamChanged
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
    renew,
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
    return [tuple(row.values()) for row in batch.column(ROW).field("after").to_pylist()]


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
    shots = take_many(taker, 15, seed=1)
    log = stream(postgres)
    assert len(shots) == 15
    assert any(shot.p <= one.lsn < shot.h and shot.sees(one.xid) for shot in shots for one in log)
    assert wrong_of(shots, log) == 0
    for rule in ("by positions alone", "no filter"):
        assert wrong_of(shots, log, rule), f"{rule}: not told of"


def test_what_is_streamed_before_it_is_seen(postgres: Postgres) -> None:
    """A synchronous standby confirms late: leaving the barrier out is told of."""
    right = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION))
    hasty = Taker(postgres, Unsettled(config(postgres), PUBLICATION))
    with late_standby(postgres, 5):
        shots = take_many(right, 6, seed=2)
        unsettled = take_many(hasty, 25, seed=3)
    log = stream(postgres)
    assert wrong_of(shots, log) == 0
    assert wrong_of(unsettled, log) > 0


@pytest.mark.full(seconds=900)
@pytest.mark.timeout(3000)
def test_two_thousand_snapshots(postgres: Postgres) -> None:
    """With and without a standby that confirms late, and tables that are truncated."""
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION, blocks=1))
    taken, told = 0, dict.fromkeys(WRONG, 0)
    for seed in range(40):
        with late_standby(postgres, seed, longest=0.2) if seed % 2 else nullcontext():
            shots = take_many(taker, 55, seed, truncates=seed % 4 == 0)
        log = stream(postgres)
        taken += len(shots)
        assert wrong_of(shots, log) == 0, f"seed {seed}"
        for rule in WRONG:
            told[rule] += wrong_of(shots, log, rule)
        renew(postgres)
    print(f"{taken} snapshots, none wrong; by other rules: {told}")
    assert taken >= 2000
    assert all(told.values()), told


def test_who_was_under_way_is_waited_for(postgres: Postgres) -> None:
    snapshots, told = PostgresSnapshots(config(postgres), PUBLICATION), []
    taker = Taker(postgres, snapshots)
    with postgres.connect() as open_one, ThreadPoolExecutor(1) as pool:
        open_one.autocommit = False
        open_one.execute("INSERT INTO bag VALUES (1, 'under way')")
        stop = threading.Event()
        future = pool.submit(snapshots.take, taker.oids(), 1, waits=told.append, stop=stop.is_set)
        wait_until(lambda: told, 20, "it says what it waits for")
        assert f"process {open_one.info.backend_pid}" in told[0]
        stop.set()
        assert future.result(20) is None
        future = pool.submit(snapshots.take, taker.oids(), 1, waits=told.append, stop=lambda: False)
        open_one.commit()
        keeper = future.result(20)
        assert keeper is not None
        keeper.close()


def test_a_snapshot_whose_keeper_is_gone_is_lost(postgres: Postgres) -> None:
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION))
    keeper, _, _ = taker.keeper(taker.oids())
    with postgres.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mzshare snapshot'"
        )
    with pytest.raises(SnapshotLost):
        wait_until(keeper.check, 20, "it finds that its connection has ended")
    read = taker.snapshots.range_reader(keeper.taken)
    with pytest.raises(SnapshotLost):
        list(read(keeper.taken.ranges[0].part))


def test_a_table_that_was_rewritten_since_is_none_of_the_snapshot(postgres: Postgres) -> None:
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION))
    with postgres.connect() as connection:
        connection.execute("INSERT INTO bag SELECT n, 'a' FROM generate_series(1, 5) n")
        keeper, _, _ = taker.keeper(taker.oids())
        connection.execute("TRUNCATE bag")
        read = taker.snapshots.range_reader(keeper.taken)
        with pytest.raises(SnapshotLost, match="truncated or rewritten"):
            [list(read(part.part)) for part in keeper.taken.ranges]
        keeper.close()


def test_each_row_is_in_one_range_and_has_a_number_of_its_own(postgres: Postgres) -> None:
    with postgres.connect() as connection:
        connection.execute("INSERT INTO bag SELECT n, repeat('x', 300) FROM generate_series(1, 5000) n")
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION, blocks=7))
    keeper, _, _ = taker.keeper(taker.oids()[1:])
    read = taker.snapshots.range_reader(keeper.taken)
    batches = [batch for part in keeper.taken.ranges for batch in read(part.part)]
    assert len(keeper.taken.ranges) > 20
    assert sorted(int(row[0] or 0) for batch in batches for row in rows_of(batch)) == list(range(1, 5001))
    assert len({number for batch in batches for number in batch.column("index").to_pylist()}) == 5000
    keeper.close()


def test_a_standby_is_refused(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its snapshots have no list of transactions under way. That of the answer is the only part that is made up."""
    taker = Taker(postgres, PostgresSnapshots(config(postgres), PUBLICATION))
    with postgres.connect() as connection:
        connection.execute("CREATE SCHEMA shadow")
        connection.execute("CREATE FUNCTION shadow.pg_is_in_recovery() RETURNS bool LANGUAGE sql AS 'SELECT true'")
        connection.execute("ALTER DATABASE postgres SET search_path = shadow, pg_catalog, public")
    with pytest.raises(UpstreamChanged, match="is a standby"):
        taker.keeper(["0"])
