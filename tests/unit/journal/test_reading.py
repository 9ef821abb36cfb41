"""Segments are read as they were announced, any part of them, and what is damaged is found and named."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_mzshare.core.journal.state import Segment
from airflow_provider_mzshare.journal import blocks, index
from airflow_provider_mzshare.journal.reading import (
    DamagedSegment,
    Extent,
    NewerSegment,
    checksum_of,
    prologue,
    read,
)
from tests.support.journals import (
    MESSAGE,
    batch_of,
    extent_of,
    messages_of,
    numbered,
    place_of,
    values,
    values_of,
    write_segment,
)


def names(first: int, end: int) -> list[bytes]:
    return [b"message %d" % n for n in range(first, end)]


@pytest.fixture
def small(tmp_path: Path) -> Segment:
    """Offsets 100 to 130 in blocks of one, a few and many messages."""
    sizes = (1, 5, 1, 23)
    firsts = accumulate((100, *sizes[:-1]))
    return write_segment(
        tmp_path, [numbered(f, n) for f, n in zip(firsts, sizes, strict=True)], first=100, prologue=b"p"
    )


# ── what was written ──────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(MESSAGE, max_size=8), max_size=6),
    first=st.integers(0, 2**40),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    text=st.binary(max_size=50),
)
def test_any_part_comes_back_as_it_was_written(
    tmp_path: Path, batches: list[list[dict]], first: int, ends: tuple[float, float], text: bytes
) -> None:
    shutil.rmtree(tmp_path / "w", ignore_errors=True)
    segment = write_segment(tmp_path / "w", [batch_of(each) for each in batches], first=first, prologue=text)
    expected = [message for batch in batches for message in batch]
    assert segment.messages == len(expected)
    assert messages_of(extent_of(tmp_path / "w", segment)) == expected
    lower, upper = sorted(round(end * len(expected)) for end in ends)
    assert messages_of(extent_of(tmp_path / "w", segment, first + lower, first + upper)) == expected[lower:upper]
    assert prologue(place_of(tmp_path / "w", segment), segment.length) == text


def test_every_part_of_a_small_segment(tmp_path: Path, small: Segment) -> None:
    for lower in range(100, 131):
        for upper in range(lower, 131):
            assert values_of(extent_of(tmp_path, small, lower, upper)) == names(lower, upper)


def test_large_messages_between_small_ones(tmp_path: Path) -> None:
    """Larger than a block, than what is read at once, and compressed to little."""
    given = [b"a", os.urandom(9 << 20), b"", bytes(20 << 20), None, os.urandom(300_000)]
    segment = write_segment(tmp_path, [values(*given[:3]), values(*given[3:])])
    for lower in range(6):
        assert values_of(extent_of(tmp_path, segment, lower)) == given[lower:]
    assert checksum_of(place_of(tmp_path, segment), segment.length) == segment.checksum


def test_small_blocks_are_given_together_and_large_ones_as_they_lie(tmp_path: Path) -> None:
    segment = write_segment(
        tmp_path, [*(numbered(n, 1) for n in range(500)), numbered(500, 15_000), numbered(15_500, 3)]
    )
    found = [(offset, batch.num_rows) for offset, batch in read(extent_of(tmp_path, segment))]
    assert found == [(0, 500), (500, 15_000), (15_500, 3)]


def test_blocks_with_other_columns_are_given_together_too(tmp_path: Path) -> None:
    given = [{}, {}, {"value": b"v"}, {"key": b"k"}, {"key": b"k", "value": b"v"}, {"position": 3}, {}]
    segment = write_segment(tmp_path, [batch_of([each]) for each in given])
    assert [(offset, batch.num_rows) for offset, batch in read(extent_of(tmp_path, segment))] == [(0, 7)]
    for lower in range(7):
        assert messages_of(extent_of(tmp_path, segment, lower)) == batch_of(given[lower:]).to_pylist()


def test_an_extent_is_plain_json(tmp_path: Path, small: Segment) -> None:
    extent = extent_of(tmp_path, small, 101, 105)
    assert Extent.from_json(json.loads(json.dumps(extent.to_json()))) == extent


def test_a_uri_of_a_local_file_is_the_file(tmp_path: Path, small: Segment) -> None:
    assert values_of(extent_of(tmp_path.as_uri(), small, 103)) == names(103, 130)


def test_nothing_is_opened_for_nothing(tmp_path: Path) -> None:
    assert messages_of(Extent(str(tmp_path / "a/b/c/d"), 5, 100, 7, 7)) == []


def test_an_earlier_offset_than_the_segment_has_is_an_error(tmp_path: Path, small: Segment) -> None:
    with pytest.raises(ValueError, match="offset 99 is in an earlier segment"):
        messages_of(extent_of(tmp_path, small, 99))


# ── power cuts: anything may lie behind the announced bytes ───────────────────────────────────────────────────────────


def test_whatever_lies_behind_the_announced_bytes_is_not_read(tmp_path: Path) -> None:
    """Cut to what was flushed, longer by a torn block, by zeros, or by blocks of a writer that nobody listens to."""
    both = write_segment(tmp_path / "both", [numbered(0, 40), numbered(40, 40)])
    whole = Path(place_of(tmp_path / "both", both)).read_bytes()
    length = len(whole) - next(blocks.encode(numbered(40, 40), 40)).size
    announced = Segment(0, 1, 1, 0, 40, length, zlib.crc32(whole[:length]), 0)
    tails = [b"", b"\0" * 5000, os.urandom(777), *(whole[length:cut] for cut in range(length, len(whole) + 1, 13))]
    file = Path(place_of(tmp_path / "both", both))
    for tail in tails:
        file.write_bytes(whole[:length] + tail)
        assert values_of(extent_of(tmp_path / "both", announced)) == names(0, 40)
        assert checksum_of(str(file), length) == announced.checksum
        with pytest.raises(DamagedSegment, match="blocks end with offset 40"):
            values_of(extent_of(tmp_path / "both", announced, upper=41))


# ── damage ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def flips(length: int, share: int) -> Iterator[tuple[int, int]]:
    """Bits: all of them, or one of so many."""
    chosen = random.Random(17)
    for bit in range(length * 8):
        if share == 1 or chosen.randrange(share) == 0:
            yield divmod(bit, 8)


@pytest.mark.parametrize("share", [7, pytest.param(1, marks=pytest.mark.full(seconds=15))])
def test_every_flipped_bit_is_found(tmp_path: Path, share: int) -> None:
    compressed, plain = values(b"x" * 900), values(os.urandom(301))
    mixed = batch_of([{"position": 5, "key": b"k", "headers": [{"name": "h", "value": b"v"}]}])
    segment = write_segment(tmp_path, [compressed, plain, mixed], prologue=b"abc")
    extent, file = extent_of(tmp_path, segment), Path(place_of(tmp_path, segment))
    whole = file.read_bytes()
    assert zlib.crc32(whole) == segment.checksum
    for byte, bit in flips(len(whole), share):
        file.write_bytes(whole[:byte] + bytes([whole[byte] ^ (1 << bit)]) + whole[byte + 1 :])
        with pytest.raises(DamagedSegment) as caught:
            messages_of(extent)
        assert (caught.value.path, caught.value.byte <= byte) == (str(file), True)
        assert checksum_of(str(file), segment.length) != segment.checksum
    file.write_bytes(whole)
    assert len(messages_of(extent)) == 3


def test_every_missing_byte_is_found(tmp_path: Path, small: Segment) -> None:
    extent, file = extent_of(tmp_path, small), Path(place_of(tmp_path, small))
    for length in range(small.length - 1, -1, -1):
        os.truncate(file, length)
        for attempt in (lambda: messages_of(extent), lambda: checksum_of(str(file), small.length)):
            with pytest.raises(DamagedSegment, match=f"at byte {length}: it ends there") as caught:
                attempt()
            assert caught.value.byte == length


def test_a_part_is_read_although_another_is_damaged(tmp_path: Path, small: Segment) -> None:
    file = Path(place_of(tmp_path, small))
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    assert values_of(extent_of(tmp_path, small, upper=107)) == names(100, 107)
    with pytest.raises(DamagedSegment, match="do not have its checksum"):
        values_of(extent_of(tmp_path, small, 107))


def test_a_length_inside_a_block_is_damage(tmp_path: Path, small: Segment) -> None:
    for length in range(48, small.length):
        with pytest.raises(DamagedSegment):
            messages_of(Extent(place_of(tmp_path, small), 100, length, 100, 130))


def test_another_segment_under_its_name_is_damage(tmp_path: Path, small: Segment) -> None:
    other = write_segment(tmp_path, [numbered(200, 400)], first=200, number=2)
    os.replace(place_of(tmp_path, other), place_of(tmp_path, small))
    with pytest.raises(DamagedSegment, match="first message has the offset 200, and that of the catalog 100"):
        messages_of(extent_of(tmp_path, small))


def test_a_missing_file_is_damage_unless_the_whole_warehouse_is_away(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    segment = write_segment(root, [numbered(0, 3)])
    Path(place_of(root, segment)).unlink()
    for attempt in (
        lambda: messages_of(extent_of(root, segment)),
        lambda: prologue(place_of(root, segment), segment.length),
    ):
        with pytest.raises(DamagedSegment, match="it is missing"):
            attempt()
    shutil.rmtree(root / "journals")
    (root / "u1-g1-data-00").mkdir()
    with pytest.raises(DamagedSegment, match="it is missing"):
        messages_of(extent_of(root, segment))
    (root / "u1-g1-data-00").rmdir()
    for step in (lambda: None, root.rmdir):
        step()
        with pytest.raises(OSError, match="is its disk mounted") as caught:
            messages_of(extent_of(root, segment))
        assert caught.value.errno == errno.ENODEV


def test_a_disk_that_cannot_read_is_not_damage(tmp_path: Path, small: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    def bad_sector(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", bad_sector)
    with pytest.raises(OSError, match="Input/output error"):
        messages_of(extent_of(tmp_path, small))


def test_a_newer_version_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "VERSION", 2)
    segment = write_segment(tmp_path, [numbered(0, 3)])
    monkeypatch.undo()
    with pytest.raises(NewerSegment, match="is of version 2"):
        messages_of(extent_of(tmp_path, segment))


# ── the index ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def thousand(number: int) -> bytes:
    return b"%8d" % number + random.Random(number).randbytes(992)


@pytest.fixture
def long(tmp_path: Path) -> Segment:
    """3,000 messages of 1,000 bytes, 10 in a block, behind offset 5."""
    return write_segment(tmp_path, [numbered(each, 10, thousand) for each in range(5, 3005, 10)], first=5)


def looked_at(extent: Extent, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[int]]:
    """How many bytes were read, and the messages."""
    preadv, seen = os.preadv, []

    def noted(descriptor: int, buffers: list[memoryview], at: int) -> int:
        seen.append(got := preadv(descriptor, buffers, at))
        return got

    monkeypatch.setattr(os, "preadv", noted)
    found = [int(value[:8]) for value in values_of(extent)]
    monkeypatch.setattr(os, "preadv", preadv)
    return sum(seen), found


def test_a_message_in_the_middle_is_found_by_the_index(
    tmp_path: Path, long: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(tmp_path, long)
    assert Path(place + index.SUFFIX).stat().st_size // 16 == long.length // index.EVERY
    size, found = looked_at(extent_of(tmp_path, long, 2900, 2901), monkeypatch)
    assert found == [2900]
    # One step of the index by headers, and one piece of reading.
    assert size < index.EVERY * 2.2


@pytest.mark.parametrize("what", ["missing", "empty", "torn", "garbage", "zeros", "shifted", "another's", "backwards"])
def test_an_index_that_is_not_right_is_noticed(
    tmp_path: Path, long: Segment, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    file = Path(place_of(tmp_path, long) + index.SUFFIX)
    entries = [file.read_bytes()[at : at + 16] for at in range(0, file.stat().st_size, 16)]
    changed = {
        "empty": b"",
        "torn": b"".join(entries)[:-5],
        "garbage": random.Random(1).randbytes(16 * 20),
        "zeros": bytes(16 * 20),
        "shifted": b"".join(one[:8] + other[8:] for one, other in zip(entries[1:], entries, strict=False)),
        "another's": b"".join(index.entry(n * 100, n * 4096 + 40) for n in range(30)),
        "backwards": b"".join(reversed(entries)),
    }
    if what == "missing":
        file.unlink()
    else:
        file.write_bytes(changed[what])
    for lower in (5, 6, 300, 1500, 2900, 3004):
        assert looked_at(extent_of(tmp_path, long, lower), monkeypatch)[1] == list(range(lower, 3005))
    assert looked_at(extent_of(tmp_path, long, 700, 720), monkeypatch)[1] == list(range(700, 720))


def test_an_index_that_is_ahead_of_what_is_announced_is_not_followed(tmp_path: Path, long: Segment) -> None:
    """Its segment was longer before the power was cut."""
    (encoded,) = blocks.encode(numbered(5, 10, thousand), 5)
    length = blocks.SEGMENT_HEADER + encoded.size * 3
    found = values_of(Extent(place_of(tmp_path, long), 5, length, 20, 35))
    assert [int(value[:8]) for value in found if value] == list(range(20, 35))
    with pytest.raises(DamagedSegment, match="blocks end with offset 35"):
        values_of(Extent(place_of(tmp_path, long), 5, length, 2900, 2901))
