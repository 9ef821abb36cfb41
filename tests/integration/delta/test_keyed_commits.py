"""Commits to a collection whose rows change: through the pass and the fold, against a dict that does the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError

from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA
from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.schema import HASH_VERSION
from airflow_provider_mzshare.errors import PlanAgain
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.collections import commit as commits
from airflow_provider_mzshare.storage.collections.collection import Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import CommitResult, FileWritten, commit_group, commit_tick
from airflow_provider_mzshare.storage.collections.keyed import KeyedRows, KeyEvents, hash_visible
from airflow_provider_mzshare.storage.collections.vectors.committing import PutRefused
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory
from airflow_provider_mzshare.storage.fanout.plan import EVENTS, FanoutPlan, MemberPlan
from airflow_provider_mzshare.storage.fanout.writer import write_partition
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.support.delta import read_arrow

NAME = CollectionId("u1-keyed")
UPSERT = "airflow_provider_mzshare.envelopes.upsert:UPSERT"
Record = tuple[int, int, bytes | None, bytes | None]
"""Partition, offset, key, value."""


class Scene:
    """One collection, its plan, and what a dict says that it holds.

    :param folder: of this process. :param warehouse: an object store; None: the folder is the warehouse, too.
    """

    def __init__(
        self,
        folder: Path,
        member: MemberPlan | None = None,
        *,
        vectors: bool = True,
        memory: IndexMemory | None = None,
        warehouse: str | None = None,
    ) -> None:
        self.root, self.states = warehouse or str(folder), KeyStates(folder / "scratch", memory)
        if warehouse is None:
            (folder / "errors").mkdir(parents=True)
        plain = MemberPlan("u1", format_target("text"), (), (("key", "key"),), "", "", envelope=UPSERT, keys=("key",))
        self.member = replace(member or plain, data_path=f"{self.root}/{NAME}", errors_path=f"{self.root}/errors")
        create_collection(self.root, NAME, self.member.schema, keys=self.member.keys, vectors=vectors)
        self.collection = self.opened()
        self.offsets = [0, 0]

    def opened(self) -> Collection:
        return Collection.open(self.root, NAME)

    def records(self, *pairs: tuple[str | None, str | None], partition: int = 0) -> list[Record]:
        found = []
        for key, value in pairs:
            raw = [None if text is None else text.encode() for text in (key, value)]
            found.append((partition, self.offsets[partition], *raw))
            self.offsets[partition] += 1
        return found

    def events(self, tick: int, records: Sequence[Record], ends: dict[str, tuple[int, ...]] | None = None) -> KeyEvents:
        partitions, offsets, keys, values = zip(*records, strict=True) if records else ((), (), (), ())
        columns = {
            "key": keys,
            "value": values,
            "partition": partitions,
            "offset": offsets,
            "timestamp": [0] * len(keys),
        }
        batch = pa.RecordBatch.from_pydict(columns, schema=INPUT_SCHEMA)
        plan = FanoutPlan(tick, (self.member,), ends or {}, "a")
        rows = [
            row for out in write_partition(iter([batch] if records else []), plan.to_json()) for row in out.to_pylist()
        ]
        files = [
            FileWritten(f"{EVENTS}/{row['path']}", row["size"], row["stats"], 0.0)
            for row in rows
            if row["role"] == "data" and row["path"]
        ]
        member = self.member
        rows = self.states.rows_of(self.collection)
        return KeyEvents(files, member.events_schema, member.keys, member.keyed_envelope, HASH_VERSION, rows)

    def tick(
        self, number: int, content: KeyEvents, *, force: bool = False, collection: Collection | None = None
    ) -> CommitResult:
        return commit_tick(
            collection or self.collection,
            mz_timestamp=number,
            content=content,
            metadata={"mz_tick": str(number), "mz_rows": "0", "mz_hash": "0", "mz_source": "u0"},
            knows=lambda _: True,
            force=force,
        )

    def group(self, planned: int | None, number: int, content: KeyEvents, *, force: bool = False) -> CommitResult:
        metadata = {"mz_tick": str(number), "mz_rows": "0", "mz_hash": "0"}
        return commit_group(
            self.collection, planned=planned, mz_timestamp=number, content=content, metadata=metadata, force=force
        )

    def state(self, version: int | None = None) -> dict[Any, Any]:
        """What each key has, and the tick and the place that set it; a key that is there twice is an error."""
        self.collection.refresh()
        table = self.rows(version)
        rows = {tuple(row[name] for name in self.member.keys): row for row in table.to_pylist()}
        assert len(rows) == table.num_rows, "a key has two rows"
        return rows

    def rows(self, version: int | None = None) -> pa.Table:
        at = self.opened().delta_version if version is None else version
        return read_arrow(self.root, NAME, at, with_system_columns=True)


def values(scene: Scene, version: int | None = None) -> dict[str, str]:
    return {key[0]: row["data"] for key, row in scene.state(version).items()}


@pytest.fixture(params=[True, False], ids=["vectors", "merge"])
def vectors(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def scene(tmp_path: Path, vectors: bool) -> Iterator[Scene]:
    scene = Scene(tmp_path, vectors=vectors)
    yield scene
    scene.states.close()


def test_a_record_sets_the_row_of_its_key_and_a_tombstone_takes_it_away(scene: Scene) -> None:
    scene.tick(1, scene.events(1, scene.records(("a", "1"), ("b", "1"), ("a", "2"), ("c", None))))
    assert values(scene) == {"a": "2", "b": "1"}
    result = scene.tick(2, scene.events(2, scene.records(("a", None), ("b", "3"), ("c", "3"), ("d", "1"), ("d", None))))
    assert values(scene) == {"b": "3", "c": "3"}
    assert values(scene, 1) == {"a": "2", "b": "1"}
    assert result.metadata["mz_rows"] == "0"
    assert {(row["_mz_tick"], row["_mz_offset"]) for row in scene.state().values()} == {(2, 5), (2, 6)}


def test_an_update_to_equal_values_moves_the_rows_place(scene: Scene) -> None:
    scene.tick(1, scene.events(1, scene.records(("a", "1"))))
    result = scene.tick(2, scene.events(2, scene.records(("a", "1"))))
    assert [(row["_mz_tick"], row["_mz_offset"]) for row in scene.state().values()] == [(2, 1)]
    assert int(result.metadata["mz_hash"], 16) == 0, "nothing that is visible has changed"


def test_the_sums_of_the_commits_are_the_state(scene: Scene) -> None:
    rng, rows, hashes = random.Random(5), 0, 0
    for tick in range(1, 13):
        pairs = [(f"k{rng.randrange(9)}", rng.choice((None, "x", "y"))) for _ in range(rng.randrange(9))]
        result = scene.tick(tick, scene.events(tick, scene.records(*pairs)))
        if result.version is not None:
            rows, hashes = rows + int(result.metadata["mz_rows"]), hashes + int(result.metadata["mz_hash"], 16)
    table = scene.rows()
    assert table.num_rows == rows
    assert hash_visible(table, HASH_VERSION) == hashes % (1 << 128)


def test_columns_can_be_added_right_after_a_commit(scene: Scene) -> None:
    scene.tick(1, scene.events(1, scene.records(("a", "1"))))
    scene.collection.widen(scene.member.schema.append(pa.field("more", pa.int64())))
    assert scene.opened().schema.names[-1] == "more"
    scene.tick(2, scene.events(2, scene.records(("b", "1"))))
    assert values(scene) == {"a": "1", "b": "1"}


def test_what_changes_nothing_is_no_commit_unless_a_fence_is_due(scene: Scene) -> None:
    assert scene.tick(1, scene.events(1, scene.records(("a", None)))).version is None
    assert scene.tick(2, scene.events(2, scene.records(("a", None))), force=True).version == 1
    assert scene.tick(3, scene.events(3, []), force=True).version == 2
    assert values(scene) == {}


def test_a_plan_that_was_overtaken_is_made_anew_and_never_put_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction, or whatever else lands between the plan and its put, takes the version that it was made for."""
    way = type(scene.states.rows_of(scene.collection))
    put, other, refused = way.put, scene.opened(), []

    def overtaken(rows: KeyedRows, collection: Collection, *args: Any) -> None:
        if not refused:
            commits.add_files(other, 1, (), {"mz_tick": "1", "mz_rows": "0", "mz_hash": "0"}, retries=0)
        try:
            put(rows, collection, *args)
        except (CommitFailedError, PutRefused):
            refused.append(collection.delta_version)
            raise

    monkeypatch.setattr(way, "put", overtaken)
    result = scene.tick(2, scene.events(2, scene.records(("a", "1"))))
    assert (result.version, result.already, refused) == (2, False, [0])
    assert values(scene) == {"a": "1"}


