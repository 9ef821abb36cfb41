"""What a real server must be before it is read, and what makes a source that reads it stall."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mzshare.connectors.connections import Connection
from airflow_provider_mzshare.connectors.postgres import slot
from airflow_provider_mzshare.connectors.postgres.checks import UpstreamUnfit
from airflow_provider_mzshare.connectors.postgres.clients import PostgresConfig, connect
from airflow_provider_mzshare.connectors.postgres.identity import Identity
from airflow_provider_mzshare.connectors.postgres.upstream import PostgresUpstream
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from airflow_provider_mzshare.errors import (
    BadConnection,
    NotAuthorized,
    ReferenceMissing,
    UpstreamChanged,
    UpstreamUnreachable,
)
from tests.support.postgres import Postgres
from tests.support.upstream_postgres import PUBLICATION, Database, upstream_database, upstream_server


def connection_to(port: int, **fields: Any) -> Connection:
    return Connection("shop", "postgres", host="127.0.0.1", port=port, **fields)


def opened(
    database: Database, *, publication: str = PUBLICATION, connection: Connection | None = None
) -> PostgresUpstream:
    spec = database.spec(publication)
    upstream = kind_of(spec).connect(spec, connection or database.connection(), None).upstream(timeout=5)
    assert isinstance(upstream, PostgresUpstream)
    return upstream


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A server whose settings the test changes."""
    with upstream_server() as server:
        yield server


