"""Tables whose rows change, proved against their upstream and against the oracle. No broker, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_provider_mzshare.control.catalog.database.models import CertificateRow, CommitRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table, resume_table
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.catalog.queries.certificates import last_certificate
from airflow_provider_mzshare.control.lifecycle import key_check
from airflow_provider_mzshare.control.lifecycle.verified import KeyDiffers, VerificationFailed
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.envelopes.registry import ENVELOPES
from airflow_provider_mzshare.storage.collections.uris import collection_uri
from tests.support.colliding import collide
from tests.support.keyed_cases import PLAIN, SHAPES, Step, assemble, drawn
from tests.support.keyed_oracle import Case, Record, Shape, adding
from tests.support.keyed_scene import KeyedScene, Spoil
from tests.support.plugins import ENVELOPE, installed

ONE, TWO = b'{"n": 1, "name": "one"}', b'{"n": 2, "name": "two"}'
COMPACTED = "because the topic is compacted"
Open = Callable[[Case], KeyedScene]


@pytest.fixture
def open_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    made: list[KeyedScene] = []

    def make(case: Case) -> KeyedScene:
        made.append(KeyedScene(tmp_path, case, monkeypatch.setattr))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


@pytest.fixture(params=["hashes", "collisions"])
def vectors_first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Of two tables one has deletion vectors, and the other is merged. The second time around, hashes collide."""
    if request.param == "collisions":
        collide(monkeypatch)
    return bool(request.param == "hashes")


def written(shape: Shape, *, vectors: bool) -> TableSpec:
    return shape.spec.model_copy(update={"deletion_vectors": vectors})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_table_is_the_oracles_at_every_tick_and_exact(open_scene: Open, shape: Shape, vectors_first: bool) -> None:
    """One that was there from the beginning, and one that came late, in groups."""
    case = drawn(7, shape, ticks=8, most=20)
    scene, states = open_scene(case), case.states()
    first = scene.add_table("t", written(shape, vectors=vectors_first))
    scene.run(case.ticks[:5])
    late = scene.add_table("late", written(shape, vectors=not vectors_first))
    assert scene.backfill(late) == [(1, 5)]
    scene.run(case.ticks[5:])
    for tick in case.ticks:
        scene.check_state(states[tick.number], tick=tick.number)
    scene.check_state(states[8], "late")
    assert scene.prove(first, states[8]).key == shape.key
    assert scene.prove(late, states[6]).tick == 6, "the cutover's tick"
    scene.prove(late, states[8], everything=True)
    for table in (first, late):
        assert scene.check(table).is_whole
        assert scene.messages(table) == len(case.records), "each counts once, whatever it did to the table's rows"


TICKS = [
    [Step(0, b"a", ONE), Step(0, b"b", ONE), Step(1, b"c", ONE), Step(1, b"bad", b"{")],
    [Step(0, b"a", TWO), Step(1, b"d", TWO), Step(1, b"c", ONE)],
    [Step(1, b"d", None), Step(0, b"e", ONE)],
]
SMALL = assemble(PLAIN, TICKS)


def without(*places: tuple[int, int]) -> Spoil:
    return lambda records: [record for record in records if record[:2] not in places]


def changed(partition: int, offset: int, **fields: bytes | None) -> Spoil:
    return lambda records: [
        record._replace(**fields) if record[:2] == (partition, offset) else record  # type: ignore[arg-type]
        for record in records
    ]


