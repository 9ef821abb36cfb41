"""Reads as of any tick, as the catalog answers them; an answer once given never changes."""

from __future__ import annotations

from typing import Any

from airflow_provider_mzshare.core.ids import CollectionId, ItemId
from airflow_provider_mzshare.core.ticklog import spec_versions
from airflow_provider_mzshare.core.ticklog.state import TableState, Tick
from tests.support.simulation.catalog import Catalog, check_content, check_refused, check_specs
from tests.support.simulation.keyed import KEEP
from tests.support.simulation.keyed_delta import KeyedDelta
from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.topic import ROLES, prefix

Answer = tuple[Any, ...]
"""Its generation, the version of the spec, the rows of its errors and its data; of a keyed table also what became of
these. Rows of a keyed table's data are the records that were applied."""


class Reads:
    def __init__(self, catalog: Catalog, mutant: Mutant) -> None:
        self._catalog, self._mutant = catalog, mutant
        self._given: dict[tuple[ItemId, int], Answer] = {}

    def check(self, table: TableState, tick: Tick) -> Answer | None:
        """Read one table as of one tick. None when the read is refused."""
        answer = self._answer(table, tick.mz_timestamp)
        given = self._given.get((table.table_id, tick.number))
        if given is not None and given != answer and table.since <= tick.mz_timestamp:
            raise Violation(f"{table.table_id} as of tick {tick.number} was {given}, now it is {answer}")
        if answer is not None:
            self._given[table.table_id, tick.number] = answer
        return answer

    def check_all(self, table: TableState) -> None:
        """As of every tick; and each tick's rows are the same in all later answers of its generation."""
        for generation in range(1, table.generation + 1):
            for role in ROLES:
                check_specs(self._catalog, CollectionId(f"{table.table_id}/{generation}/{role}"))
        before: tuple[Answer, Tick] | None = None
        for tick in self._catalog.ticks:
            answer = self.check(table, tick)
            if answer is None:
                continue
            is_same = before is not None and before[0][0] == answer[0]
            if before and is_same and not self._goes_on(table, before[0], answer, prefix(before[1].upper)):
                raise Violation(f"{table.table_id}: rows of ticks up to {before[1].number} came or went later")
            before = answer, tick

    def _goes_on(self, table: TableState, before: Answer, answer: Answer, upto: int) -> bool:
        """A late fence of a keyed table may name events that change no row: so its rows are compared."""
        if answer[2] & upto != before[2]:
            return False
        delta = self._catalog.delta[CollectionId(f"{table.table_id}/{answer[0]}/data")]
        if isinstance(delta, KeyedDelta):
            return delta.expected(before[3] | (answer[3] & ~upto)) == answer[4]
        return bool(answer[3] & upto == before[3])

    def _answer(self, table: TableState, time: int) -> Answer | None:
        if not table.since <= time < table.upper:
            return None
        generation = self._generation(table, time)
        if generation is None:
            return None
        names = [CollectionId(f"{table.table_id}/{generation}/{role}") for role in ROLES]
        versions = [self._version(name, time) for name in names]
        if None in versions:
            self._catalog.counts["reads inside a group"] += 1
            return None
        tick = self._catalog.ticks[self._catalog.numbers[time] - 1]
        rows: list[Any] = []
        for name, version in zip(names, versions, strict=True):
            assert version is not None
            check_content(self._catalog, name, version, tick.upper)
            delta = self._catalog.delta[name]
            rows.append(delta.content[version])
            if isinstance(delta, KeyedDelta):
                rows.append(delta.rows_at(version))
                if delta.kind == KEEP:
                    own = prefix(tick.upper) & ~prefix(table.start)
                    check_refused(self._catalog, delta, version, rows[0], own)
        return (generation, self._spec(table, tick), *rows)

    def _spec(self, table: TableState, tick: Tick) -> int:
        if self._mutant is Mutant.READ_WITH_NEWEST_SPEC:
            return len(self._catalog.specs[table.table_id]) - 1
        return spec_versions.version_at(self._catalog.specs[table.table_id], tick.number)

    def _generation(self, table: TableState, time: int) -> int | None:
        """Before a swap's tick the generation that was replaced answers, as far as it had come."""
        if self._mutant is not Mutant.SWAP_CHANGES_ANSWERS:
            for swap in self._catalog.swaps.get(table.table_id, ()):
                if time < swap.time:
                    return swap.generation if time < swap.upper else None
        return table.generation

    def _version(self, name: CollectionId, time: int) -> int | None:
        """That of the last commit up to this time; None inside a group."""
        if self._mutant is Mutant.COMMITTED_TICKS_ONLY and self._catalog.state.pending:
            time = min(time, self._catalog.state.pending[0].mz_timestamp - 1)
        refuses = self._mutant not in (Mutant.GROUPS_READ_INSIDE, Mutant.SINCE_NOT_MOVED)
        version = 0
        for one in self._catalog.commits[name]:
            if one.mz_timestamp <= time:
                version = one.version
            else:
                return None if refuses and one.first_timestamp <= time else version
        return version
