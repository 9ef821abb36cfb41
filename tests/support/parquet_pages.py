"""The pages of a Parquet file, from their own headers, with the statistics that stand there.

Arrow writes statistics into the headers of pages. It writes neither a column index nor an offset index unless asked to.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from airflow_provider_mzshare.storage.fanout.thrift import Struct, _Reader

_TYPE, _COMPRESSED, _DATA, _DICTIONARY = 1, 3, 5, 7
_COUNT, _ENCODING, _STATISTICS = 1, 2, 5
_NULLS, _MAX, _MIN = 3, 5, 6


class Statistics(NamedTuple):
    """As they stand there: numbers as bytes, the lowest first."""

    least: bytes
    greatest: bytes
    nulls: int


class Page(NamedTuple):
    is_data: bool
    values: int
    encoding: int
    statistics: Statistics | None
    header: Struct


def pages(data: bytes) -> list[dict[str, list[Page]]]:
    """For each row group, the pages of each column."""
    footer = pq.read_metadata(io.BytesIO(data))
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        columns = [group.column(each) for each in range(group.num_columns)]
        assert not any(column.has_column_index or column.has_offset_index for column in columns)
        found.append({column.path_in_schema: _pages(data, column) for column in columns})
    return found


def _pages(data: bytes, column: Any) -> list[Page]:
    at = column.dictionary_page_offset or column.data_page_offset
    end, found = at + column.total_compressed_size, []
    while at < end:
        reader = _Reader(data)
        reader._at = at
        header = reader.struct()
        found.append(_page(header))
        at = reader._at + header[_COMPRESSED].value
    assert at == end, "the chunk ends where its last page ends"
    return found


def _page(header: Struct) -> Page:
    of = header[_DATA if _DATA in header else _DICTIONARY].value
    told = of[_STATISTICS].value if _STATISTICS in of else {}
    statistics = Statistics(told[_MIN].value, told[_MAX].value, told[_NULLS].value) if _MIN in told else None
    return Page(_DATA in header, of[_COUNT].value, of[_ENCODING].value, statistics, header)