def test_a_compaction_that_was_written_beside_ticks_is_put_on_the_newest_version(scene: Scene) -> None:
    for number in range(1, 5):
        scene.tick(number, scene.events(number, scene.records((f"k{number}", str(number)))))
    beside = scene.states.rewrite(scene.opened(), min_files=2)
    assert beside is not None
    assert (len(beside.inputs), len(beside.outputs)) == (4, 1)
    scene.tick(5, scene.events(5, scene.records(("k5", "5"))))
    before = scene.state()
    assert scene.states.put_rewritten(scene.collection, beside)
    assert scene.opened().delta_version == 6
    paths = set(scene.opened().table.get_add_actions().column("path").to_pylist())
    assert {file.path for file in beside.outputs} <= paths
    assert not paths & set(beside.inputs)
    assert scene.state() == before
    scene.tick(6, scene.events(6, scene.records(("k1", "6"), ("k2", None))))
    assert values(scene) == {"k1": "6", "k3": "3", "k4": "4", "k5": "5"}
    assert values(scene, 5) == values(scene, 6)


def test_a_compaction_of_files_that_were_written_anew_meanwhile_is_dropped(tmp_path: Path) -> None:
    scene = Scene(tmp_path, vectors=False)
    for number in range(1, 4):
        scene.tick(number, scene.events(number, scene.records((f"k{number}", str(number)))))
    beside = scene.states.rewrite(scene.opened(), min_files=2)
    assert beside is not None
    scene.tick(4, scene.events(4, scene.records(("k2", "4"))))
    assert not scene.states.put_rewritten(scene.collection, beside)
    assert scene.opened().delta_version == 4
    assert values(scene) == {"k1": "1", "k2": "4", "k3": "3"}
    assert not any(Path(scene.collection.uri, file.path).exists() for file in beside.outputs)


