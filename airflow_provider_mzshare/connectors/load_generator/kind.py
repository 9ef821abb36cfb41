"""Load generators as a kind of source: ``FROM LOAD GENERATOR AUCTION (UP TO 100)``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from airflow_provider_mzshare.connectors.base import ReferenceInfo
from airflow_provider_mzshare.connectors.kind import CHUNK_SETTINGS, Clause, ConnectorKind
from airflow_provider_mzshare.connectors.load_generator.specs import (
    DATABASE,
    LoadGeneratorExportDetails,
    LoadGeneratorSpec,
)
from airflow_provider_mzshare.core.options import Option
from airflow_provider_mzshare.core.specs import TableSpec

_FOLDER = "airflow_provider_mzshare.connectors.load_generator"
_DURATION = "a duration such as '1s'"
_OF_ALL = ("SEED", "TICK INTERVAL", "BATCH SIZE", "UP TO")
_SEVERAL = "AUCTION"
"""The generator that has more than one output."""


class LoadGeneratorKind(ConnectorKind[LoadGeneratorSpec]):
    kind = "load_generator"
    title = "load generator"
    spec = LoadGeneratorSpec
    details = LoadGeneratorExportDetails
    connector = f"{_FOLDER}.connector:LoadGeneratorConnector"
    words = "LOAD GENERATOR"
    options = (
        Option("SEED", "signed", field="seed", about="a different seed gives different records"),
        Option(
            "TICK INTERVAL", "duration", _DURATION, "tick_interval_ms", unit=" millisecond",
            about="how often the generator makes records",
        ),
        Option(
            "BATCH SIZE", "whole", field="batch_size", about="how many records per partition at once; at most 1,000,000"
        ),
        Option(
            "UP TO", "whole", field="up_to", unset="no end",
            about="the generator ends after this many records per partition; `AUCTION`: after this many bids",
        ),
        Option("KEYS", "whole", field="keys", about="`KEY VALUE`: number of keys in each partition"),
        Option("VALUE SIZE", "whole", field="value_size", about="`KEY VALUE`: size of a value in bytes; at most 1 MiB"),
        Option("PARTITIONS", "whole", field="partitions", about="`KEY VALUE`: number of partitions; at most 64"),
    )  # fmt: skip
    variants: ClassVar[Mapping[str, Collection[str]]] = {
        "COUNTER": _OF_ALL,
        "AUCTION": _OF_ALL,
        "KEY VALUE": (*_OF_ALL, "KEYS", "VALUE SIZE", "PARTITIONS"),
    }
    variants_later = ("TPCH", "MARKETING", "DATUMS", "CLOCK")
    variant_field = "generator"
    has_columns = True
    spark_settings = CHUNK_SETTINGS
    database = DATABASE
    executor_modules = tuple(f"{_FOLDER}.{name}" for name in ("auction", "datasource", "draws", "generators", "plan"))

    def export(
        self, source: LoadGeneratorSpec, table: TableSpec, reference: ReferenceInfo
    ) -> LoadGeneratorExportDetails:
        return LoadGeneratorExportDetails(
            output=reference.name,
            partitions=reference.partitions,
            columns=reference.columns or (),
            keys=reference.keys,
        )

    def stored_reference(self, table: TableSpec) -> ReferenceInfo:
        made = table.details
        if not isinstance(made, LoadGeneratorExportDetails):
            return super().stored_reference(table)
        return ReferenceInfo(table.namespace, table.reference, made.columns, made.keys, made.partitions, DATABASE)

    def has_several_outputs(self, spec: LoadGeneratorSpec) -> bool:
        return self.variant(spec) == _SEVERAL

    def misplaced(self, variant: str | None, given: Collection[Clause]) -> Iterator[tuple[Clause, str]]:
        decoding: tuple[Clause, ...] = ("FORMAT", "INCLUDE", "a column list")
        yield from ((clause, "a LOAD GENERATOR has columns of its own") for clause in decoding)
        if variant == _SEVERAL:
            yield "ENVELOPE", f"{variant} has several outputs; FOR ALL TABLES makes them"
        else:
            yield "FOR", f"{variant} has one output"


KIND = LoadGeneratorKind()
