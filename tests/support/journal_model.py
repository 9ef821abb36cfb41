"""Writers, readers and maintenance of a journal, without files or a database: chance says whose step is next.

Between two steps a process may be frozen for long, die, or lose its power; a zombie goes on after it was taken over;
answers get lost, and come true later; the catalog is put back to an old copy. See ``journal_world`` for the mutants.

What was begun after something was announced proves that it was. So only of the very last announcement of a writer that
died, a copy can lack something that nobody can tell from bytes that were never announced: partitions of which that is
true are not looked at any more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from airflow_provider_mzshare.core.ids import JobId
from airflow_provider_mzshare.core.journal import rules
from airflow_provider_mzshare.core.journal.rules import (
    AnnouncedOtherwise,
    BatchDiffers,
    DuplicateBatch,
    JournalBehind,
)
from airflow_provider_mzshare.core.journal.state import Batch, OnDisk, Segment
from airflow_provider_mzshare.core.ticklog.state import Holder, Lease
from airflow_provider_mzshare.errors import Fenced, LeaseTaken, MzShareError
from tests.support.journal_clients import Clients, Request
from tests.support.journal_readers import Readers, Steps
from tests.support.journal_world import Catalog, Copy, Disk, Mutant, Name, Violation, begun_at, checksum_of

STEPS = 900
PARTITIONS = (0, 1)
LONGEST = 6
"""Messages of a segment, more or less."""

SURPRISING = (Mutant.NONE, Mutant.NEWEST_TRIMMED, Mutant.STATE_FIRST, Mutant.DOUBTFUL_SEAL, Mutant.BEGUN_EARLY)
"""With these, a writer that is refused for nothing is what must be noticed."""

Announcement = tuple[Holder, Segment | None, Segment, tuple[Batch, ...]]


@dataclass(eq=False)
class Process:
    steps: Steps = field(default_factory=lambda: (_ for _ in ()))
    partition: int = 0
    compared: Lease | None = None
    """With the files, before the claim."""
    holder: Holder | None = None
    group: list[Request] = field(default_factory=list)
    wanted: Segment | None = None
    """What it asked for last."""
    doubtful: bool = False
    """It has asked for its group to be announced, and does not know whether it was."""
    frozen: bool = False


@dataclass
class Open:
    """What a writer knows of its partition and its file."""

    end: int
    number: int = 0
    segment: Segment | None = None
    content: list[int] = field(default_factory=list)
    """Of the file, as far as it was written."""
    epoch: int = 0
    is_open: bool = False
    """Whether there is a file, all of which is announced."""


class Lost(Exception):
    """An answer that does not come, to a writer that takes it for a refusal."""


class NoAnswer(Exception):
    """A writer has to end before it knows what counts."""


class Model:
    def __init__(self, seed: int, mutant: Mutant = Mutant.NONE) -> None:
        self.random, self.mutant, self.now = random.Random(seed), mutant, 0
        self.disk, self.catalog = Disk(self.random), Catalog(PARTITIONS, mutant)
        self.clients, self.readers = Clients(self.random), Readers(self.random, self.disk, self.catalog)
        self.writers: list[Process] = []
        self.delayed: list[Announcement] = []
        self.copies: list[Copy] = []
        self.restores, self.restored = self.random.random() < 0.4, False
        self.closed: dict[int, int] = {}
        """Partitions of which the catalog has lost something that it can tell, and where they ended in the copy."""
        self.once = self.random.random() < 0.3
        """Each flush is a file of its own, as in an object store."""
        self.promised: dict[int, tuple[int, int]] = {}
        """What files tell for good, whatever becomes of their writers: an epoch, and how far it has announced."""

    # ── chance ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        for self.now in range(STEPS):
            self.clients.now = self.readers.now = self.now
            self._event()
            self._check_closed()
        self._cut_power()
        for partition in set(PARTITIONS) - self.readers.unknown:
            for _ in self.readers.read_on(partition):
                pass
        states = self.catalog.states
        logs = {number: log[: states[number].end] for number, log in self.readers.log.items()}
        self.clients.check({number: log for number, log in logs.items() if number not in self.readers.unknown})

    def _event(self) -> None:
        chance = self.random.random()
        if chance < 0.70:
            self._step()
        elif chance < 0.82:
            self.readers.step()
        elif chance < 0.87:
            self.clients.send()
        elif chance < 0.90:
            self._start_writer()
        elif chance < 0.93:
            self.readers.start()
        elif chance < 0.95:
            if self.readers.maintain(self.closed):
                self.copies.clear()
            elif self.random.random() < 0.2:
                self._restore_some()
        elif chance < 0.96 and self.delayed:
            with suppress(MzShareError):
                self.catalog.announce(*self.delayed.pop(0))
        else:
            self._mishap()

    def _step(self) -> None:
        if awake := [process for process in self.writers if not process.frozen]:
            process = self.random.choice(awake)
            try:
                next(process.steps)
            except StopIteration:
                self._end(process)

    def _end(self, process: Process) -> None:
        """Its clients hear nothing of what it was doing."""
        self.writers.remove(process)
        for request in process.group:
            self.clients.unanswered(request)

    def _mishap(self) -> None:
        kind = self.random.random()
        if kind < 0.4 and self.writers:
            process = self.random.choice(self.writers)
            process.frozen = not process.frozen
        elif kind < 0.6 and self.writers:
            self._end(self.random.choice(self.writers))
        elif kind < 0.66:
            self._cut_power()
        elif kind < 0.74 and self.writers:
            self.clients.send_again(self.random.choice(self.writers).group)
        elif kind < 0.92:
            self.copies.append(self.catalog.copy())
        else:
            self._restore_some()

    def _cut_power(self) -> None:
        for process in list(self.writers):
            self._end(process)
        self.readers.running.clear()
        self.delayed.clear()
        self.disk.cut_power()

    # ── writers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start_writer(self) -> None:
        if len(self.writers) < 5:
            process = Process(partition=self.random.choice(PARTITIONS))
            process.steps = self._write(process)
            self.writers.append(process)

    def _write(self, process: Process) -> Steps:
        try:
            yield from self._lead(process, JobId(f"job-{self.random.random()}"))
        except LeaseTaken:
            pass
        except Fenced:
            self.clients.counts["fenced"] += 1
            self._fenced(process)
        except JournalBehind as error:
            self.clients.counts["behind"] += 1
            self._surprised(error)
        except AnnouncedOtherwise as error:
            self._surprised(error)
        except NoAnswer:
            with suppress(Fenced):
                self.catalog.release(process.partition, self._holder(process))

    def _surprised(self, error: MzShareError) -> None:
        """Where all rules hold and the catalog is what it was, a holder is never told anything else than it believes.

        With most mutants that alone does not count: something must have become of it.
        """
        if not self.restored and self.mutant in SURPRISING:
            raise Violation(f"nothing was restored: {error}") from error

    def _fenced(self, process: Process) -> None:
        """What its last announcement asked for never comes true any more. Whether it had, the rows say for good."""
        wanted = process.wanted
        if wanted is None or not process.doubtful or self.mutant is Mutant.FENCED_IS_REFUSED:
            for request in process.group:
                if not request.batch:
                    self.clients.refuse(request)
        elif not self.restored:
            lower = wanted.end - sum(map(len, process.group))
            found = self.catalog.range(process.partition, lower, wanted.end)
            name = (wanted.epoch, wanted.number)
            if any((one.epoch, one.number) == name and one.end >= wanted.end for one in found):
                self._done(process, process.group, lower)
            elif self.catalog.states[process.partition].begin <= lower:
                for request in process.group:
                    if not request.batch:
                        self.clients.refuse(request)

    def _lead(self, process: Process, job: JobId) -> Steps:
        partition = process.partition
        known = self.catalog.states[partition].lease.epoch
        yield
        early = self.catalog.states[partition]
        if self.mutant is Mutant.STATE_FIRST:
            yield
        greatest, begun = self.disk.greatest_epoch(partition), self.disk.begun(partition, known)
        if self.mutant is not Mutant.STATE_FIRST:
            yield
            early = self.catalog.states[partition]
        state = early
        greatest = 0 if self.mutant is Mutant.UNKNOWN_EPOCH else greatest
        begun = 0 if self.mutant is Mutant.BEGUN_UNCHECKED else begun
        rules.check_files(state, OnDisk(known, greatest, begun))
        process.compared = state.lease
        yield
        process.holder = self.catalog.claim(partition, job, state.lease)
        yield
        state = self.catalog.states[partition]
        mine = Open(state.end, epoch=process.holder.epoch)
        if self.mutant is Mutant.PREDECESSORS_FILE and state.segment is not None:
            mine.segment, mine.epoch, mine.number = state.segment, state.segment.epoch, state.segment.number
            mine.content = self.disk.files[partition, mine.epoch, mine.number].elements[: state.segment.length]
        stays = self.random.choice((0.95, 0.95, 0.95, 0.6))
        while self.random.random() < stays:
            if not (group := self.clients.take()):
                self.catalog.beat(partition, process.holder)
                yield
                continue
            process.group, process.wanted, process.doubtful = group, None, False
            yield from self._put(process, mine)
            process.group = []
        if mine.is_open:
            yield from self._seal(process, mine, mine.end)
        self.catalog.release(partition, process.holder)

    def _seal(self, process: Process, mine: Open, end: int) -> Steps:
        """The next flush would begin there."""
        if self.mutant is not Mutant.NO_SEAL:
            if self.once:
                mine.content, mine.number = [], mine.number + 1
            name: Name = (process.partition, mine.epoch, mine.number)
            self.disk.put(name)
            self.disk.write(name, len(mine.content), [begun_at(end)])
            yield
            self.disk.flush(name)
            self.disk.flush_folder(name)
        self._promise(process.partition, mine.epoch, end)
        yield

    def _promise(self, partition: int, epoch: int, end: int) -> None:
        self.promised[partition] = max(self.promised.get(partition, (0, 0)), (epoch, end))

    def _put(self, process: Process, mine: Open) -> Steps:
        if self.random.random() < 0.5:
            self._settle(process, self._announced(process.group))
        while process.group:
            group, lower = list(process.group), mine.end
            before = mine.segment
            yield from self._append(process, mine, [message for request in group for message in request.messages])
            after, batches = self._wanted(process, mine, before, group)
            process.wanted, process.doubtful = after, False
            if self.mutant is Mutant.ACKNOWLEDGED_EARLY:
                self._done(process, group, lower)
            if self.mutant is Mutant.BEGUN_EARLY:
                name = (process.partition, mine.epoch, mine.number)
                self.disk.write(name, len(mine.content), [begun_at(after.end)])
            try:
                yield from self._announce(process, (self._holder(process), before, after, batches))
            except (DuplicateBatch, BatchDiffers) as error:
                self._settle(process, error.batches)
                self._abandon(mine, before, after)
                continue
            except Lost:
                self._abandon(mine, None, after)
                mine.end = self.catalog.states[process.partition].end
                continue
            mine.segment, mine.end, mine.is_open = after, after.end, True
            self._done(process, group, lower)
            if after.messages >= LONGEST or self.once:
                mine.segment = None

    def _holder(self, process: Process) -> Holder:
        assert process.holder is not None
        return process.holder

    def _abandon(self, mine: Open, before: Segment | None, after: Segment) -> None:
        """The bytes that were refused stay where they are: nothing is announced behind them."""
        if self.mutant is Mutant.REFUSED_IN_PLACE:
            mine.segment, mine.number = before, after.number
            return
        mine.segment, mine.content, mine.is_open = None, [], False

    def _append(self, process: Process, mine: Open, elements: Sequence[int]) -> Steps:
        fresh = mine.segment is None and not (self.mutant is Mutant.REFUSED_IN_PLACE and mine.content)
        if fresh:
            mine.content, mine.number, mine.epoch = [], mine.number + 1, self._holder(process).epoch
            while not self.disk.put((process.partition, mine.epoch, mine.number)):
                mine.number += 1
            yield
        name: Name = (process.partition, mine.epoch, mine.number)
        elements = [begun_at(mine.end), *elements]
        part = self.random.randint(0, len(elements))
        self.disk.write(name, len(mine.content), elements[:part])
        yield
        self.disk.write(name, len(mine.content) + part, elements[part:])
        mine.content = [*mine.content, *elements]
        yield
        if self.mutant is not Mutant.NO_FLUSH:
            self.disk.flush(name)
        if self.mutant is not Mutant.NO_FOLDER_FLUSH:
            self.disk.flush_folder(name)
        self._promise(process.partition, mine.epoch, mine.end)
        yield

    def _wanted(
        self, process: Process, mine: Open, before: Segment | None, group: Sequence[Request]
    ) -> tuple[Segment, tuple[Batch, ...]]:
        first, batches = mine.end, []
        for request in group:
            if request.batch:
                digest = str(request.messages)
                batches.append(Batch(request.batch, process.partition, first, first + len(request), digest))
            first += len(request)
        length, start = len(mine.content), before.first if before else mine.end
        checksum = checksum_of(mine.content)
        after = Segment(process.partition, mine.epoch, mine.number, start, first, length, checksum, length)
        return after, tuple(batches)

    def _announce(self, process: Process, wanted: Announcement) -> Steps:
        """Asked again until there is an answer. One that is lost may have been yes, no, or not yet."""
        while (chance := self.random.random()) < 0.2:
            self.clients.counts["lost answers"] += 1
            process.doubtful = True
            if chance < 0.1:
                with suppress(MzShareError):
                    self.catalog.announce(*wanted)
            elif chance < 0.15:
                self.delayed.append(wanted)
            if self.mutant is Mutant.LOST_IS_REFUSED:
                raise Lost
            if self.random.random() < 0.2:
                if self.mutant is Mutant.DOUBTFUL_SEAL:
                    self.disk.write(
                        (process.partition, wanted[2].epoch, wanted[2].number),
                        wanted[2].length,
                        [begun_at(wanted[2].end)],
                    )
                raise NoAnswer
            yield
        self.catalog.announce(*wanted)
        yield

    def _announced(self, group: Sequence[Request]) -> list[Batch]:
        found = [self.catalog.batches.get(request.batch or "") for request in group]
        return [batch for batch in found if batch is not None]

    def _settle(self, process: Process, announced: Sequence[Batch]) -> None:
        """Answer for the batches that are announced; the others are still to be written."""
        by_id = {batch.id: batch for batch in announced}
        for request in list(process.group):
            if (batch := by_id.get(request.batch or "")) is None:
                continue
            self.clients.counts["duplicates"] += 1
            process.group.remove(request)
            if batch.digest == str(request.messages) or self.mutant is Mutant.DIGESTS_UNCHECKED:
                self.clients.acknowledge(request, batch.partition, batch.first)
            else:
                self.clients.refuse(request)

    def _done(self, process: Process, group: Sequence[Request], first: int) -> None:
        for request in group:
            self.clients.acknowledge(request, process.partition, first)
            first += len(request)
        process.group, process.doubtful = [], False

    # ── a catalog that is put back ────────────────────────────────────────────────────────────────────────────────────

    def _restore_some(self) -> None:
        if self.restores and not self.restored and self.copies:
            self._restore(self.random.choice(self.copies[-1:] if self.random.random() < 0.5 else self.copies))

    def _restore(self, copy: Copy) -> None:
        """Once per run. Whoever was fenced before dies of it: an old copy may say that it holds its lease. So does
        whoever is about to claim one, and has compared the files with just what the copy says again."""
        self.restored, before = True, self.catalog.copy()
        for process in list(self.writers):
            holder, lease = process.holder, before.states[process.partition].lease
            fenced = holder is not None and (lease.job_id, lease.epoch) != (holder.job_id, holder.epoch)
            if fenced or (holder is None and process.compared in (None, copy.states[process.partition].lease)):
                self._end(process)
        self.delayed.clear()
        for partition in PARTITIONS:
            was, now = before.states[partition], copy.states[partition]
            if (was.end, was.segment) == (now.end, now.segment):
                continue
            tells = self.promised.get(partition, (0, 0)) > (now.lease.epoch, now.end)
            if tells or self.disk.greatest_epoch(partition, named=True) > now.lease.epoch:
                self.closed[partition] = self.clients.lost[partition] = now.end
            else:
                self.readers.unknown.add(partition)
                self.clients.lost[partition] = 0
        self.readers.removals.clear()
        self.catalog.restore(copy)

    def _check_closed(self) -> None:
        for partition, end in self.closed.items():
            if self.catalog.states[partition].end != end:
                raise Violation(f"partition {partition} goes on at {end}, which was lost")