def test_a_commit_whose_answer_is_lost_is_found(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    way = type(scene.states.rows_of(scene.collection))
    put, calls = way.put, []

    def landed_but_raised(*args: Any) -> None:
        put(*args)
        calls.append(args)
        raise OSError("the answer was lost")

    monkeypatch.setattr(way, "put", landed_but_raised)
    assert scene.tick(1, scene.events(1, scene.records(("a", "1")))).already
    assert scene.group(1, 2, scene.events(2, scene.records(("a", None)))).already
    assert (len(calls), values(scene)) == (2, {})


def test_a_zombie_of_the_same_tick_finds_it_done_and_one_of_an_earlier_tick_is_fenced(scene: Scene) -> None:
    records = scene.records(("a", "1"))
    late, mine = scene.opened(), scene.events(1, records)
    scene.tick(1, mine)
    assert scene.tick(1, scene.events(1, records), collection=late).already
    scene.tick(2, scene.events(2, scene.records(("a", "2"))))
    with pytest.raises(commits.Fenced):
        scene.tick(1, scene.events(1, records), collection=late)
    assert values(scene) == {"a": "2"}


def test_records_that_are_gone_at_the_next_attempt_leave_the_first_one_no_slot(scene: Scene) -> None:
    """A topic is compacted between two reads of a tick: the second one finds no event, and commits all the same."""
    scene.tick(1, scene.events(1, scene.records(("a", "1"))))
    late, states = scene.opened(), KeyStates(Path(scene.root, "late"))
    zombie = scene.events(2, scene.records(("a", "2"), ("b", "2")))
    zombie.rows = states.rows_of(late)
    assert not zombie.is_empty(late)
    assert scene.tick(2, scene.events(2, []), force=True).version == 2
    with pytest.raises((CommitFailedError, PutRefused)):
        zombie.put(late, 2, zombie.noted({"mz_tick": "2", "mz_rows": "0", "mz_hash": "0"}))
    assert scene.tick(2, zombie, collection=late).already
    states.close()
    assert values(scene) == {"a": "1"}


def test_a_group_follows_the_tick_that_it_was_planned_on(scene: Scene) -> None:
    scene.group(None, 2, scene.events(1, scene.records(("a", "1"), ("a", "2")), {"0": (1,)}))
    with pytest.raises(PlanAgain):
        scene.group(None, 3, scene.events(1, scene.records(("a", "9"))))
    assert [row["_mz_tick"] for row in scene.state().values()] == [2]


def test_events_are_folded_by_tick_before_place(scene: Scene) -> None:
    """Partition 1 of the first tick comes before partition 0 of the second."""
    records = [*scene.records(("a", "late"), partition=0), *scene.records(("a", "early"), partition=1)]
    scene.group(None, 2, scene.events(1, records, {"0": (0,), "1": (1,)}))
    assert values(scene) == {"a": "late"}


TYPES = {
    "boolean": [True, False],
    "bigint": [-(2**63), 0, 2**63 - 1],
    "integer": [-1, 7],
    "numeric(38,0)": [10**37, -1],
    "numeric(5,2)": [1.25, -0.5],
    "text": ["", "a\u0000b", "ä", "A", "a"],
    "date": ["2020-01-01", "0001-01-01"],
    "timestamp": ["2020-01-01T00:00:00", "1969-12-31T23:59:59.999999"],
    "timestamptz": ["2020-01-01T00:00:00Z", "1582-10-04T00:00:00Z"],
}


@pytest.mark.parametrize("kind", list(TYPES))
def test_keys_of_every_type_find_their_rows(tmp_path: Path, kind: str, vectors: bool) -> None:
    member = MemberPlan(
        "u1", format_target("text"), (), (), "", "", envelope=UPSERT,
        keys=('odd "key`.name', "Second"), key_format=format_target("json"),
        key_columns=(('odd "key`.name', kind), ("Second", "text")),
    )  # fmt: skip
    scene = Scene(tmp_path, member, vectors=vectors)
    keys = [json.dumps({'odd "key`.name': value, "Second": second}) for value in TYPES[kind] for second in ("x", "X")]
    scene.tick(1, scene.events(1, scene.records(*((key, "1") for key in keys))))
    assert len(scene.state()) == len(keys)
    scene.tick(2, scene.events(2, scene.records((keys[0], "2"), (keys[-1], None))))
    assert sorted(row["data"] for row in scene.state().values()) == ["1"] * (len(keys) - 2) + ["2"]
    scene.tick(3, scene.events(3, scene.records(*((key, None) for key in keys))))
    assert scene.state() == {}


def test_bytes_are_keys_too(tmp_path: Path, vectors: bool) -> None:
    member = MemberPlan("u1", format_target("bytes"), (), (("key", "k"),), "", "", envelope=UPSERT, keys=("k",))
    scene = Scene(tmp_path, member, vectors=vectors)
    raw: list[Record] = [(0, n, key, b"1") for n, key in enumerate((b"", b"\0", b"\xff\0", b"\xff"))]
    scene.tick(1, scene.events(1, raw))
    scene.tick(2, scene.events(2, [(0, 4, b"\0", None), (0, 5, b"", b"2")]))
    assert {key[0]: row["data"] for key, row in scene.state().items()} == {b"": b"2", b"\xff\0": b"1", b"\xff": b"1"}


class Adds:
    """Not idempotent: the value of a key is the sum of its records'. Whatever is applied twice shows."""

    name = "adds"
    appends = False

    def lacks(self, *, format: str, include: Any) -> str | None:
        return None

    def deletes(self, raw: pa.Array) -> pa.Array:
        return raw.is_null()

    def fold(self, events: pa.Table, before: pa.Table, keys: Sequence[str]) -> pa.Table:
        found = {tuple(row[key] for key in keys): row for row in before.to_pylist()}
        for event in events.to_pylist():
            deletes, key = event.pop("_mz_deletes"), tuple(event[key] for key in keys)
            old = found.pop(key, None)
            if not deletes:
                found[key] = {**event, "n": event["n"] + (old["n"] if old else Decimal(0))}
        return pa.Table.from_pylist(list(found.values()), before.schema)


ADDS = Adds()


def adding(folder: Path, *, vectors: bool, memory: IndexMemory | None = None, warehouse: str | None = None) -> Scene:
    member = MemberPlan(
        "u1", format_target("json"), (("n", "numeric(38,0)"),), (("key", "key"),), "", "",
        envelope=f"{__name__}:ADDS", keys=("key",),
    )  # fmt: skip
    return Scene(folder, member, vectors=vectors, memory=memory, warehouse=warehouse)


@pytest.mark.parametrize("seed", range(6))
def test_every_grouping_of_the_ticks_gives_the_same_state_either_way(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    one, other = adding(tmp_path / "one", vectors=seed % 3 > 0), adding(tmp_path / "other", vectors=seed % 2 > 0)
    ticks = [
        one.records(
            *((f"k{rng.randrange(4)}", rng.choice((None, '{"n":1}', '{"n":7}'))) for _ in range(rng.randrange(6)))
        )
        for _ in range(8)
    ]
    ends = [sum(map(len, ticks[: n + 1])) for n in range(8)]
    for number, records in enumerate(ticks, 1):
        one.tick(number, one.events(number, records))
    at, stored = 0, None
    while at < 8:
        upto = rng.randint(at + 1, 8)
        records = [record for tick in ticks[at:upto] for record in tick]
        result = other.group(stored, upto, other.events(at + 1, records, {"0": tuple(ends[at : upto - 1])}), force=True)
        at, stored = upto, upto
        assert result.version is not None
    assert one.state() == other.state()
