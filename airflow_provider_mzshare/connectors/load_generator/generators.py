"""The records of each generator: its outputs with their columns, and any range of a partition. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mzshare.connectors.load_generator import auction
from airflow_provider_mzshare.connectors.load_generator.draws import Ints, below, decimals, letters
from airflow_provider_mzshare.connectors.load_generator.fields import Field, Made, number, text
from airflow_provider_mzshare.connectors.load_generator.plan import GeneratorPlan, Range
from airflow_provider_mzshare.connectors.records import INPUT_SCHEMA

BATCH_RECORDS = 20_000
BATCH_BYTES = 8 << 20

Make = Callable[[GeneratorPlan, int, Ints, Ints], Made]
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


def _counter(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Made:
    return Made(None, (Field("counter", number(offsets + 1)),))


def _key_value(plan: GeneratorPlan, partition: int, offsets: Ints, times: Ints) -> Made:
    """First every key once, in order; then updates of any of them."""
    drawn = below(plan.seed, f"key:{partition}", offsets, plan.keys)
    keys = np.where(offsets < plan.keys, offsets, drawn) + partition * plan.keys
    values = letters(plan.seed, f"value:{partition}", offsets, plan.value_size)
    return Made(decimals(keys), (Field("key", number(keys)), Field("value", text(values))))


OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "counter": (Output("counter", (("counter", "bigint"),), ("counter",), _counter),),
    "auction": tuple(
        Output(each.name, each.columns, ("id",), each.make, (partition,))
        for partition, each in enumerate(auction.OUTPUTS)
    ),
    "key_value": (Output("key_value", (("key", "bigint"), ("value", "text")), ("key",), _key_value),),
}


def records(plan: GeneratorPlan, span: Range) -> Iterator[pa.RecordBatch]:
    """All of the range in order, as batches of ``INPUT_SCHEMA``."""
    make = next(o.make for o in OUTPUTS[plan.generator] if not o.partitions or span.partition in o.partitions)
    step = max(1, min(BATCH_RECORDS, BATCH_BYTES // (plan.value_size + 64)))
    for lower in range(span.lower, span.upper, step):
        yield _batch(plan, span.partition, np.arange(lower, min(lower + step, span.upper), dtype=np.int64), make)


def _batch(plan: GeneratorPlan, partition: int, offsets: Ints, make: Make) -> pa.RecordBatch:
    times = plan.begin_ms + (offsets // plan.batch_size + 1) * plan.tick_interval_ms
    made = make(plan, partition, offsets, times)
    key = pa.nulls(len(offsets), pa.binary()) if made.key is None else made.key.cast(pa.binary())
    columns = [
        key,
        _json(made.fields).cast(pa.binary()),
        pa.array(np.full(len(offsets), partition, np.int32)),
        pa.array(offsets),
        pa.array(times * 1_000).cast(pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA)


def _json(fields: tuple[Field, ...]) -> pa.Array:
    parts: list[pa.Array | str] = []
    before = "{"
    for field in fields:
        quote = '"' if field.value.quoted else ""
        parts += [f'{before}"{field.name}":{quote}', field.value.texts]
        before = f"{quote},"
    parts.append(before.removesuffix(",") + "}")
    return pc.binary_join_element_wise(*parts, "")
