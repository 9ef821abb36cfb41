"""Readers of the model of journals, and the maintenance that takes away what they do not need any more."""

from __future__ import annotations

from collections.abc import Collection, Generator
from random import Random

from airflow_provider_mzshare.core.journal.retention import unnamed_may_go
from airflow_provider_mzshare.core.journal.state import Segment
from tests.support.journal_world import TORN, Catalog, Disk, Mutant, Violation, checksum_of, messages_in

GRACE = 60
"""In steps. A read that takes longer begins anew."""

Steps = Generator[None, None, None]


class Readers:
    """What a reader saw at an offset never changes, and it never meets bytes that are missing."""

    def __init__(self, random: Random, disk: Disk, catalog: Catalog) -> None:
        self.random, self.disk, self.catalog, self.mutant = random, disk, catalog, catalog.mutant
        self.now = 0
        self.running: list[tuple[int, Steps]] = []
        """By partition."""
        self.removals: list[tuple[int, Segment]] = []
        self.log: dict[int, list[int]] = {number: [] for number in catalog.states}
        """What the reader that needs everything has read."""
        self.seen: dict[tuple[int, int], int] = {}
        self.unknown: set[int] = set()
        """Partitions that nobody looks at any more."""

    def start(self) -> None:
        partition = self.random.choice(list(self.log))
        state = self.catalog.states[partition]
        if partition in self.unknown or len(self.running) > 3 or state.begin == state.end:
            return
        lower = self.random.randrange(state.begin, state.end)
        steps = self._read(partition, lower, self.random.randint(lower, state.end))
        if self.random.random() < 0.6 and partition not in [number for number, _steps in self.running]:
            steps = self.read_on(partition)
        self.running.append((partition, steps))

    def step(self) -> None:
        if not self.running:
            return
        one = self.random.choice(self.running)
        try:
            next(one[1])
        except StopIteration:
            self.running.remove(one)

    def read_on(self, partition: int) -> Steps:
        """Everything, in order: what it has not read yet must not go."""
        log, state = self.log[partition], self.catalog.states[partition]
        if state.begin > len(log):
            raise Violation(f"partition {partition} begins at {state.begin}, and {len(log)} is still needed")
        yield from self._read(partition, len(log), state.end, log)

    def _read(self, partition: int, lower: int, upper: int, log: list[int] | None = None) -> Steps:
        if lower < self.catalog.states[partition].begin:
            return
        rows, began = self.catalog.range(partition, lower, upper), self.now
        for row in rows:
            yield
            if self.now - began > GRACE or partition in self.unknown:
                return
            file = self.disk.files.get((partition, row.epoch, row.number))
            elements = file.elements[: row.length] if file else []
            if len(elements) < row.length or TORN in elements:
                raise Violation(f"partition {partition}: bytes of {row} are missing: {elements}")
            if checksum_of(elements) != row.checksum:
                raise Violation(f"partition {partition}: {row} holds {elements}")
            if self.mutant is Mutant.WHOLE_FILE_READ and file:
                elements = file.elements
            self._look(partition, row, messages_in(elements), lower, log)

    def _look(self, partition: int, row: Segment, elements: list[int], lower: int, log: list[int] | None) -> None:
        end = row.first + len(elements) if self.mutant is Mutant.WHOLE_FILE_READ else row.end
        for offset, message in zip(range(row.first, end), elements, strict=False):
            if offset < lower:
                continue
            if self.seen.setdefault((partition, offset), message) != message:
                raise Violation(f"partition {partition} at {offset}: {self.seen[partition, offset]}, then {message}")
            if log is not None and offset == len(log):
                log.append(message)

    def maintain(self, closed: Collection[int]) -> bool:
        """Whether files are gone that rows named.

        :param closed: partitions that are not trimmed.
        """
        for partition in self.log.keys() - self.unknown:
            if partition not in closed:
                self._trim(partition)
            self._sweep(partition)
        due = [one for at, one in self.removals if at <= self.now]
        self.removals = [(at, one) for at, one in self.removals if at > self.now]
        for one in due:
            self.catalog.segments.pop((one.partition, one.epoch, one.number), None)
            self.disk.files.pop((one.partition, one.epoch, one.number), None)
        return bool(due)

    def _trim(self, partition: int) -> None:
        begin = self.catalog.states[partition].begin
        self.catalog.trim(partition, len(self.log[partition]))
        wait = 0 if self.mutant is Mutant.REMOVED_AT_ONCE else GRACE + 1
        now_begins = self.catalog.states[partition].begin
        gone = [one for one in self.catalog.rows(partition) if one.first >= begin and one.end <= now_begins]
        if now_begins > begin:
            self.removals += [(self.now + wait, one) for one in gone]

    def _sweep(self, partition: int) -> None:
        state = self.catalog.states[partition]
        epoch = state.lease.epoch
        for name in [name for name in self.disk.files if name[0] == partition and name not in self.catalog.segments]:
            left_out = {
                Mutant.SWEPT_CURRENT: name[1] == epoch,
                Mutant.SWEPT_UNKNOWN: name[1] > epoch,
                Mutant.SWEPT_NEWER: name[1] < epoch,
            }
            if unnamed_may_go(state, *name[1:]) or left_out.get(self.mutant):
                del self.disk.files[name]
