"""A tick that is executed again, its topic compacted in between: no record is a row and an error row, or neither.

Only values that were not sent are in danger: they are those of rows, so error rows depend on what else was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from airflow_provider_mzshare.control.catalog.log.arrivals import resnapshot_table
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.ticklog.state import Left
from airflow_provider_mzshare.errors import Fenced
from airflow_provider_mzshare.storage.collections import keyed
from airflow_provider_mzshare.storage.writing import member_commits
from tests.integration.verification.test_debezium import GONE, KEPT, ONE, PLAIN
from tests.support.debezium_oracle import DebeziumCase
from tests.support.driven import DrivenBackfill, DrivenIngestion
from tests.support.keyed_cases import Step, assemble
from tests.support.keyed_scene import KeyedScene

OTHER = b'{"op": "c", "after": {"id": 7, "name": "other", "big": "small"}}'
WAYS = {"a row, then an error": ([OTHER], [ONE, KEPT], ONE), "an error, then a row": ([ONE], [GONE, KEPT], GONE)}
"""The first tick, the second one, and what is gone of it when it is read again."""


class Killed(Exception):
    """At a point of a commit."""


class Attempts:
    """A table whose second tick is executed again and again."""

    def __init__(self, scene: KeyedScene, patch: pytest.MonkeyPatch, vectors: bool, removed: bytes) -> None:
        self.scene, self._patch, self._removed = scene, patch, removed
        self.spec = PLAIN.spec.model_copy(update={"deletion_vectors": vectors})

    def compact(self) -> None:
        self.scene.upstream = [each for each in self.scene.upstream if each.value != self._removed]

    def dies(self, label: str, at: Callable[[], None] | None = None) -> None:
        """The next time that this point is passed; or something else happens then."""
        left = [1]

        def passed(name: str) -> None:
            if name == label and left:
                left.clear()
                if at is None:
                    raise Killed
                at()

        for module in (member_commits, keyed):
            self._patch.setattr(module, "crashpoint", passed)

    def check_stalled(self, table: ItemId) -> None:
        found = self.scene.table(table)
        assert found.status == "stalled"
        assert found.reason == (
            "partition 0, offset 2 has a value that was not sent, and is taken from another row than in an earlier "
            "attempt: the upstream has removed records in between. RESNAPSHOT reads the table anew"
        )

    def check_healed(self, table: ItemId) -> None:
        """By what is left of the topic."""
        with self.scene.catalog.write() as session:
            resnapshot_table(session, table)
        self.scene.backfill(table)
        self.scene.run(self.scene.case.ticks[2:])
        case = DebeziumCase(PLAIN, self.scene.case.ticks, tuple(self.scene.upstream))
        self.scene.check_state(case.states()[3], texts=False)


@pytest.fixture(params=WAYS)
def values(request: pytest.FixtureRequest) -> tuple[Sequence[bytes], Sequence[bytes], bytes]:
    return WAYS[request.param]


@pytest.fixture(params=[True, False], ids=["vectors", "merged"])
def attempts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    values: tuple[Sequence[bytes], Sequence[bytes], bytes],
) -> Iterator[Attempts]:
    first, second, removed = values
    made = assemble(PLAIN, [[Step(0, None, value) for value in tick] for tick in (first, second, [OTHER])])
    scene = KeyedScene(tmp_path, DebeziumCase(PLAIN, made.ticks, made.records), monkeypatch.setattr)
    yield Attempts(scene, monkeypatch, request.param, removed)
    scene.close()


def test_a_tick_that_died_between_errors_and_data(attempts: Attempts) -> None:
    """Its errors are committed also if there are none: the next attempt finds another one."""
    scene = attempts.scene
    table = scene.add_table("t", attempts.spec)
    scene.run(scene.case.ticks[:1])
    attempts.dies("between_commits")
    with suppress(Killed):
        scene.run(scene.case.ticks[1:2])
    attempts.compact()
    scene.restart()
    assert scene.app.finish_pending() == [2]
    attempts.check_stalled(table)
    attempts.check_healed(table)


def test_a_tick_that_reads_the_same_again(attempts: Attempts) -> None:
    scene = attempts.scene
    scene.add_table("t", attempts.spec)
    scene.run(scene.case.ticks[:1])
    attempts.dies("between_commits")
    with suppress(Killed):
        scene.run(scene.case.ticks[1:2])
    scene.restart()
    assert scene.app.finish_pending() == [2]
    scene.run(scene.case.ticks[2:])
    scene.check_state(DebeziumCase(PLAIN, scene.case.ticks, tuple(scene.upstream)).states()[3], texts=False)


def test_a_zombie_that_puts_its_data_when_the_next_attempt_has_looked(attempts: Attempts) -> None:
    """It has planned its data; then another app reads the tick, and dies where its errors would be committed."""
    scene = attempts.scene
    table = scene.add_table("t", attempts.spec)
    scene.run(scene.case.ticks[:1])
    others: list[DrivenIngestion] = []

    def another() -> None:
        attempts.compact()
        attempts.dies("between_commits")
        others.append(DrivenIngestion(scene.catalog, scene.root, scene.source_id, scene.records, JobId("another")))
        with suppress(Killed):
            others[0].finish_pending()
        attempts.dies("nowhere")

    attempts.dies("keyed_planned", another)
    with pytest.raises(Fenced):
        scene.run(scene.case.ticks[1:2])
    attempts.check_stalled(table)
    scene.restart()
    attempts.check_healed(table)


def test_a_backfill_that_died_between_errors_and_data(attempts: Attempts) -> None:
    """The next run takes other groups."""
    scene = attempts.scene
    scene.run(scene.case.ticks[:2])
    table = scene.add_table("t", attempts.spec)
    attempts.dies("between_commits")
    with pytest.raises(Killed):
        scene.backfill(table)
    attempts.compact()
    scene.run(scene.case.ticks[2:])
    backfill = DrivenBackfill(scene.catalog, scene.root, table, scene.source_id, scene.records, run=2)
    group = backfill.next_group()
    assert group is not None
    outcomes = backfill.execute(group)
    backfill.follow(group, outcomes)
    assert isinstance(outcomes[table], Left)
    attempts.check_stalled(table)
