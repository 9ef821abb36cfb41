"""The records of each generator: its outputs with their columns, and any range of a partition. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from airflow_provider_mzshare.connectors.load_generator import auction
from airflow_provider_mzshare.connectors.load_generator.draws import Columns, Ints, below, letters
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan, Range
from airflow_provider_mzshare.connectors.places import PARTITIONED
from airflow_provider_mzshare.connectors.records import row_batch

BATCH_RECORDS = 20_000
BATCH_BYTES = 8 << 20

Make = Callable[[GeneratorPlan, int, Ints, Ints], Columns]
"""The rows at some offsets of a partition, with the times they are made at."""


@dataclass(frozen=True)
class Output:
    """Something a generator makes.

    :param columns: pairs of a name and a type.
    :param partitions: those that carry it; empty is all of them.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    make: Make
    partitions: tuple[int, ...] = ()


def _counter(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    return {"counter": pa.array(offsets + 1)}


def _key_value(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Columns:
    """First every key once, in order; then updates of any of them."""
    drawn = below(plan.seed, f"key:{partition}", offsets, plan.keys)
    keys = np.where(offsets < plan.keys, offsets, drawn) + partition * plan.keys
    values = letters(plan.seed, f"value:{partition}", offsets, plan.value_size)
    return {"key": pa.array(keys), "value": values}


OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "counter": (Output("counter", (("counter", "bigint"),), ("counter",), _counter),),
    "auction": tuple(
        Output(each.name, each.columns, ("id",), each.make, (partition,))
        for partition, each in enumerate(auction.OUTPUTS)
    ),
    "key_value": (Output("key_value", (("key", "bigint"), ("value", "text")), ("key",), _key_value),),
}


def records(plan: GeneratorPlan, span: Range) -> Iterator[pa.RecordBatch]:
    """All rows of the range in order."""
    make = next(o.make for o in OUTPUTS[plan.generator] if not o.partitions or span.partition in o.partitions)
    step = max(1, min(BATCH_RECORDS, BATCH_BYTES // (plan.value_size + 64)))
    for lower in range(span.lower, span.upper, step):
        yield _batch(plan, span.partition, np.arange(lower, min(lower + step, span.upper), dtype=np.int64), make)


def _batch(plan: GeneratorPlan, partition: int, offsets: Ints, make: Make) -> pa.RecordBatch:
    times = plan.begin_ms + (offsets // plan.batch_size + 1) * plan.tick_interval_ms
    at = pa.array(np.full(len(offsets), partition, np.int32)), pa.array(offsets)
    stamps = pa.array(times * 1_000).cast(pa.timestamp("us", "UTC"))
    return row_batch(PARTITIONED, at, stamps, make(plan, partition, offsets, times))
