"""Collections with deletion vectors: whatever comes between two commits, rows, changes and the index agree with a dict.

The same walk goes over merges, compactions of ours and of others, lost answers, checkpoints and new processes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder

from airflow_provider_mzshare.core.schema import system_names
from airflow_provider_mzshare.errors import CommitUnclear
from airflow_provider_mzshare.storage.collections import audit
from airflow_provider_mzshare.storage.collections import log as deltalog
from airflow_provider_mzshare.storage.collections.check import check_collection
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG
from airflow_provider_mzshare.storage.collections.vectors import committing, puts, rewriting
from airflow_provider_mzshare.storage.collections.vectors.live_files import live_files
from airflow_provider_mzshare.storage.collections.vectors.memory import IndexMemory
from airflow_provider_mzshare.storage.collections.vectors.rewriting import Rewritten
from airflow_provider_mzshare.storage.collections.vectors.state import KeyState
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.integration.delta.test_keyed_commits import NAME, Scene, adding
from tests.support.colliding import collide

Values = dict[str, int]


class Walk:
    """A table that adds up the numbers of a key: whatever is applied twice, or to the wrong row, shows."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        keys: int = 12,
        memory: IndexMemory | None = None,
        *,
        warehouse: str | None = None,
    ) -> None:
        self.scene = adding(folder, vectors=True, memory=memory, warehouse=warehouse)
        self.random, self.keys = random.Random(seed), keys
        self.tick, self.now = 0, {}
        self.at: dict[int, Values] = {0: {}}
        """What each version holds that some tick has made."""
        self.beside: Rewritten | None = None

    def commit(self, *, most: int = 8) -> None:
        self.tick += 1
        pairs: list[tuple[str, str | None]] = []
        for _ in range(self.random.randint(1, most)):
            key, number = f"k{self.random.randrange(self.keys)}", self.random.choice((None, 1, 7, 30))
            pairs.append((key, None if number is None else json.dumps({"n": number})))
            old = self.now.pop(key, 0)
            if number is not None:
                self.now[key] = old + number
        result = self.scene.tick(self.tick, self.scene.events(self.tick, self.scene.records(*pairs)), force=True)
        assert result.version is not None
        self.at[result.version] = dict(self.now)

    # ── what comes between ────────────────────────────────────────────────────────────────────────────────────────────

    def write_compaction(self) -> None:
        self.beside = self.scene.states.rewrite(self.scene.opened(), min_files=2)

    def put_compaction(self) -> None:
        if self.beside is not None:
            self.scene.states.put_rewritten(self.scene.collection, self.beside)
            self.beside = None

    def foreign_compaction(self) -> None:
        DeltaTable(self.scene.collection.uri).optimize.compact(
            commit_properties=CommitProperties(max_commit_retries=0), post_commithook_properties=KEEP_LOG
        )

    def checkpoint(self) -> None:
        DeltaTable(self.scene.collection.uri).create_checkpoint()

    def new_process(self) -> None:
        self.scene.states.close()
        self.scene.collection, self.beside = self.scene.opened(), None

    def step(self) -> None:
        between = (self.write_compaction, self.put_compaction, self.put_compaction, self.checkpoint)
        rare = (self.foreign_compaction, self.new_process)
        draw = self.random.random()
        if draw < 0.6:
            self.commit()
        else:
            self.random.choice(between if draw < 0.92 else rare)()

    # ── what must be true ─────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        for version, wanted in self.at.items():
            rows = self.scene.rows(version)
            assert {row["key"]: int(row["n"]) for row in rows.to_pylist()} == wanted
            assert rows.num_rows == len(wanted)
        assert not check_collection(self.scene.root, NAME, deep=True).damages

    def check_changes(self) -> None:
        """The change feed of delta-rs, summed from the beginning, is the table."""
        feed = pa.table(DeltaTable(self.scene.collection.uri).load_cdf(starting_version=1).read_all())
        rows: dict[tuple[Any, ...], int] = {}
        for row in feed.to_pylist():
            kind, image = row["_change_type"], tuple(row[name] for name in ("key", "n", "_mz_tick", "_mz_offset"))
            rows[image] = rows.get(image, 0) + (1 if kind in ("insert", "update_postimage") else -1)
        wanted = {
            tuple(r[name] for name in ("key", "n", "_mz_tick", "_mz_offset")) for r in self.scene.rows().to_pylist()
        }
        assert {image for image, count in rows.items() if count} == wanted
        assert set(rows.values()) <= {0, 1}

    def check_others(self) -> None:
        table = DeltaTable(self.scene.collection.uri)
        rows = pa.table(QueryBuilder().register("t", table).execute('SELECT "key", "n" FROM t').read_all())
        assert {row["key"]: int(row["n"]) for row in rows.to_pylist()} == self.now
        assert rows.num_rows == len(self.now)


@pytest.fixture
def colliding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        collide(monkeypatch)
    return bool(request.param)


