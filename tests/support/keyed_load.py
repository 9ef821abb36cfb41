"""A large table whose rows change, filled and changed without Spark and without records: for measures and long runs.

Event files are written as the pass writes them. Everything after that is the product's: fold, plan, commit, upkeep.
What the table must hold is kept beside it, as the tick in which each key was last set.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from airflow_provider_mzshare.core.ids import CollectionId
from airflow_provider_mzshare.core.schema import HASH_VERSION
from airflow_provider_mzshare.envelopes.base import DELETES
from airflow_provider_mzshare.formats.registry import format_target
from airflow_provider_mzshare.storage.collections.collection import KEEP_LOG, Collection, create_collection
from airflow_provider_mzshare.storage.collections.commit import CommitResult, FileWritten, commit_tick
from airflow_provider_mzshare.storage.collections.keyed import KeyEvents
from airflow_provider_mzshare.storage.collections.vectors.files import BATCH_ROWS, OPTIONS, RowsFile
from airflow_provider_mzshare.storage.collections.vectors.live_files import LiveFile
from airflow_provider_mzshare.storage.fanout.plan import EVENTS, MemberPlan
from airflow_provider_mzshare.storage.writing.key_states import KeyStates
from tests.perf.peers.task import COLUMNS
from tests.support.delta import read_arrow

UPSERT = "airflow_provider_mzshare.envelopes.upsert:UPSERT"
KEY = "key"
FILE_ROWS = 1_000_000
"""Rows of a file of the table as it begins: about as many as a file of compaction's full size has."""
_STATUSES = pa.array(["new", "paid", "shipped"])
_BEGIN = 1_767_225_600_000_000
"""2026, in microseconds."""

Numbers = npt.NDArray[np.int64]


def member_plan() -> MemberPlan:
    return MemberPlan(
        "u1", format_target("json"), COLUMNS, (("key", KEY),), "", "", envelope=UPSERT, keys=(KEY,)
    )  # fmt: skip


def fill(collection: Collection, keys: int, *, first: int = 0, tick: int = 0) -> None:
    """The rows of keys 0, 1, … as one commit that carries no tick, which is what a table had before its first one.

    :param first: begin with this key. :param tick: that these rows seem to come from.
    """
    files = [_written(collection, at, min(at + FILE_ROWS, keys), tick) for at in range(first, keys, FILE_ROWS)]
    collection.table.create_write_transaction(
        [AddAction(file.path, file.size, {}, file.modified, True, file.stats) for file in files],
        mode="append",
        schema=collection.table.schema(),
        post_commithook_properties=KEEP_LOG,
    )
    collection.refresh()


def _written(collection: Collection, first: int, last: int, tick: int) -> LiveFile:
    """Its row groups are those that a compaction makes."""
    with closing(RowsFile(collection.uri, collection.filesystem, collection.schema)) as file:
        for at in range(first, last, BATCH_ROWS):
            file.write(rows_of(np.arange(at, min(at + BATCH_ROWS, last)), tick, collection.schema))
    return file.finished()


def rows_of(keys: Numbers, tick: int, schema: pa.Schema) -> pa.Table:
    """The rows that a tick gives to these keys, in the columns of ``schema``. Their ``id`` says tick and key."""
    mixed = (keys * 7_919 + tick * 104_729) % 1_000_003
    texts = pa.array(keys).cast(pa.string())
    columns = {
        "id": pa.array(keys + (tick << 32)),
        "customer": pc.binary_join_element_wise("customer", pa.array(mixed % 5_000).cast(pa.string()), "-"),
        "amount": pa.array(mixed / 100),
        "status": _STATUSES.take(pa.array(mixed % 3)),
        "created_at": pa.array(_BEGIN + mixed * 1_000_000).cast(pa.timestamp("us", "UTC")),
        "note": pc.binary_join_element_wise("note", pa.array(mixed * 991).cast(pa.string()), "x" * 46, " "),
        KEY: pc.binary_join_element_wise("k", texts, ""),
        "_mz_tick": pa.array(np.full(keys.size, tick)),
        "_mz_partition": pa.array(np.zeros(keys.size, np.int32)),
        "_mz_offset": pa.array(np.arange(keys.size)),
    }
    return pa.table({name: columns[name] for name in schema.names}).cast(schema)


