"""What every connector must do, run over all that are registered: ours, and one that another package brings.

The records that a connector gives are the same and at the same places whoever reads them, how often, and in what parts:
everything else rests on that.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from airflow_provider_mzshare.connectors.base import Connector, Inspection, Reader, ReferenceInfo
from airflow_provider_mzshare.connectors.kind import CHUNK_SETTINGS
from airflow_provider_mzshare.connectors.places import PARTITIONED, Place
from airflow_provider_mzshare.connectors.records import MARKS, REFERENCE, as_records, from_spark
from airflow_provider_mzshare.connectors.registry import CONNECTORS, kind_of, kinds_by_words, parse_source_spec
from airflow_provider_mzshare.control.definition_errors import BadExport
from airflow_provider_mzshare.control.sql import values as sql
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.script import parse_script, print_statement
from airflow_provider_mzshare.control.statements.purification import purify, resolve, stored_reference
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.core.specs import Include, Start, TableSpec
from airflow_provider_mzshare.errors import MzShareError, UpstreamChanged
from airflow_provider_mzshare.storage.writing.shipping import pack_writer
from tests.support.plugins import CONNECTOR, installed
from tests.support.upstreams import RIGS, Rig, connect, within
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[Any, ...]]
FILLED = 300
NAME = QualifiedName("public", "x")


@pytest.fixture(scope="module", autouse=True)
def plugin() -> Iterator[None]:
    with installed(CONNECTOR, CONNECTORS):
        yield


@pytest.fixture(scope="module")
def shipped(spark: SparkSession) -> Iterator[SparkSession]:
    """As where the plugin is installed: Spark plans a stream in a process that gets no files of the job."""
    environment = spark.sparkContext.environment
    environment["PYTHONPATH"] = str(CONNECTOR)
    yield spark
    del environment["PYTHONPATH"]


@pytest.fixture(params=sorted(RIGS))
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = RIGS[request.param](request.getfixturevalue, tmp_path)
    yield made
    made.close()


@pytest.fixture
def place(rig: Rig) -> Place:
    return kind_of(rig.spec()).place


@pytest.fixture
def inspected(rig: Rig) -> Inspection:
    """Filled after it was looked at: the clock of some begins then."""
    with connect(rig, None).upstream() as upstream:
        found = upstream.inspect(Start())
    rig.made(found.info.incarnation)
    rig.fill(FILLED)
    return found


@pytest.fixture
def incarnation(inspected: Inspection) -> str:
    return inspected.info.incarnation


@pytest.fixture
def connector(rig: Rig, incarnation: str) -> Connector:
    return connect(rig, incarnation)


@pytest.fixture
def span(rig: Rig, connector: Connector, inspected: Inspection) -> tuple[Position, Position]:
    """From where the source begins to where its upstream ended after it was filled."""
    with connector.upstream() as upstream:
        upper = upstream.end_offsets()
    rig.reach(upper)
    return inspected.start, upper


def test_whatever_is_registered_is_in_the_suite() -> None:
    assert sorted(CONNECTORS) == sorted(RIGS)
    assert len(kinds_by_words()) == len(RIGS), "no two kinds have the same words"
    for name in CONNECTORS:
        kind = CONNECTORS.get(name)
        assert (kind.kind, kind.details.model_fields["kind"].default) == (name, name)
        assert kind.spec.model_fields["kind"].default == name
        assert not kind.has_columns or kind.spark_settings.items() >= CHUNK_SETTINGS.items()


# ── what is stored and written of it ──────────────────────────────────────────────────────────────────────────────────


def test_its_spec_is_stored_and_written_and_read_again(rig: Rig) -> None:
    spec = rig.spec()
    assert parse_source_spec(spec.model_dump_json()) == spec
    kind = kind_of(spec)
    statement = sql.CreateSource(NAME, False, kind.connection_name(spec), spec)
    text = print_statement(statement)
    assert f" FROM {kind.shown(spec)}" in text
    ((again,),) = (transaction.statements for transaction in parse_script(text))
    assert again == statement
    assert (kind.connection_name(spec) is not None) == kind.takes_connection


def test_a_table_keeps_what_it_was_made_from(rig: Rig, connector: Connector) -> None:
    with connector.upstream() as upstream:
        references = upstream.references()
        assert references == upstream.references(), "always the same, in the same order"
    spec = rig.spec()
    kind = kind_of(spec)
    for reference in references:
        assert (reference.columns is not None) == kind.has_columns
        asked = tuple(part for part in (reference.namespace, reference.name) if part is not None)
        assert resolve(asked, references, "x") is reference
        table = purify(_table(kind.default_format, asked), spec, reference)
        assert TableSpec.model_validate_json(table.model_dump_json()) == table
        assert type(table.details) is kind.details
        assert stored_reference(table) == reference


def test_what_its_records_do_not_have_cannot_be_included(rig: Rig) -> None:
    spec = rig.spec()
    for what in {"partition", "offset", "timestamp", "key"} - set(kind_of(spec).metadata):
        table = _table("json", ("t",), Include(what=what, name=what))  # type: ignore[arg-type]
        with pytest.raises(BadExport, match=f"have no {what}"):
            purify(table, spec, ReferenceInfo(None, "t"))


def _table(written_format: str, reference: tuple[str, ...], *include: Include) -> sql.CreateTable:
    return sql.CreateTable(NAME, False, NAME, reference, written_format, include=include)  # type: ignore[arg-type]


# ── what it says of its upstream ──────────────────────────────────────────────────────────────────────────────────────


def test_it_is_known_again_until_it_is_made_anew(rig: Rig, connector: Connector, incarnation: str) -> None:
    with connector.upstream() as upstream:
        assert upstream.describe().incarnation == incarnation == upstream.inspect(Start()).info.incarnation
        upstream.check_identity(incarnation)
        upstream.check_readable()
    rig.make_anew()
    with connect(rig, None).upstream() as another:
        with pytest.raises(UpstreamChanged) as changed:
            another.check_identity(incarnation)
        assert changed.value.reason != rig.gone
        another.check_identity(another.describe().incarnation)


def test_history_that_is_gone_is_told_and_never_stepped_over(
    rig: Rig, connector: Connector, span: tuple[Position, Position]
) -> None:
    with connector.upstream() as upstream:
        begin, (_, end) = upstream.begin_offsets(), span
        assert begin <= upstream.resolve_start(Start()) <= upstream.end_offsets()
        upstream.check_history(begin)
        upstream.check_history(end)
        if not rig.can_lose:
            return
        rig.lose(10)
        wait_until(lambda: upstream.begin_offsets() > begin, 30, "the loss")
        with pytest.raises(UpstreamChanged) as gone:
            upstream.check_history(begin)
        assert gone.value.reason == rig.gone
        upstream.check_history(upstream.begin_offsets())
        upstream.check_history(end)


def test_it_says_whether_it_compacts(connector: Connector) -> None:
    with connector.upstream() as upstream:
        found = upstream.compaction()
    assert found is None or (found.kept_ms >= 0 and found.lag_ms >= 0)


def test_its_end_only_grows(rig: Rig, connector: Connector, place: Place) -> None:
    with connector.upstream() as upstream:
        before = upstream.end_offsets()
        rig.fill(5)
        after = upstream.end_offsets()
        assert before <= after
        assert before < after or not rig.can_lose, "what was written is there at once"
        lanes = {place.lane_of(name) for name in after}
        assert lanes <= (set(upstream.describe().partitions) if place.lane else {place.only_lane})


def test_what_does_not_answer_is_an_error_of_ours_in_time(rig: Rig) -> None:
    nowhere = rig.nowhere()
    if nowhere is None:
        return
    spec, connection = nowhere
    with within(10), kind_of(spec).connect(spec, connection, None).upstream(timeout=3) as upstream:
        with pytest.raises(MzShareError) as told:
            upstream.describe()
        assert told.value.hint
        with pytest.raises(MzShareError):
            upstream.references()


def test_what_travels_to_executors_needs_nothing_else(rig: Rig, tmp_path: Path) -> None:
    """The archive comes first on the path, so a module that is missing in it is missing."""
    modules = kind_of(rig.spec()).executor_modules
    code = f"""
