"""Positions are found in segments by their blocks' headers: with an index, without, and in a damaged one."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_mzshare.core.journal.state import Segment, path_of
from airflow_provider_mzshare.journal import index
from airflow_provider_mzshare.journal.positions import Mark, marks, offset_of
from airflow_provider_mzshare.journal.reading import DamagedSegment
from airflow_provider_mzshare.storage.journal.segment_file import SegmentFile
from tests.support.journals import JOURNAL, batch_of

GROUPS = 60
SIZE = 8_000
"""Bytes of a message, which do not compress: so that there is an index."""


def group(number: int) -> pa.RecordBatch:
    """Three transactions of two messages, and the beginning of the next group's first one."""
    places = [100 * number + 10 * n for n in (0, 0, 1, 1, 2, 2)] + [100 * (number + 1)]
    body = [random.Random(f"{number} {n}").randbytes(SIZE) for n in range(len(places))]
    return batch_of([{"position": place, "value": value} for place, value in zip(places, body, strict=True)])


@pytest.fixture
def written(tmp_path: Path) -> tuple[str, Segment]:
    file = SegmentFile.create(str(tmp_path), JOURNAL, partition=0, epoch=1, number=1, first=0)
    for number in range(1, GROUPS + 1):
        file.append(group(number), boundary=100 * number + 25)
        segment = file.flush()
    file.close()
    return str(tmp_path / path_of(JOURNAL, segment)), segment


@pytest.mark.parametrize("has_index", [True, False])
def test_each_position_is_found_where_its_first_message_is(written: tuple[str, Segment], has_index: bool) -> None:
    path, segment = written
    assert len(index.entries(path)) > 3
    if not has_index:
        Path(path + index.SUFFIX).unlink()
    places = [place for number in range(1, GROUPS + 1) for place in group(number).column("position").to_pylist()]
    for position in [0, *range(99, 100 * GROUPS + 125, 5)]:
        expected = next((at for at, place in enumerate(places) if place >= position), None)
        assert offset_of(path, 0, segment.length, position) == expected, position
    for lower in (0, 2_520, 2_525, 100 * GROUPS + 25):
        told = [Mark(100 * n + 25, 7 * n - 1) for n in range(1, GROUPS + 1) if 100 * n + 25 > lower]
        assert marks(path, 0, segment.length, lower) == told


def test_an_index_that_is_wrong_is_not_relied_on(written: tuple[str, Segment]) -> None:
    path, segment = written
    Path(path + index.SUFFIX).write_bytes(index.entry(7, 1_000) * 5)
    assert offset_of(path, 0, segment.length, 120) == 4


def test_a_damaged_header_is_told(written: tuple[str, Segment]) -> None:
    path, segment = written
    data = bytearray(Path(path).read_bytes())
    data[40:200] = bytes(160)
    Path(path).write_bytes(data)
    Path(path + index.SUFFIX).unlink()
    with pytest.raises(DamagedSegment):
        offset_of(path, 0, segment.length, 120)