class Changes:
    """Draws the keys of each tick evenly: 90 of 100 change, 5 come and 5 go."""

    def __init__(self, keys: int, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self.live = np.arange(keys)
        self.set_in: dict[int, int] = {}
        """The tick that has set a key last, of those that some tick has set."""
        self._next = keys

    def draw(self, count: int) -> tuple[Numbers, Numbers]:
        """The keys that get a row, and those that lose theirs; no key is in both."""
        each = count // 20
        places = self._drawn(count - each)
        gone, changed = places[:each], places[each:]
        come = np.arange(self._next, self._next + each)
        left, updated = self.live[gone], self.live[changed]
        self.live[gone], self._next = come, self._next + each
        return np.concatenate([updated, come]), left

    def messages(self, tick: int, count: int) -> list[tuple[int, bytes | None]]:
        """The next tick's records as a topic would have them: keys, and their rows as JSON."""
        keys, gone = self.draw(count)
        self.note(tick, keys, gone)
        rows = rows_of(keys, tick, member_plan().schema).select([name for name, _ in COLUMNS]).to_pylist()
        values = [json.dumps(row, default=lambda moment: moment.isoformat()).encode() for row in rows]
        return [*zip(keys.tolist(), values, strict=True), *((key, None) for key in gone.tolist())]

    def note(self, tick: int, keys: Numbers, gone: Numbers) -> None:
        self.set_in.update(dict.fromkeys(keys.tolist(), tick))
        for key in gone.tolist():
            self.set_in.pop(key, None)

    def wrong(self, rows: pa.Table) -> Iterator[str]:
        """What a table has otherwise than it should."""
        ids = rows.column("id").to_numpy()
        keys, ticks = ids & 0xFFFFFFFF, ids >> 32
        wanted = np.sort(self.live)
        if not np.array_equal(np.sort(keys), wanted):
            yield f"{keys.size:,} rows of {np.unique(keys).size:,} keys, and there should be {wanted.size:,}"
            return
        for key, tick in zip(keys.tolist(), ticks.tolist(), strict=True):
            if self.set_in.get(key, 0) != tick:
                yield f"key {key} was set in {tick}, not in {self.set_in.get(key, 0)}"

    def _drawn(self, count: int) -> Numbers:
        found: Numbers = np.unique(self._random.integers(0, self.live.size, count))
        while found.size < count:
            found = np.unique(np.append(found, self._random.integers(0, self.live.size, count - found.size)))
        return self._random.permutation(found)


class KeyedLoad:
    """One collection with so many keys, and the ticks that change it.

    :param vectors: else it is merged by delta-rs.
    """

    NAME = CollectionId("u1-keyed")

    def __init__(self, root: Path, keys: int, *, vectors: bool = True, name: CollectionId = NAME) -> None:
        self.root, self.states = str(root), KeyStates(root / "scratch")
        self.member = replace(member_plan(), data_path=str(root / name), errors_path=str(root / "errors"))
        create_collection(self.root, name, self.member.schema, keys=self.member.keys, vectors=vectors)
        self.collection = Collection.open(self.root, name)
        fill(self.collection, keys)
        self.changes, self.ticks = Changes(keys), 0
        Path(self.collection.uri, EVENTS).mkdir()

    def events(self, count: int) -> KeyEvents:
        """Of the next tick, in a file that the pass could have written."""
        self.ticks += 1
        keys, gone = self.changes.draw(count)
        self.changes.note(self.ticks, keys, gone)
        member = self.member
        table = events_of(keys, gone, self.ticks, member.events_schema)
        path = f"{EVENTS}/part-{uuid.uuid4()}.parquet"
        file = Path(self.collection.uri, path)
        pq.write_table(table, file, **OPTIONS)
        written = FileWritten(path, file.stat().st_size, "", time.time())
        rows = self.states.rows_of(self.collection)
        return KeyEvents([written], member.events_schema, member.keys, member.keyed_envelope, HASH_VERSION, rows)

    def commit(self, content: KeyEvents, at: int | None = None) -> CommitResult:
        """What a tick does after the pass, but for the catalog.

        :param at: its time, where it is not its number.
        """
        result = commit_tick(
            self.collection,
            mz_timestamp=self.ticks if at is None else at,
            content=content,
            metadata={"mz_tick": str(self.ticks), "mz_rows": "0", "mz_hash": "0", "mz_source": "u0"},
            knows=lambda _: True,
            force=False,
        )
        for file in content.files:
            Path(self.collection.uri, file.path).unlink()
        return result

    def wrong(self) -> Iterator[str]:
        name = self.collection.collection_id
        at = Collection.open(self.root, name).delta_version
        return self.changes.wrong(read_arrow(self.root, name, at))

    def close(self) -> None:
        self.states.close()


def events_of(keys: Numbers, gone: Numbers, tick: int, schema: pa.Schema) -> pa.Table:
    """In no order of keys. What takes a row away has nothing but its key and its place."""
    plain = schema.remove(schema.get_field_index(DELETES))
    rows = rows_of(np.concatenate([keys, gone]), tick, plain)
    deletes = np.arange(rows.num_rows) >= keys.size
    kept = [
        rows.column(name) if name == KEY or name.startswith("_mz_") else _blanked(rows.column(name), deletes)
        for name in plain.names
    ]
    return pa.Table.from_arrays([*kept, pa.chunked_array([pa.array(deletes)])], schema=schema)


def _blanked(column: pa.ChunkedArray, where: npt.NDArray[np.bool_]) -> pa.ChunkedArray:
    return pc.if_else(pa.array(where), pa.scalar(None, column.type), column)