import importlib, importlib.abc, sys
archive = {str(pack_writer(tmp_path))!r}
sys.path.insert(0, archive)
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pydantic", "sqlalchemy", "deltalake", "confluent_kafka", "psycopg", "airflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
for name in {modules!r}:
    assert importlib.import_module(name).__file__.startswith(archive), name
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr


# ── its records ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_records_have_their_places_and_uppers_are_exclusive(
    connector: Connector, place: Place, span: tuple[Position, Position]
) -> None:
    lower, upper = span
    with connector.records() as records:
        for name in upper:
            lane, first, last = place.lane_of(name), lower[name], upper[name]
            whole = _of(records.read(lane, first, last), place)
            places = [row[:-1] for row in whole]
            assert len(set(places)) == len(places), "each place once"
            assert all(rows == sorted(rows, key=_place_of) for rows in _apart_by_reference(whole).values()), "in order"
            assert place.lane is None or {at[place.given.index(place.lane)] for at in places} == {lane}
            numbers = sorted(_numbers(whole, place))
            assert len(numbers) > FILLED // 2
            assert first <= numbers[0]
            assert numbers[-1] < last
            middle = numbers[len(numbers) // 2]
            parts = [
                *_of(records.read(lane, first, middle), place),
                *_of(records.read(lane, middle, last), place),
            ]
            both = _apart_by_reference(parts)
            assert both == _apart_by_reference(whole), "nothing is lost or double where a range is cut"
            assert not _of(records.read(lane, middle, middle), place)


def test_spark_reads_exactly_a_range_the_same_each_time(
    connector: Connector, place: Place, span: tuple[Position, Position], shipped: SparkSession
) -> None:
    lower, upper = span
    reader = connector.reader(shipped)
    whole = _apart(connector, place, lower, upper)
    assert _bounded(reader, lower, upper) == whole, "as the client that checks use"
    assert _bounded(reader, lower, upper, tasks=3) == whole, "however it is shared, and again"
    between = Position({name: (lower[name] + upper[name]) // 2 for name in upper})
    for middle in (between, _steps(whole, place, lower, upper, len(whole) // 2)[0]):
        assert sorted(_bounded(reader, lower, middle) + _bounded(reader, middle, upper), key=_place_of) == whole
    assert reader.bounded(upper, upper) is None
    assert reader.place == place, "what collections are made with is what records have"


def test_the_driver_reads_what_spark_reads_or_leaves_it_to_spark(
    rig: Rig, connector: Connector, place: Place, span: tuple[Position, Position], shipped: SparkSession
) -> None:
    """In any parts, forwards and again: what a driver read, Spark may have to read once more."""
    lower, upper = span
    reader = connector.reader(shipped)
    try:
        whole = _apart(connector, place, lower, upper)
        if reader.read_thin(lower, lower) is None and not kind_of(rig.spec()).is_recorded:
            part = reader.read_thin(lower, _steps(whole, place, lower, upper, 10)[0])
            assert part is None, "an empty range says that it never would"
            return
        for step in (7, 100, 7):
            found, at = [], lower
            for end in _steps(whole, place, lower, upper, step):
                part = reader.read_thin(at, end)
                assert part is not None
                found += _of(part, place)
                at = end
            assert at == upper
            assert sorted(found, key=_place_of) == whole
    finally:
        reader.close()


def test_what_tasks_read_by_themselves_is_what_spark_reads(
    connector: Connector, place: Place, span: tuple[Position, Position], shipped: SparkSession
) -> None:
    """A tick whose tasks read by themselves may be finished by a bounded read, and the other way round."""
    lower, upper = span
    reader = connector.reader(shipped)
    try:
        whole = _apart(connector, place, lower, upper)
        for tasks in (1, 3):
            if (parts := reader.parts(lower, upper, tasks)) is not None:
                found = [row for text in parts.texts for row in _of(parts.read(text), place)]
                assert sorted(found, key=_place_of) == whole
        assert reader.parts(upper, upper, 1) is None
    finally:
        reader.close()


def test_a_stream_gives_what_bounded_reads_of_its_batches_give(
    connector: Connector, place: Place, span: tuple[Position, Position], shipped: SparkSession, tmp_path: Path
) -> None:
    """A tick that was minted by a stream is finished by a bounded read of its range: both must be one."""
    lower, upper = span
    reader = connector.reader(shipped)
    with connector.upstream() as upstream:
        frame = reader.stream(lower, upstream.describe().partitions, 100)
    batches = _streamed(reader, frame, lower, upper, tmp_path / "first")
    if batches is None:
        batches = _streamed(reader, frame, lower, upper, tmp_path / "second")
    assert batches is not None, "Spark waits ten seconds for a Python of its own, and had to wait longer twice"
    assert len(batches) > 1, "no more at once than were asked for"
    at = lower
    for begin, end, rows in batches:
        assert begin == at, "each batch begins where the one before has ended"
        assert begin <= end
        assert len(rows) <= 200, "about as many as were asked for"
        assert end.gap(begin) <= 200 or place != PARTITIONED, "of what its numbers count"
        assert rows == _bounded(reader, begin, end)
        at = end
    assert at >= upper
    reader.close()


def _streamed(
    reader: Reader, frame: DataFrame, lower: Position, upper: Position, checkpoint: Path
) -> list[tuple[Position, Position, Rows]] | None:
    """The stream's batches; None if Spark gave up its Python, which an app takes as a reason for another start."""
    batches: list[tuple[Position, Position, Rows]] = []

    def take(batch: DataFrame, number: int) -> None:
        batches.append((*reader.batch_range(checkpoint, number, lower), _rows(batch, reader.place)))

    query = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(take).start()
    try:
        deadline = time.monotonic() + 90
        while query.isActive and time.monotonic() < deadline and not (batches and batches[-1][1] >= upper):
            time.sleep(0.2)
        if not query.isActive and "worker failed to connect back" in str(query.exception()):
            return None
        assert query.isActive, query.exception()
    finally:
        query.stop()
    return batches


def _apart(connector: Connector, place: Place, lower: Position, upper: Position) -> Rows:
    with connector.records() as records:
        lanes = ((place.lane_of(name), lower[name], upper[name]) for name in upper)
        return sorted((row for lane in lanes for row in _of(records.read(*lane), place)), key=_place_of)


def _bounded(reader: Reader, lower: Position, upper: Position, tasks: int | None = None) -> Rows:
    frame = reader.bounded(lower, upper, tasks=tasks)
    return [] if frame is None else _rows(frame, reader.place)


def _rows(frame: DataFrame, place: Place) -> Rows:
    return sorted(_of(from_spark(frame.toArrow().to_batches()), place), key=_place_of)


def _of(batches: Iterable[pa.RecordBatch], place: Place) -> Rows:
    """The place of each, and all that there is of it."""
    found: Rows = []
    for batch in batches:
        metadata = batch.schema.metadata or {}
        said = {name: metadata.get(name) for name in (REFERENCE, MARKS)}
        rows = as_records(batch, place).to_pylist()
        found += [(*(row[name] for name in place.given), said | row) for row in rows]
    return found


def _place_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:-1]


def _numbers(rows: Rows, place: Place) -> list[int]:
    """What positions are compared with."""
    at = place.given.index(place.counted)
    return [row[at] for row in rows]


def _apart_by_reference(rows: Rows) -> dict[bytes | None, Rows]:
    found: dict[bytes | None, Rows] = {}
    for row in rows:
        found.setdefault(row[-1][REFERENCE], []).append(row)
    return found


def _steps(whole: Rows, place: Place, lower: Position, upper: Position, step: int) -> list[Position]:
    """Ends of parts of about so many records, up to ``upper``. :param whole: all of them."""
    found, at = [], lower
    if place != PARTITIONED:
        # Its numbers count something else.
        found = [Position({place.only_lane: number}) for number in sorted(set(_numbers(whole, place)))[1::step]]
        return [*found, upper]
    while at != upper:
        at = at.toward(upper, step)
        found.append(at)
    return found