@pytest.mark.parametrize("colliding", [False, True], ids=["hashes", "collisions"], indirect=True)
@pytest.mark.parametrize("seed", range(8))
def test_a_walk_agrees_with_a_dict_at_every_version(tmp_path: Path, seed: int, colliding: bool) -> None:
    walk = Walk(tmp_path, seed)
    for _ in range(40):
        walk.step()
    walk.check()
    walk.check_changes()
    walk.check_others()
    walk.scene.states.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_with_the_index_on_disk_agrees_as_well(tmp_path: Path, seed: int) -> None:
    memory = IndexMemory(0)
    walk = Walk(tmp_path, seed, memory=memory)
    for _ in range(40):
        walk.step()
        assert memory.taken == 0
    walk.commit()
    assert walk.scene.states.on_disk == 1
    walk.check()
    walk.check_changes()
    walk.scene.states.close()
    assert not Path(walk.scene.root, "scratch").exists()


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    walk = Walk(tmp_path, 1)
    yield walk
    walk.scene.states.close()


def state_of(scene: Scene) -> KeyState:
    return scene.states._states[NAME].state


def test_a_tick_is_one_commit_of_what_has_changed(walk: Walk) -> None:
    for _ in range(3):
        walk.commit()
    entry = deltalog.read_entry(walk.scene.collection.filesystem, 3)
    assert entry is not None
    kinds = sorted(kind for action in entry.actions for kind in action)
    assert set(kinds) <= {"commitInfo", "txn", "add", "remove", "cdc"}
    assert kinds.count("txn") == kinds.count("cdc") == 1
    before, after = (live_files(walk.scene.collection.filesystem, version).files for version in (2, 3))
    touched = {path for path in after if path not in before or after[path].vector != before[path].vector}
    assert touched == set(entry.added())
    assert set(before) & touched == set(entry.removed())


