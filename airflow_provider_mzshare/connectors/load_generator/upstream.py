"""A load generator as an upstream: what it makes, and how far its clock has come. Needs no connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mzshare.connectors.base import Inspection, ReferenceInfo
from airflow_provider_mzshare.connectors.load_generator.generators import OUTPUTS, records
from airflow_provider_mzshare.connectors.load_generator.plan import (
    VERSION,
    GeneratorPlan,
    Range,
    new_incarnation,
    read_incarnation,
)
from airflow_provider_mzshare.connectors.load_generator.specs import DATABASE, LoadGeneratorSpec
from airflow_provider_mzshare.connectors.records import size_of
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import ColumnSpec, Start
from airflow_provider_mzshare.errors import UpstreamChanged

SAMPLES = 20


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class GeneratorInfo:
    incarnation: str
    partitions: tuple[int, ...]


def plan_of(spec: LoadGeneratorSpec, incarnation: str) -> GeneratorPlan:
    """:param incarnation: tells when the clock began."""
    found = read_incarnation(incarnation)
    if found is None:
        raise UpstreamChanged("generator_changed", f"{incarnation!r} is no incarnation of a load generator")
    return GeneratorPlan(
        generator=spec.generator,
        seed=spec.seed,
        begin_ms=found[1],
        tick_interval_ms=spec.tick_interval_ms,
        batch_size=spec.batch_size,
        up_to=spec.up_to,
        keys=spec.keys,
        value_size=spec.value_size,
        key_value_partitions=spec.partitions,
    )


class LoadGeneratorUpstream:
    """:param incarnation: of the source, once it is made; a new one begins its clock now.
    :param now: the clock, in milliseconds since 1970.
    """

    def __init__(
        self, spec: LoadGeneratorSpec, incarnation: str | None = None, *, now: Callable[[], int] = wall_ms
    ) -> None:
        self._now = now
        self._incarnation = incarnation or new_incarnation(now())
        self._plan = plan_of(spec, self._incarnation)

    def inspect(self, start: Start) -> Inspection:
        return Inspection(self.describe(), self.resolve_start(start))

    def describe(self) -> GeneratorInfo:
        return GeneratorInfo(self._incarnation, self._plan.partitions)

    def references(self) -> tuple[ReferenceInfo, ...]:
        generator = self._plan.generator
        return tuple(
            ReferenceInfo(
                namespace=generator,
                name=output.name,
                columns=tuple(ColumnSpec(name=name, type=type_name) for name, type_name in output.columns),
                keys=output.keys,
                partitions=output.partitions,
                database=DATABASE,
            )
            for output in OUTPUTS[generator]
        )

    def check_readable(self) -> None:
        """Nobody has to be asked."""

    def check_identity(self, incarnation: str) -> None:
        if incarnation != self._incarnation:
            raise UpstreamChanged(
                "generator_changed", f"the generator is now {self._incarnation}, but this source read {incarnation}"
            )
        found = read_incarnation(incarnation)
        if found is None or found[0] != VERSION:
            raise UpstreamChanged(
                "generator_changed",
                f"another version of mzshare made the source's records ({incarnation}); this version makes others",
            )

    def check_history(self, lower: Position) -> None:
        """All of it can be made again at any time."""

    def compaction(self) -> None:
        """Nothing is ever removed."""

    def begin_offsets(self) -> Position:
        return Position()

    def end_offsets(self) -> Position:
        return Position(dict.fromkeys(self._plan.partitions, self._plan.end(self._now())))

    def resolve_start(self, start: Start) -> Position:
        """Where its clock began: a generator has nothing from before."""
        return Position()

    def record_sizes(self, lower: Position, upper: Position) -> Mapping[str, float]:
        sizes: dict[str, float] = {}
        for name in upper:
            span = Range(int(name), lower[name], min(upper[name], lower[name] + SAMPLES))
            batches = list(records(self._plan, span))
            if batches:
                sizes[name] = sum(map(size_of, batches)) / span.records
        return sizes

    def close(self) -> None:
        """Nothing is held open."""

    def __enter__(self) -> LoadGeneratorUpstream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()
