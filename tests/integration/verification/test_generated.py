"""Tables of a load generator proved against it: each against the partition of its own output. No broker, no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.connections import FixedConnections
from airflow_provider_mzshare.connectors.load_generator.plan import read_incarnation
from airflow_provider_mzshare.connectors.load_generator.specs import LoadGeneratorSpec
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.ticks import CatalogTickStore
from airflow_provider_mzshare.control.catalog.objects import items
from airflow_provider_mzshare.control.lifecycle.read_table import Query, read_table
from airflow_provider_mzshare.control.lifecycle.verified import VerificationFailed
from airflow_provider_mzshare.control.upstreams import open_records, open_upstream
from airflow_provider_mzshare.core.ids import ItemId, JobId
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Start
from tests.support.driven import DrivenIngestion
from tests.support.generated import Model, table_of
from tests.support.verifying import Pipeline, Spoil, changed, invented, twice, without

AUCTION = LoadGeneratorSpec(generator="auction", tick_interval_ms=1, up_to=200)
BIDS = 4
PAIRS = LoadGeneratorSpec(generator="key_value", keys=20, value_size=24, partitions=3, tick_interval_ms=1, up_to=200)


class GeneratedPipeline(Pipeline):
    def __init__(self, folder: Path, spec: LoadGeneratorSpec = AUCTION) -> None:
        self.spec, self.root = spec, str(folder / "warehouse")
        Path(self.root).mkdir()
        self.catalog = Catalog(f"sqlite:///{folder / 'catalog.db'}")
        self.catalog.ensure()
        self.connections = FixedConnections({})
        with open_upstream(self.connections, spec) as upstream:
            found, self.references = upstream.inspect(Start()), {each.name: each for each in upstream.references()}
        self.incarnation = found.info.incarnation
        with self.catalog.write() as session:
            self.source_id = items.create_source(
                session, name=("public", "s"), spec=spec, incarnation=self.incarnation, start=found.start
            )
        self.store = CatalogTickStore(self.catalog, self.source_id)
        self.holder = self.store.claim(JobId("ingest-1"))
        self.spoil: Spoil | None = None
        self.spoiled = BIDS

    def _records(self, lower: Position, upper: Position) -> list[pa.RecordBatch]:
        with open_records(self.connections, self.spec, self.incarnation) as reader:
            outputs = [pa.Table.from_batches(reader.read(int(p), lower[p], upper[p])) for p in upper]
        return [batch for output in outputs for batch in self._spoiled(output).to_batches()]

    def _spoiled(self, output: pa.Table) -> pa.Table:
        concerned = self.spoil and output.column("partition")[0].as_py() == self.spoiled
        return self.spoil(output) if self.spoil and concerned else output

    def tick_to(self, offset: int) -> None:
        self.tick(Position(dict.fromkeys(range(5), offset)))


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[GeneratedPipeline]:
    made = GeneratedPipeline(tmp_path)
    yield made
    made.close()


def backfilled(pipeline: GeneratedPipeline, spoil: Spoil | None = None) -> ItemId:
    """A table of bids that missed two ticks and was cut over at the third, beside one of users."""
    pipeline.add_table("users", table_of(pipeline.references["users"]))
    pipeline.tick_to(50)
    pipeline.tick_to(100)
    bids = pipeline.add_table("bids", table_of(pipeline.references["bids"], without=("buyer",), as_text=("amount",)))
    pipeline.spoil = spoil
    pipeline.backfill(bids)
    pipeline.tick_to(150)
    return bids


def test_tables_of_different_outputs_are_exact(pipeline: GeneratedPipeline) -> None:
    bids = backfilled(pipeline)
    for table_id, partition in ((bids, BIDS), (ItemId("u2"), 1)):
        for everything in (False, True):
            found = pipeline.verify(table_id, everything=everything)
            assert (found.verdict, found.rows, found.errors) == ("exact", 150, 0)
            assert [(p.partition, p.lower, p.upper) for p in found.partitions] == [(partition, 0, 150)]


@pytest.mark.parametrize(
    ("spoil", "offset", "what"),
    [
        (without(BIDS, 7), 7, "missing"),
        (twice(BIDS, 99), 99, "double"),
        (changed(BIDS, 3, {"id": 4, "auction_id": 1, "amount": 0, "bid_time": None}), 3, "differs"),
        (changed(BIDS, 5, {}), 5, "differs"),
        (invented(BIDS, 170), 170, "not upstream"),
    ],
)
def test_what_was_written_wrong_is_found(pipeline: GeneratedPipeline, spoil: Spoil, offset: int, what: str) -> None:
    bids = backfilled(pipeline, spoil)
    with pytest.raises(VerificationFailed) as failed:
        pipeline.verify(bids)
    assert (failed.value.partition, failed.value.offset, failed.value.what) == (BIDS, offset, what)


def test_records_of_other_outputs_do_not_concern_a_table(pipeline: GeneratedPipeline) -> None:
    pipeline.spoiled = 1
    bids = backfilled(pipeline, changed(1, 7, {"id": -1}))
    assert pipeline.verify(bids).verdict == "exact"


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "merge"])
def test_a_keyed_table_of_pairs_has_the_last_value_of_each_key(tmp_path: Path, vectors: bool) -> None:
    pipeline = GeneratedPipeline(tmp_path, PAIRS)
    spec = table_of(pipeline.references["key_value"])
    keyed = spec.model_copy(update={"envelope": "upsert", "deletion_vectors": vectors})
    table_id = pipeline.add_table("pairs", keyed)
    source = pipeline.catalog, pipeline.root, pipeline.source_id
    app = DrivenIngestion(*source, pipeline._records, JobId("ingest-2"))
    begun = read_incarnation(pipeline.incarnation)
    assert begun is not None
    model, seen = Model(PAIRS, begun[1]), 0
    wanted: dict[int, str] = {}
    for upto in (30, 90, 200):
        app.tick(Position(dict.fromkeys(range(3), upto)))
        pairs = [model.row(partition, offset) for partition in range(3) for offset in range(seen, upto)]
        wanted, seen = wanted | {pair["key"]: pair["value"] for pair in pairs}, upto
        found = read_table(pipeline.catalog, pipeline.root, "pairs", Query())
        assert found.num_rows == len(wanted) == 60
        assert dict(zip(found.column("key").to_pylist(), found.column("value").to_pylist(), strict=True)) == wanted
    assert pipeline.verify(table_id).verdict == "exact"
    pipeline.close()
