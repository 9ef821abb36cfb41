"""Blocks: what goes in comes out, in bounded pieces, at little more than its size."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.journal import blocks
from airflow_provider_mzshare.journal.blocks import BLOCK_HEADER, Block
from tests.support.journals import MESSAGE, Message, batch_of, numbered, values


def bytes_of(encoded: blocks.Encoded) -> bytes:
    return b"".join(bytes(part) for part in encoded.parts)


def decoded(encoded: blocks.Encoded) -> tuple[Block, pa.RecordBatch]:
    data = pa.py_buffer(bytes_of(encoded))
    block = blocks.decode_head(data.slice(0, BLOCK_HEADER))
    return block, blocks.with_all_columns(blocks.decode(block, data.slice(BLOCK_HEADER)))


@settings(max_examples=60, deadline=None)
@given(
    messages=st.lists(MESSAGE, min_size=1, max_size=30),
    first=st.integers(0, 2**62),
    cut=st.integers(0, 29),
    boundary=st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_messages_come_back_as_they_were(
    messages: Sequence[Message], first: int, cut: int, boundary: int | None
) -> None:
    """Also those that were a part of a larger batch."""
    cut = min(cut, len(messages) - 1)
    (encoded,) = blocks.encode(batch_of(messages).slice(cut), first, boundary)
    block, found = decoded(encoded)
    assert found.to_pylist() == messages[cut:]
    assert (block, encoded.size) == (encoded.block, len(bytes_of(encoded)))
    assert (block.first, block.messages, block.boundary) == (first, len(messages) - cut, boundary)
    positions = [each["position"] for each in messages[cut:] if each["position"] is not None]
    assert (block.low, block.high) == (min(positions, default=None), max(positions, default=None))
    assert encoded.size % 8 == 0


def test_nothing_makes_no_block() -> None:
    assert list(blocks.encode(values(), 5, 7)) == []


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (numbered(0, blocks.MAX_MESSAGES), 1),
        (numbered(0, blocks.MAX_MESSAGES + 1), 2),
        (values(*[bytes(1 << 20)] * 9), 4),
        (values(b"a", os.urandom(2 * blocks.MAX_RAW), b"b"), 3),
    ],
    ids=["as many as fit", "one more", "nine of a MiB", "one that is larger than a block"],
)
def test_blocks_are_bounded(batch: pa.RecordBatch, expected: int) -> None:
    found = list(blocks.encode(batch, 100))
    assert len(found) == expected
    assert [each.block.first for each in found] == [100, *(each.block.end for each in found[:-1])]
    for each in found:
        assert each.block.messages <= blocks.MAX_MESSAGES
        assert each.block.messages == 1 or each.block.raw <= blocks.MAX_RAW + 64 * 1024
    assert pa.Table.from_batches([decoded(each)[1] for each in found]).to_pylist() == batch.to_pylist()


def test_what_compresses_is_compressed_and_the_rest_lies_as_it_is() -> None:
    (small,) = blocks.encode(values(b"x" * 100_000), 0)
    (large,) = blocks.encode(values(os.urandom(100_000)), 0)
    assert small.size < 1000
    assert 100_000 < large.size == BLOCK_HEADER + large.block.padded < 100_600
    data = pa.py_buffer(bytes_of(large))
    column = blocks.decode(large.block, data.slice(BLOCK_HEADER)).column("value")
    assert data.address < column.buffers()[2].address < data.address + data.size, "it was copied"


def test_a_message_alone_costs_some_two_hundred_bytes_and_many_together_few() -> None:
    """As the module's docstring has it."""

    def overhead(count: int) -> float:
        messages = [{"timestamp": 1_700_000_000_000_000 + n, "value": os.urandom(200)} for n in range(count)]
        (encoded,) = blocks.encode(batch_of(messages), 0)
        return encoded.size / count - 208

    assert overhead(1) < 220
    assert overhead(50) < 20
    assert overhead(5000) < 5


def test_columns_without_values_take_no_room() -> None:
    (with_all,) = blocks.encode(batch_of([{"key": b"", "value": b"", "headers": [], "position": 0}]), 0)
    (with_one,) = blocks.encode(batch_of([{"value": b""}]), 0)
    assert with_one.block.raw < with_all.block.raw / 2
    (with_none,) = blocks.encode(batch_of([{}, {}]), 0)
    assert decoded(with_none)[1].to_pylist() == batch_of([{}, {}]).to_pylist()


@pytest.mark.parametrize(
    ("positions", "boundary", "expected"),
    [
        ([1, 5, 5, 9], 9, (3, 9)),
        ([1, 5, 5, 9], 10, (4, 10)),
        ([1, 5, 5, 9], 1, (0, 1)),
        ([1, 5, 5, 9], None, (0, None)),
        ([None, None], 7, (2, 7)),
    ],
)
def test_a_block_says_what_lies_before_its_boundary(
    positions: list[int | None], boundary: int | None, expected: tuple[int, int | None]
) -> None:
    (encoded,) = blocks.encode(batch_of([{"position": each} for each in positions]), 0, boundary)
    assert (encoded.block.before_boundary, encoded.block.boundary) == expected


def test_of_several_blocks_the_last_has_the_boundary() -> None:
    found = list(blocks.encode(batch_of([{"position": n} for n in range(30_000)]), 0, 29_990))
    assert [(each.block.before_boundary, each.block.boundary) for each in found] == [(0, None), (14_990, 29_990)]


@pytest.mark.parametrize("prologue", [b"", b"x", bytes(8), os.urandom(70_000)])
def test_a_segments_header_has_its_prologue(prologue: bytes) -> None:
    data = blocks.encode_segment(2**40, bytes(8), prologue)
    assert blocks.size_of_segment_header(data[: blocks.SEGMENT_HEADER]) == len(data)
    assert blocks.decode_segment(data) == blocks.SegmentHeader(2**40, prologue, len(data))
    assert len(data) % 8 == 0


def test_payload_is_the_bytes_of_keys_values_and_headers() -> None:
    headers = [{"name": "ä", "value": b"123"}, {"name": "b", "value": None}]
    messages = [{"key": b"12", "value": b"12345", "headers": headers}, {"value": b""}, {"headers": []}]
    assert blocks.payload_bytes(batch_of(messages)) == 2 + 5 + (2 + 3) + 1
    assert blocks.payload_bytes(batch_of(messages).slice(1)) == 0
    assert blocks.payload_bytes(values()) == 0
