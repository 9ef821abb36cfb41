"""A loader that is killed anywhere, beside ticks, compactions, RESNAPSHOT and maintenance, gets every change once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import pytest
from sqlalchemy import update

from airflow_provider_mzshare.control.catalog.database.clock import wall_ms
from airflow_provider_mzshare.control.catalog.database.models import JobRow
from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.control.catalog.objects.hold_rows import list_holds
from airflow_provider_mzshare.control.lifecycle.read_table import read_table
from airflow_provider_mzshare.control.supervision.maintenance import Maintained, maintain
from airflow_provider_mzshare.core.specs import ColumnSpec, TableSpec
from airflow_provider_mzshare.storage.collections.collection import Collection
from airflow_provider_mzshare.storage.collections.compaction import compact
from tests.support.change_streams import rows_of
from tests.support.held_table import DAY_MS, HOUR_MS, tidy
from tests.support.keyed_cases import SHAPES, drawn
from tests.support.keyed_scene import KeyedScene

ROOT = Path(__file__).parents[3]
PLACES = ("held", "read", "half", "", "stored", "moved", "", "end")
"""Where it dies next; or it does not."""

_LOADER = """
import os, signal, sqlite3, sys
from airflow_provider_mzshare import connect

home, target, die_at = sys.argv[1:]

def here(place):
    if place == die_at:
        os.kill(os.getpid(), signal.SIGKILL)

def rows(batch):
    return list(map(repr, zip(*(column.to_pylist() for column in batch.columns), strict=True)))

stored = sqlite3.connect(target, isolation_level=None)
stored.execute("CREATE TABLE IF NOT EXISTS changes (row TEXT, diff INT)")
stored.execute("CREATE TABLE IF NOT EXISTS done (up_to INT)")
with connect(home=home) as mz, mz.hold("t", name="loader", limit=86400, keep=True) as hold:
    here("held")
    begun = stored.execute("SELECT max(up_to) FROM done").fetchone()[0]
    up_to = mz.status("t").tables[0].upper if begun else hold.at + 1
    asked = {"as_of": begun, "snapshot": False} if begun else {"as_of": hold.at}
    stored.execute("BEGIN IMMEDIATE")
    with mz.changes("t", up_to=up_to, **asked) as batches:
        here("read")
        for batch in batches:
            diffs = batch.column("mz_diff").to_pylist()
            lines = rows(batch.drop_columns(["mz_timestamp", "mz_diff"]))
            stored.executemany("INSERT INTO changes VALUES (?, ?)", zip(lines, diffs))
            here("half")
    stored.execute("INSERT INTO done VALUES (?)", (up_to,))
    stored.execute("COMMIT")
    here("stored")
    hold.move(up_to - 1)
    here("moved")
here("end")
"""


class Loaded:
    """A table ``t``, and what a loader has made of its changes."""

    def __init__(self, folder: Path, seed: int, spec: TableSpec | None, patch: Callable[[str, object], None]) -> None:
        self.folder = folder
        case = drawn(seed, SHAPES["text key"], ticks=40, most=12)
        self.scene = KeyedScene(folder, case, patch)
        self.ticks = iter(case.ticks)
        self.id = self.scene.add_table("t", spec)
        self.later = wall_ms() + 2 * DAY_MS
        self.rounds = 0
        self.files = self.folders = 0
        """That maintenance and the reconciler have removed."""
        self.killed: Counter[str] = Counter()

    def goes_on(self) -> bool:
        """Something happens to the table; False: nothing more."""
        some = list(islice(self.ticks, 4))
        self.scene.run(some)
        collection = Collection.open(self.scene.root, self.scene.point(self.id).data)
        self.rounds += 1
        if self.rounds % 4 == 2:
            with self.scene.catalog.write() as session:
                resnapshot_table(session, self.id)
            self.scene.backfill(self.id)
            with self.scene.catalog.write() as session:
                session.execute(update(JobRow).values(state="finished"))
        elif not collection.keys:
            compact(collection, min_files=2)
        for _ in range(2):
            self.files += self._maintain().data_files
        self.folders += len(tidy(self.scene.catalog, self.scene.root))
        return bool(some)

    def _maintain(self) -> Maintained:
        self.later += 2 * HOUR_MS
        (done,) = maintain(self.scene.catalog, self.scene.root, now_ms=self.later)
        assert not done.trouble
        return done

    def load(self, die_at: str) -> None:
        command = [sys.executable, "-c", _LOADER, str(self.folder), str(self.folder / "target.db"), die_at]
        ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
        assert ran.returncode in (0, -signal.SIGKILL), ran.stderr[-2000:]
        assert (ran.returncode == 0) <= (die_at in ("", "half")), "only without rows there is no half"
        self.killed[die_at] += ran.returncode != 0

    def rows(self) -> Counter[str]:
        with closing(sqlite3.connect(self.folder / "target.db")) as target:
            summed = target.execute("SELECT row, sum(diff) FROM changes GROUP BY row HAVING sum(diff) <> 0")
            return Counter(dict(summed.fetchall()))


APPENDED = TableSpec(
    reference="topic",
    format="json",
    columns=(ColumnSpec(name="n", type="bigint"), ColumnSpec(name="name", type="text")),
)


@pytest.mark.full(seconds=40)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("spec", [None, APPENDED], ids=["keyed", "appended"])
def test_a_loader_that_is_killed_anywhere_gets_every_change_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: TableSpec | None
) -> None:
    table = Loaded(tmp_path, 5, spec, monkeypatch.setattr)
    dying = cycle(PLACES)
    while table.goes_on():
        table.load(next(dying))
    table.load("")
    with table.scene.catalog.read() as session:
        (hold,) = list_holds(session)
    assert hold.at == table.scene.table(table.id).upper - 1
    left = read_table(table.scene.catalog, table.scene.root, "t")
    assert table.rows() == rows_of(left, left.schema.names)
    assert {place for place, times in table.killed.items() if times} >= set(PLACES) - {""}, "it was hardly ever killed"
    assert table.files > 3, "maintenance had hardly anything to remove"
    assert table.folders, "no generation went"
    table.scene.close()