def test_a_server_that_is_ready_is_taken(upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id int PRIMARY KEY)")
    upstream.publish("t")
    before = upstream.value("SELECT pg_current_wal_flush_lsn() - '0/0'")
    with opened(upstream) as asked:
        found = asked.inspect(Start())
        identity = Identity.read(found.info.incarnation)
        asked.check_identity(found.info.incarnation)
        asked.check_readable()
        asked.check_history(found.start)
    assert identity.system == int(upstream.value("SELECT system_identifier::text FROM pg_control_system()"))
    assert identity.database == upstream.value("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
    assert identity.timeline == 1
    assert found.start["lsn"] >= before
    assert upstream.slots() == []


def test_the_end_moves_with_what_is_committed(upstream: Database) -> None:
    upstream.run("CREATE TABLE t (id int PRIMARY KEY)")
    with opened(upstream) as asked:
        before = asked.end_offsets()
        upstream.run("INSERT INTO t VALUES (1)")
        after = asked.end_offsets()
    assert after["lsn"] > before["lsn"]


def test_a_connection_goes_on_after_the_server_was_away(own_server: Postgres) -> None:
    database = Database(own_server)
    with opened(database) as asked:
        incarnation = asked.describe().incarnation
        own_server.crash()
        with pytest.raises(UpstreamUnreachable, match="cannot be reached"):
            asked.describe()
        with pytest.raises(UpstreamUnreachable):
            asked.end_offsets()
        own_server.start()
        asked.check_identity(incarnation)
        own_server.crash()
        own_server.start()
        asked.check_identity(incarnation)


def test_nobody_answers(upstream: Database) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = connection_to(free.getsockname()[1])
    with opened(upstream, connection=nowhere) as asked, pytest.raises(UpstreamUnreachable, match="cannot be reached"):
        asked.inspect(Start())


def test_a_server_that_does_not_answer_in_time(upstream: Database) -> None:
    upstream.publish()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        connection = connection_to(silent.getsockname()[1], extra={"connect_timeout": 2})
        with opened(upstream, connection=connection) as asked, pytest.raises(UpstreamUnreachable):
            asked.describe()


def test_a_database_that_is_not_there(upstream: Database) -> None:
    wrong = connection_to(upstream.server.port, login=upstream.user, schema="no")
    with opened(upstream, connection=wrong) as asked, pytest.raises(BadConnection, match="has no database 'no'"):
        asked.inspect(Start())


def test_a_user_that_is_not_there(upstream: Database) -> None:
    wrong = connection_to(upstream.server.port, login="nobody_here", schema=upstream.name)
    with opened(upstream, connection=wrong) as asked, pytest.raises(NotAuthorized, match="nobody_here"):
        asked.inspect(Start())


def test_a_wrong_password(own_server: Postgres) -> None:
    database = Database(own_server)
    database.run("CREATE ROLE locked LOGIN REPLICATION PASSWORD 'right'")
    rules = own_server.folder / "data" / "pg_hba.conf"
    rules.write_text("host all locked 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    database.run("SELECT pg_reload_conf()")
    for password in ("wrong", None):
        wrong = connection_to(
            own_server.port,
            login="locked",
            password=password,
            schema=database.name,
        )
        with (
            opened(database, connection=wrong) as asked,
            pytest.raises(NotAuthorized, match="refused the cred") as refused,
        ):
            asked.inspect(Start())
        assert "'shop'" in refused.value.message
        assert "wrong" not in refused.value.message


def test_a_user_without_the_right_to_replicate(upstream: Database) -> None:
    upstream.run("CREATE ROLE plain LOGIN")
    upstream.publish()
    try:
        with opened(Database(upstream.server, upstream.name, user="plain")) as asked:
            with pytest.raises(NotAuthorized, match=r"'plain' .* has no right to replicate") as refused:
                asked.inspect(Start())
            upstream.run(refused.value.hint.partition(";")[0])
            asked.inspect(Start())
    finally:
        upstream.run("DROP ROLE plain")


def test_the_right_as_amazon_gives_it(upstream: Database) -> None:
    upstream.run("CREATE ROLE rds_replication", "CREATE ROLE tenant LOGIN", "GRANT rds_replication TO tenant")
    upstream.publish()
    try:
        with opened(Database(upstream.server, upstream.name, user="tenant")) as asked:
            asked.inspect(Start())
    finally:
        upstream.run("DROP ROLE tenant", "DROP ROLE rds_replication")


def test_a_publication_that_is_not_there_with_one_that_is_like_it(upstream: Database) -> None:
    upstream.publish(name="orders_pub")
    with opened(upstream, publication="order_pub") as asked, pytest.raises(ReferenceMissing) as missing:
        asked.inspect(Start())
    assert "'order_pub' does not exist" in missing.value.message
    assert "'orders_pub'" in missing.value.hint


def test_a_publication_that_leaves_something_out(upstream: Database) -> None:
    upstream.run(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES WITH (publish = 'insert, delete')")
    with opened(upstream) as asked:
        with pytest.raises(UpstreamUnfit, match="leaves out update, truncate") as found:
            asked.inspect(Start())
        upstream.run(found.value.hint)
        asked.inspect(Start())


def test_a_server_that_does_not_write_enough_of_changes(own_server: Postgres) -> None:
    database = Database(own_server)
    database.publish()
    own_server.configure(wal_level="replica")
    with opened(database) as asked, pytest.raises(UpstreamUnfit, match="wal_level replica") as found:
        asked.inspect(Start())
    assert "ALTER SYSTEM SET wal_level = logical" in found.value.hint


def test_a_server_without_room_for_a_slot(own_server: Postgres) -> None:
    database = Database(own_server)
    database.publish()
    own_server.configure(max_replication_slots="1")
    database.run("SELECT pg_create_logical_replication_slot('somebody', 'pgoutput')")
    with opened(database) as asked:
        with pytest.raises(UpstreamUnfit, match="1 of 1 replication slots are in use") as found:
            asked.inspect(Start())
        assert "max_replication_slots" in found.value.hint
        database.run("SELECT pg_drop_replication_slot('somebody')")
        asked.inspect(Start())
    own_server.configure(max_wal_senders="0")
    with opened(database) as asked, pytest.raises(UpstreamUnfit, match="0 of 0 senders"):
        asked.inspect(Start())


def test_a_standby_is_refused(own_server: Postgres) -> None:
    database = Database(own_server)
    database.publish()
    own_server.stop()
    signal = Path(own_server.folder / "data" / "standby.signal")
    signal.touch()
    own_server.start()
    with opened(database) as asked, pytest.raises(UpstreamUnfit, match="is a standby"):
        asked.inspect(Start())


# ── another upstream in its place ─────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_took_over_is_another_one(own_server: Postgres) -> None:
    database = Database(own_server)
    with opened(database) as asked:
        before = asked.describe().incarnation
        own_server.stop()
        (own_server.folder / "data" / "standby.signal").touch()
        own_server.start()
        database.run("SELECT pg_promote()")
        with pytest.raises(UpstreamChanged, match="timeline is now 2, but this source read 1") as changed:
            asked.check_identity(before)
    assert changed.value.reason == "timeline_changed"


def test_a_database_that_was_made_anew_is_another_one(upstream: Database) -> None:
    with opened(upstream) as asked:
        before = asked.describe().incarnation
    upstream.server.drop_database(upstream.name)
    with upstream.server.connect() as connection:
        connection.execute(f'CREATE DATABASE "{upstream.name}"'.encode())
    with opened(upstream) as asked, pytest.raises(UpstreamChanged, match="its oid is now") as changed:
        asked.check_identity(before)
    assert changed.value.reason == "database_recreated"


def test_a_server_that_was_set_up_anew_is_another_one(upstream: Database) -> None:
    with opened(upstream) as asked:
        before = asked.describe().incarnation
    with (
        upstream_server() as other,
        upstream_database(other) as database,
        opened(database) as asked,
        pytest.raises(UpstreamChanged, match="its system identifier is now") as changed,
    ):
        asked.check_identity(before)
    assert changed.value.reason == "server_changed"


# ── slots ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_is_made_looked_at_and_dropped(upstream: Database) -> None:
    name = "mzshare_0123456789abcdef"
    upstream.run("SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')")
    with upstream.connect() as session:
        assert slot.look(session, name) is None
        point = slot.make(session, name)
        found = slot.look(session, name)
        assert found is not None
        assert (found.plugin, found.database, found.status, found.pid) == ("pgoutput", upstream.name, "reserved", None)
        assert found.confirmed == point
        assert found.restart <= point
        assert [each.name for each in slot.ours(session)] == [name]
        assert slot.drop(session, name)
        assert not slot.drop(session, name)
    assert upstream.slots() == ["theirs"]


def test_a_look_at_a_connection_tells_of_our_slots(upstream: Database) -> None:
    reach = kind_of(upstream.spec()).reach
    upstream.run("SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')")
    assert reach(upstream.connection()).endswith(f"answers: '{upstream.name}'")
    with upstream.connect() as session:
        slot.make(session, "mzshare_0123456789abcdef")
    assert "; 1 slot(s) of mzshare keep 0 MiB of its log" in reach(upstream.connection())


def test_a_slot_that_is_read_is_dropped_with_its_reader(upstream: Database) -> None:
    upstream.publish()
    name = "mzshare_0123456789abcdef"
    with upstream.connect() as session:
        slot.make(session, name)
        reader = connect(PostgresConfig.from_connection(upstream.connection()), "test", replication=True)
        command = f"START_REPLICATION SLOT {name} LOGICAL 0/0 (proto_version '1', publication_names '{PUBLICATION}')"
        reader.pgconn.send_query(command.encode())
        reader.pgconn.get_result()
        found = slot.look(session, name)
        assert found is not None
        assert found.pid
        assert slot.drop(session, name)
        assert slot.look(session, name) is None
        reader.close()


def test_a_lost_slot_is_told(own_server: Postgres) -> None:
    own_server.configure(max_slot_wal_keep_size="1MB", max_wal_size="32MB", min_wal_size="32MB")
    database = Database(own_server)
    name = "mzshare_0123456789abcdef"
    with database.connect() as session:
        slot.make(session, name)
        session.execute("CREATE TABLE t (x text)")
        for _ in range(4):
            session.execute("INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
            session.execute("SELECT pg_switch_wal()")
            session.execute("CHECKPOINT")
        found = slot.look(session, name)
    assert found is not None
    assert found.lost


def test_history_of_a_source_that_has_read_nothing_is_there(upstream: Database) -> None:
    with opened(upstream) as asked:
        asked.check_history(Position({"lsn": 1}))


def test_errors_are_one_sentence_and_a_next_step(upstream: Database) -> None:
    with opened(upstream, publication="nothing") as asked, pytest.raises(ReferenceMissing) as missing:
        asked.inspect(Start())
    line = r"publication 'nothing' does not exist in database '\w+'\. Try: CREATE PUBLICATION .+"
    assert re.fullmatch(line, missing.value.line)