@pytest.mark.parametrize(
    ("spoil", "what", "key", "upstream", "stored"),
    [
        (without((0, 1)), "missing", "b", (0, 1), None),
        (without((0, 2)), "differs", "a", (0, 2), (0, 0)),
        (without((1, 4)), "not upstream", "d", (1, 4), (1, 2)),
        (changed(0, 2, value=ONE), "differs", "a", (0, 2), (0, 2)),
        (changed(0, 1, key=b"z"), "missing", "b", (0, 1), None),
        (changed(0, 2, value=None), "missing", "a", (0, 2), None),
        (changed(1, 4, value=TWO), "differs", "d", (1, 4), (1, 4)),
        (lambda records: [*records, Record(1, 5, b"f", ONE)], "not upstream", "f", None, (1, 5)),
    ],
)
def test_what_was_written_wrong_is_told_with_its_key(
    open_scene: Open,
    spoil: Spoil,
    what: str,
    key: str,
    upstream: tuple[int, int] | None,
    stored: tuple[int, int] | None,
) -> None:
    """Though what was written agrees with its own sums."""
    scene = open_scene(replace(SMALL, ticks=(*SMALL.ticks[:2], SMALL.ticks[2]._replace(ranges={0: (3, 4), 1: (4, 6)}))))
    table = scene.add_table()
    scene.spoil = spoil
    scene.run()
    assert scene.check(table).is_whole
    for excuse in (None, COMPACTED) if upstream else (None,):
        scene.excuse = excuse
        with pytest.raises(KeyDiffers) as failed:
            scene.verify(table)
        error = failed.value
        assert (error.what, error.key, error.upstream, error.stored) == (what, {"key": key}, upstream, stored)
        assert f'key {{"key": "{key}"}} has' in error.line


def test_error_rows_are_compared_by_their_places(open_scene: Open) -> None:
    scene = open_scene(SMALL)
    table = scene.add_table()
    scene.spoil = changed(1, 1, value=b"{other")
    scene.run()
    with pytest.raises(VerificationFailed, match="partition 1, offset 1 is not in the table as it is upstream"):
        scene.verify(table)


def test_a_key_with_two_rows_is_found_by_verify_and_by_check(open_scene: Open) -> None:
    scene = open_scene(SMALL)
    table = scene.add_table()
    scene.run(SMALL.ticks[:2])
    rows = scene.read()
    uri = collection_uri(scene.root, scene.point(table).data)
    write_deltalake(uri, rows.filter(pa.array([key == "b" for key in rows.column("key").to_pylist()])), mode="append")
    scene.run(SMALL.ticks[2:])
    with pytest.raises(KeyDiffers, match="has several rows, one of partition 0, offset 1") as failed:
        scene.verify(table)
    assert (failed.value.what, failed.value.key) == ("double", {"key": "b"})
    (damage,) = scene.check(table).damages
    assert damage.problem == "hold 5 rows, but the catalog says 4"


def test_sums_that_do_not_add_up_are_found(open_scene: Open) -> None:
    scene = open_scene(SMALL)
    scene.add_table("t")
    scene.run(SMALL.ticks[:1])
    table = scene.add_table("late")
    scene.backfill(table)
    scene.run(SMALL.ticks[1:])
    scene.prove(table, SMALL.states()[2])
    with scene.catalog.write() as session:
        session.query(CertificateRow).update({"data_hash": "0" * 31 + "1"})
    with pytest.raises(VerificationFailed, match="but the range holds 3 and 1, with different hashes"):
        scene.verify(table)
    mine = CommitRow.collection_id == scene.point(table).data
    with scene.catalog.write() as session:
        session.query(CommitRow).filter(mine, CommitRow.tick == 2).update({"hash": "0" * 31 + "1"})
    with pytest.raises(VerificationFailed, match="its commits sum up to 4 rows, it holds 4, with other hashes"):
        scene.verify(table)
    (damage,) = scene.check(table).damages
    assert damage.problem.startswith("do not hold the rows that were written")