def test_whatever_an_entry_names_is_flushed_before_the_entry_is_put(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[str] = set()
    flush, put, late = puts.flush, puts.put_entry, []

    def noted(uri: str, paths: Iterable[str]) -> None:
        flush(uri, paths := list(paths))
        flushed.update(paths)

    def checked(uri: str, version: int, content: bytes) -> puts.Answer:
        entry = deltalog.Entry(version, tuple(map(json.loads, content.splitlines())))
        before = live_files(walk.scene.collection.filesystem, version - 1).files
        named = {*entry.added(), *entry.vectors(), *entry.changes()} - set(before)
        kept = {file.vector.path for file in before.values() if file.vector}
        late.append(named - kept - flushed)
        return put(uri, version, content)

    for module in (puts, rewriting):
        monkeypatch.setattr(module, "flush", noted)
    monkeypatch.setattr(puts, "put_entry", checked)
    for _ in range(6):
        walk.commit()
    walk.write_compaction()
    walk.commit()
    walk.put_compaction()
    assert late == [set()] * 8
    for kind in ("part-", "deletion_vector_", "_change_data/cdc-"):
        assert any(path.startswith(kind) for path in flushed)


def test_rows_that_are_taken_away_while_a_compaction_is_written_are_carried_over(walk: Walk) -> None:
    for _ in range(6):
        walk.commit()
    walk.write_compaction()
    assert walk.beside is not None
    for _ in range(3):
        walk.commit()
    walk.put_compaction()
    newest = live_files(walk.scene.collection.filesystem, 10)
    assert any(file.vector for file in newest.files.values()), "later ticks have changed rows of the inputs"
    walk.commit()
    walk.check()
    walk.check_changes()


@pytest.mark.parametrize("refused", [False, True], ids=["overtaken", "refused"])
def test_a_compaction_that_is_dropped_leaves_nothing(
    walk: Walk, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    for _ in range(6):
        walk.commit()
    scratch = Path(walk.scene.root, "scratch")
    mirrored = {path.name for path in scratch.rglob("*.arrow")}
    walk.write_compaction()
    assert {path.name for path in scratch.rglob("*.arrow")} > mirrored
    if refused:
        monkeypatch.setattr(puts, "put_entry", lambda *_: "refused")
    else:
        walk.foreign_compaction()
    walk.put_compaction()
    state = state_of(walk.scene)
    assert state.files is not None
    assert len(list(scratch.rglob("*.arrow"))) == len(state.files.files), "the mirror has files of the table alone"
    monkeypatch.undo()
    walk.commit()
    walk.check()


def test_a_compaction_whose_answer_is_lost_is_known_by_its_entry(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(6):
        walk.commit()
    walk.write_compaction()
    made = state_of(walk.scene)._made
    put = puts.put_entry

    def lost(*args: Any) -> str:
        put(*args)
        raise OSError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(puts, "put_entry", lost)
        walk.put_compaction()
    assert walk.scene.opened().delta_version == 7
    walk.commit()
    assert state_of(walk.scene)._made == made, "nothing was read again"
    walk.check()


def test_an_entry_of_others_is_followed_and_not_read_anew(walk: Walk) -> None:
    for _ in range(5):
        walk.commit()
    made = state_of(walk.scene)._made
    walk.foreign_compaction()
    walk.commit()
    assert state_of(walk.scene)._made == made
    walk.check()


def test_files_of_others_that_hold_views_of_text_are_followed_and_compacted(walk: Walk) -> None:
    for _ in range(4):
        walk.commit()
    before = set(live_files(walk.scene.collection.filesystem, 4).files)
    DeltaTable(walk.scene.collection.uri).update(
        {"n": '"n"'},
        commit_properties=CommitProperties(max_commit_retries=0),
        post_commithook_properties=KEEP_LOG,
    )
    foreign = set(live_files(walk.scene.collection.filesystem, 5).files) - before
    types = {pq.read_schema(Path(walk.scene.collection.uri, path)).field("key").type for path in foreign}
    assert types == {pa.string_view()}
    made = state_of(walk.scene)._made
    walk.commit()
    walk.write_compaction()
    assert walk.beside is not None
    assert foreign & set(walk.beside.inputs)
    walk.commit()
    walk.put_compaction()
    walk.commit()
    assert state_of(walk.scene)._made == made, "nothing was read again"
    walk.check()


def test_a_put_into_a_hole_of_the_log_does_not_count(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer slept while others went on, and maintenance has removed the entries from where it stood."""
    for _ in range(3):
        walk.commit()
    late, states = walk.scene.opened(), KeyStates(Path(walk.scene.root, "late"))
    events = walk.scene.events(4, walk.scene.records(("k1", '{"n":1}')))
    events.rows = states.rows_of(late)
    assert not events.is_empty(late)
    for _ in range(4):
        walk.commit()
    walk.checkpoint()
    for version in range(7):
        Path(walk.scene.collection.uri, deltalog.entry_path(version)).unlink()
    with pytest.raises(committing.PutUnclear, match="hole"):
        events.put(late, 4, events.noted({"mz_tick": "4", "mz_rows": "0", "mz_hash": "0"}))
    states.close()
    walk.commit()
    walk.at = {version: rows for version, rows in walk.at.items() if version >= 7}
    walk.check()


def test_an_entry_that_comes_into_a_hole_while_the_log_is_looked_through_is_no_part_of_it(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        walk.commit()
    walk.checkpoint()
    walk.commit()
    collection, read = walk.scene.opened(), deltalog.read_entry
    right = {commit.mz_timestamp for commit in audit.transactions(collection)}
    at = Path(collection.uri, deltalog.entry_path(3))
    sleeper = at.read_text().replace(f'"version":{max(right) - 2}', '"version":999')

    def after_maintenance(files: Any, version: int) -> Any:
        if version == 3:
            for gone in range(4):
                Path(collection.uri, deltalog.entry_path(gone)).unlink(missing_ok=True)
            at.write_text(sleeper)
        return read(files, version)

    with monkeypatch.context() as patch:
        patch.setattr(deltalog, "read_entry", after_maintenance)
        found = {commit.mz_timestamp for commit in audit.transactions(collection)}
    assert read(collection.filesystem, 3).tick(NAME).mz_timestamp == 999  # type: ignore[union-attr]
    assert max(right) in found
    assert found <= right


def test_a_dying_file_keeps_its_entry_until_a_compaction(walk: Walk) -> None:
    scene = walk.scene
    scene.tick(1, scene.events(1, scene.records(("a", '{"n":1}'), ("b", '{"n":1}'))))
    scene.tick(2, scene.events(2, scene.records(("a", None), ("b", None))))
    (file,) = live_files(scene.collection.filesystem, 2).files.values()
    assert file.deleted == file.rows == 2
    rewritten = scene.states.rewrite(scene.opened(), min_files=2)
    assert rewritten is not None
    assert not rewritten.outputs
    scene.states.put_rewritten(scene.collection, rewritten)
    assert not live_files(scene.collection.filesystem, 3).files
    assert scene.state() == {}


def test_a_state_that_cannot_be_brought_on_is_made_anew_and_the_commit_stands(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk.commit()

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(KeyState, "_apply", full)
        walk.commit()
    assert state_of(walk.scene).version is None
    walk.commit()
    walk.check()


def test_a_version_that_is_refused_again_and_again_ends_as_unclear(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    walk.commit()
    monkeypatch.setattr(puts, "put_entry", lambda *_: "refused")
    with pytest.raises(CommitUnclear):
        walk.scene.tick(2, walk.scene.events(2, walk.scene.records(("a", '{"n":1}'))))
    left = {path.name for path in Path(walk.scene.collection.uri).glob("part-*")}
    assert left == {file.path for file in live_files(walk.scene.collection.filesystem, 1).files.values()}
    assert system_names(walk.scene.rows().schema.names)
