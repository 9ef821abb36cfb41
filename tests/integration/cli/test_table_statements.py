"""Tables that come later, or come back: the plan says how, and what was planned is what happens."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from airflow_provider_mzshare.connectors.connections import EnvConnections
from airflow_provider_mzshare.control.catalog.database.source_states import get_source, load_state
from airflow_provider_mzshare.control.catalog.log.backfills import active_backfills
from airflow_provider_mzshare.control.lifecycle.table_plans import Backfill, CutOver, StartAtNow, TablePlan
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import SourceSettings
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka
from airflow_provider_mzshare.errors import NotResumable, SpecConflict, UnknownConnection, UnknownItem, UpstreamChanged
from tests.support.kafka import Record, create_topic, delete_records, delete_topic, groups, produce
from tests.support.statements import Session, create_source

if TYPE_CHECKING:
    from tests.integration.cli.conftest import Cli

TABLE = "CREATE TABLE {} FROM SOURCE s FORMAT TEXT;"
STARTS_IT = re.compile(r"\(backfill (b-[0-9a-f]{8}): mzshare start public.s starts it\)$")


def begin(sql: Session, topic: str) -> None:
    """Two partitions with five records each; the source has read three and two of them in one tick."""
    sql.run(create_source(topic) + TABLE.format("t"))
    sql.tick({0: 3, 1: 2})


def backfill_ids(messages: list[str]) -> list[str]:
    return [match[1] for message in messages if (match := STARTS_IT.search(message))]


def the_plan(sql: Session, text: str, *, dry_run: bool = False) -> TablePlan:
    (plan,) = {id(r.plan): r.plan for r in sql.results(text, dry_run=dry_run) if r.plan}.values()
    return plan


def test_tables_of_one_transaction_share_a_backfill_and_others_have_their_own(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    results = sql.results(f"BEGIN; {TABLE.format('a')} {TABLE.format('b')} COMMIT; {TABLE.format('c')}")
    first, second, third = backfill_ids([result.message for result in results])
    assert first == second != third
    assert [(sql.table(name).status, sql.table(name).backfill_id) for name in "abc"] == [
        ("backfilling", first), ("backfilling", first), ("backfilling", third),
    ]  # fmt: skip
    assert results[0].plan is results[1].plan
    assert [result.plan.backfilled for result in results[1:] if result.plan] == [
        ("public.a", "public.b"), ("public.c",),
    ]  # fmt: skip
    with sql.catalog.read() as session:
        found = {b.id: tuple(t.display for t in b.tables) for b in active_backfills(session)}
    assert found == {first: ("a", "b"), third: ("c",)}


def test_a_dry_run_plans_what_then_happens(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    sql.run("ALTER SOURCE s SET (BACKFILL RATE 2)")
    script = f"BEGIN; {TABLE.format('a')} {TABLE.format('b')} COMMIT"
    dry = the_plan(sql, script, dry_run=True)
    assert sql.names() == ["s", "t"]
    assert sql.results(script, dry_run=True)[0].message == "CREATE TABLE public.a (gets a backfill, dry run)"
    backfill = dry.steps[0]
    assert isinstance(backfill, Backfill)
    assert (backfill.history, backfill.first, backfill.last) == ({"0": (0, 3), "1": (0, 2)}, 1, 1)
    assert (backfill.estimate.records, backfill.estimate.partitions, backfill.estimate.seconds) == (5, 2, 2.5)
    assert backfill.estimate.size == 5 * len(b'{"a": 1}')
    real = the_plan(sql, script)
    assert [type(step) for step in real.steps] == [type(step) for step in dry.steps]
    assert real.backfilled == dry.backfilled == ("public.a", "public.b")
    with sql.catalog.read() as session:
        (made,) = active_backfills(session)
    assert (made.history_upper, made.history_tick) == (backfill.upper, backfill.last)
    assert [table.from_position for table in made.tables] == [backfill.lower] * 2


def test_a_dry_run_of_a_script_plans_its_transactions_one_by_one(sql: Session, topic: str) -> None:
    begin(sql, topic)
    results = sql.results(TABLE.format("a") + TABLE.format("b"), dry_run=True)
    assert [result.plan.backfilled for result in results if result.plan] == [("public.a",), ("public.b",)]


def test_without_a_snapshot_a_table_begins_at_now(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    statement = "CREATE TABLE IF NOT EXISTS n FROM SOURCE s FORMAT TEXT WITH (SNAPSHOT = false);"
    (result,) = sql.results(statement)
    assert result.message == "CREATE TABLE public.n u3 (joins at the next tick)"
    assert result.plan == TablePlan("public.s", (StartAtNow(("public.n",), Position({0: 3, 1: 2})),))
    made = sql.table("n")
    assert (made.status, made.start, made.position) == ("created", Position({0: 3, 1: 2}), Position({0: 3, 1: 2}))
    assert sql.run(statement) == ["CREATE TABLE public.n u3 (it exists)"]
    with pytest.raises(SpecConflict, match="SNAPSHOT is false, not true"):
        sql.run(TABLE.format("n").replace("TABLE n", "TABLE IF NOT EXISTS n"))
    shown = str(sql.rows("SHOW CREATE TABLE n")[0]["create_sql"])
    assert shown.endswith("FORMAT TEXT WITH (SNAPSHOT FALSE);")
    sql.run("DROP TABLE n;" + shown)
    sql.tick({0: 4, 1: 2})
    assert (sql.table("n").status, sql.table("n").position) == ("live", Position({0: 4, 1: 2}))


def test_without_a_snapshot_the_first_table_of_a_source_begins_where_the_source_does(sql: Session, topic: str) -> None:
    sql.run(create_source(topic) + TABLE.format("t").replace(";", " WITH (SNAPSHOT = false);"))
    assert (sql.table().status, sql.table().start) == ("created", Position())


def test_history_that_is_gone_is_told_before_anything_is_made(
    sql_on_both: Session, topic: str, kafka: EmbeddedKafka
) -> None:
    sql = sql_on_both
    begin(sql, topic)
    delete_records(kafka, topic, {1: 1})
    for dry_run in (True, False):
        with pytest.raises(UpstreamChanged) as caught:
            sql.run(TABLE.format("late"), dry_run=dry_run)
    assert caught.value.reason == "history_gone"
    assert caught.value.message == (
        f"table 'public.late' cannot get its history: topic '{topic}', partition 1: the next offset to read is 0, but "
        "the log now begins at 1: 1 offsets are gone"
    )
    assert "SNAPSHOT = false" in caught.value.hint
    assert "new source" in caught.value.hint
    assert sql.names() == ["s", "t"]
    sql.run(TABLE.format("late").replace(";", " WITH (SNAPSHOT = false)"))
    sql.run(create_source(topic, "s2") + "CREATE TABLE late2 FROM SOURCE s2 FORMAT TEXT")
    assert sql.source("s2").start == Position({1: 1})


def test_a_topic_made_anew_is_no_history(sql: Session, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [Record(b"x", partition=n % 2) for n in range(10)])
    begin(sql, topic)
    delete_topic(kafka, topic)
    create_topic(kafka, 2, name=topic)
    with pytest.raises(UpstreamChanged, match="created again"):
        sql.run(TABLE.format("late"))
    assert sql.names() == ["s", "t"]


def test_a_stalled_table_is_resumed_and_only_that(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    with pytest.raises(NotResumable, match="it is live: there is nothing to resume"):
        sql.run("ALTER TABLE t RESUME")
    sql.tick({0: 4, 1: 4}, fail=("t",))
    assert (sql.table().status, sql.table().position) == ("stalled", Position({0: 3, 1: 2}))
    dry = the_plan(sql, "ALTER TABLE t RESUME", dry_run=True)
    assert sql.table().status == "stalled"
    (result,) = sql.results("ALTER TABLE t RESUME")
    (backfill_id,) = backfill_ids([result.message])
    assert result.message.startswith("ALTER TABLE public.t u2 (")
    assert (sql.table().status, sql.table().backfill_id) == ("backfilling", backfill_id)
    backfill = dry.steps[0]
    assert isinstance(backfill, Backfill)
    assert (backfill.history, backfill.first, backfill.last) == ({"0": (3, 4), "1": (2, 4)}, 2, 2)
    for again in ("ALTER TABLE t RESUME", "ALTER TABLE t RESNAPSHOT"):
        with pytest.raises(NotResumable) as caught:
            sql.run(again)
        assert caught.value.backfill_id == backfill_id


def test_of_two_who_resume_a_table_at_once_one_is_refused(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    sql.tick({0: 4, 1: 4}, fail=("t",))

    def attempt(_: int) -> str:
        try:
            return backfill_ids(sql.run("ALTER TABLE t RESUME"))[0]
        except NotResumable as refused:
            return f"refused: {refused.backfill_id}"

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(attempt, range(4)))
    assert answers == [str(sql.table().backfill_id), *[f"refused: {sql.table().backfill_id}"] * 3]
    with sql.catalog.read() as session:
        assert [len(backfill.tables) for backfill in active_backfills(session)] == [1]


def test_a_table_is_not_resumed_where_its_next_record_is_gone(sql: Session, topic: str, kafka: EmbeddedKafka) -> None:
    begin(sql, topic)
    sql.tick({0: 4, 1: 4}, fail=("t",))
    delete_records(kafka, topic, {0: 3, 1: 2})
    assert sql.run("ALTER TABLE t RESUME", dry_run=True) == ["ALTER TABLE public.t u2 (gets a backfill, dry run)"]
    with pytest.raises(UpstreamChanged, match="partition 0: the next offset to read is 0"):
        sql.run("ALTER TABLE t RESNAPSHOT")
    delete_records(kafka, topic, {0: 4})
    with pytest.raises(UpstreamChanged, match=r"'public.t' cannot get its history: .* partition 0: .* is 3"):
        sql.run("ALTER TABLE t RESUME")
    assert sql.table().status == "stalled"


def test_a_table_is_filled_with_what_is_left_only_by_force(
    sql_on_both: Session, topic: str, kafka: EmbeddedKafka
) -> None:
    sql = sql_on_both
    begin(sql, topic)
    sql.tick({0: 4, 1: 4})
    delete_records(kafka, topic, {0: 4, 1: 3})
    with pytest.raises(UpstreamChanged) as refused:
        sql.run("ALTER TABLE t RESNAPSHOT")
    assert refused.value.hint == (
        "mzshare sql 'ALTER TABLE public.t RESNAPSHOT FORCE', which fills it with what is left: rows whose records are "
        "gone are lost"
    )
    assert sql.run("ALTER TABLE t RESNAPSHOT FORCE", dry_run=True)[0].endswith("(gets a backfill, dry run)")
    sql.run("ALTER TABLE t RESNAPSHOT FORCE")
    with sql.catalog.read() as session:
        new = load_state(session, get_source(session, sql.table().source_id)).replacements[sql.table().id]
    assert (new.next_tick, new.position, new.gone) == (2, Position({0: 3, 1: 2}), Position({0: 4, 1: 3}))


def test_the_force_of_a_resnapshot_that_loses_nothing_changes_nothing(sql: Session, topic: str) -> None:
    begin(sql, topic)
    sql.run("ALTER TABLE t RESNAPSHOT FORCE")
    with sql.catalog.read() as session:
        new = load_state(session, get_source(session, sql.table().source_id)).replacements[sql.table().id]
    assert (new.next_tick, new.position, new.gone) == (1, Position(), Position())


def test_a_resnapshot_fills_a_new_generation_beside_the_current_one(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    (result,) = sql.results("ALTER TABLE t RESNAPSHOT")
    (backfill_id,) = backfill_ids([result.message])
    assert (sql.table().status, sql.table().generation) == ("live", 1)
    assert result.plan is not None
    assert result.plan.steps[-1] == CutOver(("public.t",), replaced=("public.t",))
    with sql.catalog.read() as session:
        (made,) = active_backfills(session)
    assert (made.id, [(t.generation, t.replaces, t.from_position) for t in made.tables]) == (
        backfill_id, [(2, True, Position())],
    )  # fmt: skip
    with pytest.raises(NotResumable, match=f"backfill {backfill_id} brings it up already"):
        sql.run("ALTER TABLE t RESNAPSHOT")


def test_tables_made_and_healed_together_share_a_backfill(sql: Session, topic: str) -> None:
    begin(sql, topic)
    sql.run(TABLE.format("u").replace(";", " WITH (SNAPSHOT = false)"))
    sql.tick({0: 4, 1: 4})
    sql.tick({0: 5, 1: 4}, fail=("u",))
    script = f"BEGIN; ALTER TABLE u RESUME; ALTER TABLE t RESNAPSHOT; {TABLE.format('v')} COMMIT"
    results = sql.results(script)
    assert len(set(backfill_ids([result.message for result in results]))) == 1
    assert len({id(result.plan) for result in results}) == 1
    assert results[0].plan is not None
    backfill = results[0].plan.steps[0]
    assert isinstance(backfill, Backfill)
    assert (backfill.tables, backfill.lower, backfill.first) == (("public.u", "public.t", "public.v"), Position(), 1)


def test_a_new_table_has_nothing_to_heal(sql: Session, topic: str) -> None:
    sql.run(create_source(topic) + TABLE.format("t"))
    for action, what in (("RESUME", "resume"), ("RESNAPSHOT", "read again")):
        with pytest.raises(NotResumable, match=f"joins at the next tick: there is nothing to {what}"):
            sql.run(f"ALTER TABLE t {action}")
    with pytest.raises(UnknownItem, match="is a source, not a"):
        sql.run("ALTER TABLE s RESUME")
    with pytest.raises(UnknownItem, match="does not exist"):
        sql.run("ALTER TABLE nope RESNAPSHOT")


def test_a_transaction_that_fails_leaves_no_backfill(sql_on_both: Session, topic: str) -> None:
    sql = sql_on_both
    begin(sql, topic)
    with pytest.raises(UnknownItem):
        sql.run(f"BEGIN; {TABLE.format('a')} DROP TABLE nope; COMMIT")
    with sql.catalog.read() as session:
        assert active_backfills(session) == []
    assert sql.names() == ["s", "t"]


def test_the_broker_is_asked_for_every_table_that_is_made_and_for_none_that_is_there(sql: Session, topic: str) -> None:
    begin(sql, topic)
    known = sql.connections
    now = TABLE.format("now").replace(";", " WITH (SNAPSHOT = false);")
    sql.connections = EnvConnections({})
    for text in (now, TABLE.format("late")):
        with pytest.raises(UnknownConnection):
            sql.run(text)
    sql.connections = known
    sql.run(now + TABLE.format("late"))
    sql.connections = EnvConnections({})
    assert sql.run(now.replace("TABLE", "TABLE IF NOT EXISTS", 1)) == ["CREATE TABLE public.now u3 (it exists)"]


def test_the_settings_of_backfills_are_kept_shown_and_reset(sql: Session, topic: str) -> None:
    with_rate = create_source(topic).replace(";", " WITH (BACKFILL RATE 100, CUTOVER WAIT '250ms');")
    sql.run(with_rate)
    assert sql.source().settings == SourceSettings(backfill_rate=100, cutover_wait_ms=250)
    assert "WITH (BACKFILL RATE 100, CUTOVER WAIT '250 milliseconds')" in str(
        sql.rows("SHOW CREATE SOURCE s")[0]["create_sql"]
    )
    sql.run("ALTER SOURCE s SET (BACKFILL RATE 0, CUTOVER WAIT '0s')")
    assert sql.source().settings == SourceSettings(backfill_rate=0, cutover_wait_ms=0)
    sql.run("ALTER SOURCE s RESET (BACKFILL RATE, CUTOVER WAIT)")
    assert sql.source().settings == SourceSettings()
    assert "WITH" not in str(sql.rows("SHOW CREATE SOURCE s")[0]["create_sql"])
    with pytest.raises(SpecConflict, match="it has no BACKFILL RATE, not BACKFILL RATE 100"):
        sql.run(with_rate.replace("SOURCE s", "SOURCE IF NOT EXISTS s").replace(", CUTOVER WAIT '250ms'", ""))


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_prints_the_plan(broker_cli: Cli, kafka: EmbeddedKafka) -> None:
    topic = create_topic(kafka, 2)
    produce(kafka, topic, [Record(b"x" * 1_000, partition=n % 2) for n in range(100)])
    home = Session(f"sqlite:///{broker_cli.home / 'catalog.db'}", kafka)
    try:
        broker_cli.ok("sql", create_source(topic) + TABLE.format("t"))
        home.tick({0: 50, 1: 30})
        before = groups(kafka)
        script = f"BEGIN; {TABLE.format('a')} {TABLE.format('b')} COMMIT"
        assert broker_cli.ok("sql", "--dry-run", script).out == (
            "CREATE TABLE public.a (gets a backfill, dry run)\n"
            "CREATE TABLE public.b (gets a backfill, dry run)\n"
            "\n"
            "plan for source public.s:\n"
            "  1. backfill: public.a, public.b, in one read of tick 1: at most 80 records of 2 partitions, "
            "about 80 kB\n"
            "     partition 0: offsets 0 to 49\n"
            "     partition 1: offsets 0 to 29\n"
            "  2. follow: they get the ticks that are minted meanwhile\n"
            "  3. cut over: public.a, public.b become live, each at the first tick that begins at its position\n"
        )
        first, second = broker_cli.ok("sql", "--dry-run", "-o", "json", script).json
        assert first["plan"] == second["plan"]
        assert first["plan"]["steps"][0]["bytes"] == 80_000  # type: ignore[index]
        assert broker_cli.ok("sql", "--dry-run", "-o", "csv", TABLE.format("a")).out.splitlines()[1:] == [
            'CREATE TABLE,public.a,,"CREATE TABLE public.a (gets a backfill, dry run)"'
        ]
        (made,) = broker_cli.ok("sql", "-o", "json", TABLE.format("a")).json
        assert "plan" not in made
        assert groups(kafka) == before
    finally:
        home.catalog.close()