@pytest.mark.parametrize("again", [resume_table, resnapshot_table])
def test_a_table_that_was_healed_is_exact_and_has_its_certificates_sums(
    open_scene: Open, again: Callable[..., object]
) -> None:
    """RESUME: the certificate tells what the backfill has changed, which may be fewer rows. RESNAPSHOT: all rows."""
    keys = [b"%d" % n for n in range(6)]
    ticks = [
        [Step(0, key, ONE) for key in keys],
        [Step(0, b"x", b"{")],
        [Step(0, key, None) for key in keys[:4]],
        [Step(1, b"new", TWO), Step(0, keys[4], TWO)],
        [Step(0, b"y", ONE)],
    ]
    case = assemble(PLAIN, ticks)
    scene, states = open_scene(case), case.states()
    table = scene.add_table("t", case.shape.spec.model_copy(update={"on_decode_error": "stop"}))
    scene.add_table("other")
    scene.run(case.ticks[:4])
    assert scene.table(table).status == "stalled"
    with scene.catalog.write() as session:
        items.set_table_spec(session, table, case.shape.spec)
        again(session, table)
    scene.backfill(table)
    scene.run(case.ticks[4:])
    scene.check_state(states[5])
    with scene.catalog.read() as session:
        certificate = last_certificate(session, table)
    assert certificate is not None
    assert (certificate.from_tick, certificate.rows) == ((2, -3) if again is resume_table else (1, 3))
    scene.prove(table, states[5])
    scene.prove(table, states[5], everything=True)
    assert scene.check(table).is_whole


def test_a_check_knows_a_table_with_keys_by_its_checkpoint_too(open_scene: Open) -> None:
    """Maintenance removes old log entries, and with them the one that made the table."""
    case = assemble(PLAIN, [[Step(0, b"a", ONE), Step(0, b"%d" % n, TWO)] for n in range(11)])
    scene = open_scene(case)
    table = scene.add_table()
    scene.run()
    log = Path(collection_uri(scene.root, scene.point(table).data)) / "_delta_log"
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    for version in range(int(checkpoint.name[:20])):
        (log / f"{version:020d}.json").unlink()
    assert scene.check(table).damages == ()


# ── what is gone upstream ─────────────────────────────────────────────────────────────────────────────────────────────


def compacted(records: list[Record], *, tombstones: bool = False) -> list[Record]:
    """As Kafka does it: of each key and partition the newest record; of those that delete, none, if they are old."""
    newest = {(record.partition, record.key): record.offset for record in records}
    kept = [record for record in records if newest[record.partition, record.key] == record.offset]
    return [record for record in kept if record.value is not None or tombstones]


def test_what_compaction_has_removed_below_the_tick_is_unverifiable(open_scene: Open) -> None:
    """The late table is compared as of its cutover, tick 2; a, c and d have newer records, or none, by now."""
    later = [Step(0, b"a", ONE), Step(1, b"c", TWO)]
    case = assemble(PLAIN, [*TICKS, later])
    scene, states = open_scene(case), case.states()
    scene.add_table("t")
    scene.run(case.ticks[:1])
    table = scene.add_table("late")
    scene.backfill(table)
    scene.run(case.ticks[1:])
    scene.prove(table, states[2])

    scene.upstream = compacted(scene.upstream, tombstones=True)
    with pytest.raises(KeyDiffers) as failed:
        scene.verify(table)
    assert (failed.value.what, failed.value.key, failed.value.upstream) == ("not upstream", {"key": "a"}, None)
    scene.excuse = COMPACTED
    found = scene.verify(table)
    assert (found.verdict, found.rows, found.unverifiable_keys) == ("unverifiable", 4, 3)
    assert found.reason == f"3 keys have records that are gone upstream, {COMPACTED}"
    assert scene.prove(table, states[4], everything=True).unverifiable_keys == 0
    scene.upstream = compacted(scene.upstream)
    scene.prove(table, states[4], everything=True)


@pytest.mark.parametrize(
    ("spoil", "what", "key"),
    [
        (without((0, 1)), "missing", "b"),
        (changed(0, 1, value=TWO), "differs", "b"),
        (changed(0, 1, key=b"z"), "missing", "b"),
    ],
)
def test_what_is_still_there_is_compared_on_a_compacted_topic(
    open_scene: Open, spoil: Spoil, what: str, key: str
) -> None:
    scene = open_scene(SMALL)
    table = scene.add_table()
    scene.spoil = spoil
    scene.run()
    scene.spoil, scene.excuse = None, COMPACTED
    scene.upstream = compacted(scene.upstream)
    with pytest.raises(KeyDiffers) as failed:
        scene.verify(table)
    assert (failed.value.what, failed.value.key) == (what, {"key": key})


def test_a_row_is_wrong_if_its_place_has_another_record(open_scene: Open) -> None:
    """A compacted topic does not excuse it: the record that the row names is there, and is another key's."""
    scene = open_scene(SMALL)
    table = scene.add_table()
    scene.spoil = changed(0, 3, key=b"other")
    scene.run()
    scene.spoil, scene.excuse = None, COMPACTED
    scene.upstream = [record for record in scene.upstream if record.key != b"e"] + [Record(0, 3, b"\xff", ONE)]
    with pytest.raises(VerificationFailed):
        scene.verify(table)


def test_a_key_that_changed_its_partition_may_have_lost_its_deletion(open_scene: Open) -> None:
    """Compaction looks at one partition: the record that sets the key may outlive the one that deletes it."""
    case = assemble(
        PLAIN,
        [[Step(0, b"a", ONE), Step(0, b"b", ONE)], [Step(1, b"a", None), Step(1, b"b", TWO)], [Step(1, b"c", ONE)]],
    )
    scene = open_scene(case)
    table = scene.add_table()
    scene.run()
    scene.prove(table, case.states()[3])
    scene.upstream = compacted(scene.upstream)
    with pytest.raises(KeyDiffers, match="has no row"):
        scene.verify(table)
    scene.excuse = COMPACTED
    found = scene.verify(table)
    assert (found.verdict, found.unverifiable_keys) == ("unverifiable", 1)


def test_error_rows_that_are_gone_upstream_are_no_failure(open_scene: Open) -> None:
    scene = open_scene(SMALL)
    table = scene.add_table()
    scene.run()
    scene.upstream = [record for record in scene.upstream if record.key != b"bad"]
    with pytest.raises(VerificationFailed, match="partition 1, offset 1 is in the table and not upstream"):
        scene.verify(table)
    scene.excuse = COMPACTED
    found = scene.verify(table)
    assert found.reason == f"the table has rows that are not upstream (1), {COMPACTED}"
    assert (found.verdict, found.unverifiable_keys, found.errors) == ("unverifiable", 0, 1)


# ── another envelope ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def adds() -> Iterator[Shape]:
    with installed(ENVELOPE, ENVELOPES):
        yield replace(PLAIN, envelope="adding")


def test_an_envelope_that_adds_is_proved_by_its_own_fold(
    open_scene: Open, adds: Shape, vectors_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick that was applied twice, or a record that was, would show."""
    monkeypatch.setattr(key_check, "PART_OFFSETS", 25)
    case = drawn(3, adds, ticks=7, most=20)
    scene, states = open_scene(case), case.states(adding(adds))
    first = scene.add_table("t", written(adds, vectors=vectors_first))
    scene.run(case.ticks[:4])
    late = scene.add_table("late", written(adds, vectors=not vectors_first))
    scene.backfill(late)
    scene.run(case.ticks[4:])
    for tick in case.ticks:
        scene.check_state(states[tick.number], tick=tick.number)
    scene.prove(first, states[7])
    scene.prove(late, states[5])
    scene.prove(late, states[7], everything=True)
    assert scene.check(first).is_whole


def test_what_it_has_added_twice_is_found_and_on_a_compacted_topic_nothing_can_be_said(
    open_scene: Open, adds: Shape
) -> None:
    scene = open_scene(replace(SMALL, shape=adds))
    table: ItemId = scene.add_table()
    scene.spoil = lambda records: [*records, *(record for record in records if record[:2] == (0, 2))]
    scene.run()
    with pytest.raises(KeyDiffers) as failed:
        scene.verify(table)
    assert (failed.value.what, failed.value.key) == ("differs", {"key": "a"})
    scene.excuse = COMPACTED
    assert scene.verify(table).unverifiable_keys == 1
